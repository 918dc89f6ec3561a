"""The check after loading finds models that may not be packed."""

import torch
from models_zoo import hf_logits, hf_tiny, rand_ids, span
from transformers import LlamaForCausalLM

from unspool.models.load import load_model

IDS = rand_ids(3, 20)[0]


class IgnoresPositions(LlamaForCausalLM):
    def forward(self, input_ids=None, position_ids=None, **asked):
        return super().forward(input_ids, **asked)


class MixesTokens(LlamaForCausalLM):
    """Adds to each token's input that of the one before, as a convolution would."""

    def forward(self, input_ids=None, **asked):
        x = self.model.embed_tokens(input_ids)
        x = x + torch.nn.functional.pad(x, (0, 0, 1, 0))[:, :-1]
        return super().forward(inputs_embeds=x, **asked)


class TakesNoMore(LlamaForCausalLM):
    def forward(self, input_ids=None, use_cache=None):
        return super().forward(input_ids=input_ids, use_cache=use_cache)


def as_a(kind):
    model = hf_tiny()
    model.__class__ = kind
    return model


def test_each_kind_of_misfit_is_found_and_run_alone():
    for kind, why in (
        (IgnoresPositions, "continued texts get other scores"),
        (MixesTokens, "packed texts get other scores"),
        (TakesNoMore, "packed texts fail in it (TypeError"),
    ):
        theirs = as_a(kind)
        model = load_model(theirs)
        assert not model.remembers and why in model.notes[-1]
        got = torch.from_numpy(model.score([span(IDS)]).rows())
        torch.testing.assert_close(got, hf_logits(theirs, IDS), rtol=0, atol=1e-4)


def test_layers_that_do_not_say_the_window_of_the_config():
    theirs = hf_tiny()
    theirs.config.sliding_window = 100
    assert "do not say their windows" in load_model(theirs).notes[-1]


def test_a_context_shorter_than_the_check():
    model = load_model(hf_tiny(max_position_embeddings=3))
    assert model.remembers and model.context == 3
