"""Searches and guidance write what transformers' own `generate` writes: random models in float64.

64 requests of each kind; a few of them run by default, the others are slow. transformers adds up
scores in float32, so they are compared to five digits.
"""
import random

import pytest
import torch
from models_zoo import hf_tiny, native, rand_ids, span

from unspool.llm.facts import Facts
from unspool.llm.llm import LLM
from unspool.memories import Dense
from unspool.strategies.length import rank

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

COUNT, QUICK, VOCAB = 64, 8, 24
CASES = [*range(QUICK), *(pytest.param(i, marks=pytest.mark.slow) for i in range(QUICK, COUNT))]
SHAPED = (
    {"repetition_penalty": 1.3}, {"repetition_penalty": 0.8}, {"no_repeat_ngram_size": 2},
    {"repetition_penalty": 1.2, "no_repeat_ngram_size": 3}, {"min_new_tokens": 3},
    {"exponential_decay_length_penalty": [2, 1.5]}, {"suppress_tokens": [3, 4, 5, 6]},
    {"repetition_penalty": 1.1, "exponential_decay_length_penalty": [1, 1.1]})


class Pair:
    """The same weights in both, and one request for both."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.theirs = hf_tiny("llama", seed, vocab_size=VOCAB).double()
        self.prompt = rand_ids(seed, self.draw.randint(1, 9), vocab=VOCAB)[0]
        count = self.draw.choice((0, 1, 2, 5, 12))
        self.ends = sorted(self.draw.sample(range(VOCAB), count))
        model = native(self.theirs, "float64")
        self.ours = LLM(model, Facts("tiny", model.numerics, VOCAB, model.context, None,
                                     frozenset(self.ends)), Dense())

    def beams(self) -> dict:
        """Parameters of a beam search, in the names of both."""
        width = self.draw.randint(2, 6)
        return {"num_beams": width, "num_return_sequences": self.draw.randint(1, width),
                "max_new_tokens": self.draw.randint(3, 12),
                "length_penalty": self.draw.choice((0.0, 1.0, 0.6, 2.0, -1.0)),
                "early_stopping": self.draw.choice((False, True, "never"))}

    def peer(self, **params):
        """Their texts, ends included, and scores where a search has them."""
        ids = torch.tensor([self.prompt])
        own = {"do_sample": False, "eos_token_id": self.ends or None, "pad_token_id": 0,
               "return_dict_in_generate": True, "output_scores": True}
        with torch.no_grad():
            out = self.theirs.generate(ids, attention_mask=torch.ones_like(ids), **own | params)
        texts = [self.ended(row) for row in out.sequences[:, len(self.prompt):].tolist()]
        scores = getattr(out, "sequences_scores", None)
        return texts, [] if scores is None else scores.tolist()

    def ended(self, row: list[int]) -> list[int]:
        """Without what stands behind the end."""
        last = next((i for i, token in enumerate(row) if token in self.ends), len(row) - 1)
        return row[:last + 1]

    def mine(self, **params):
        out = self.ours.generate(self.prompt, **params)
        return [list(one.token_ids) for one in out.choices], [one.score for one in out.choices]


@pytest.fixture
def pair(request):
    """The case is the test's own parameter."""
    made = Pair(request.param)
    yield made
    made.ours.close()


def same(pair, params, more=None):
    """Texts in the same order with the same scores."""
    theirs, scores = pair.peer(**params)
    ours, own = pair.mine(**params, **more or {})
    assert ours == theirs
    assert own == pytest.approx(scores, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("pair", CASES, indirect=True)
def test_beams(pair):
    same(pair, pair.beams())


@pytest.mark.parametrize("pair", CASES, indirect=True)
def test_beams_with_rules_in_the_order_of_transformers(pair):
    """There they see log-probabilities, and the sums are not normalised unless that is asked."""
    rules = SHAPED[pair.draw.randrange(len(SHAPED))]
    params = pair.beams() | rules | {"renormalize_logits": pair.draw.random() < 0.3}
    if not pair.ends:
        params.pop("exponential_decay_length_penalty", None)  # theirs fails without an end token
    same(pair, params, {"order": "hf"})


@pytest.mark.parametrize("pair", [0], indirect=True)
def test_what_the_order_changes_in_a_beam_search_is_told(pair):
    params = {"num_beams": 2, "max_new_tokens": 3, "repetition_penalty": 1.3}
    note = "hf: rules see log-probabilities in a beam search"
    assert note in pair.ours.generate(pair.prompt, **params, order="hf").notes
    assert note not in pair.ours.generate(pair.prompt, **params).notes
    assert note not in pair.ours.generate(pair.prompt, num_beams=2, order="hf",
                                          max_new_tokens=3).notes


@pytest.mark.parametrize("pair", CASES, indirect=True)
def test_what_sampled_beams_are_worth(pair):
    """Their draws are their own; what a text is worth is not."""
    params = pair.beams() | {"do_sample": True, "top_k": 0, "renormalize_logits": True,
                             "temperature": pair.draw.choice((0.7, 1.0, 1.6))}
    torch.manual_seed(0)
    texts, scores = pair.peer(**params)
    for text, score in zip(texts, scores, strict=True):
        model, warmth = pair.ours.model, params["temperature"]
        rows = torch.from_numpy(model.score([span([*pair.prompt, *text][:-1])]).rows().copy())
        logs = torch.log_softmax(rows[-len(text):] / warmth, -1)
        total = float(logs[range(len(text)), text].sum())
        assert rank(total, len(text), "plain", params["length_penalty"]) == pytest.approx(
            score, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("pair", CASES, indirect=True)
def test_guidance(pair):
    """Greedy; without a negative prompt both read the last token of the prompt alone."""
    draw = pair.draw
    params = {"guidance_scale": draw.choice((1.5, 3.0, 0.0, -1.0)), "max_new_tokens": 8}
    ours, theirs = params | {"do_sample": False}, dict(params)
    if draw.random() < 0.6:
        negative = rand_ids(draw.randint(0, 99), draw.randint(1, 7), vocab=VOCAB)[0]
        ours["negative_prompt"] = negative
        theirs["negative_prompt_ids"] = torch.tensor([negative])
    assert pair.mine(**ours)[0] == pair.peer(**theirs)[0]
