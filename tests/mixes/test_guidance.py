"""Guidance by definition, and as transformers has it."""
import numpy as np
import pytest
from mixes_zoo import OUT, VOICE, agree, blended, logs, random_rows

from unspool.core.errors import ParameterError
from unspool.mixes import Guidance


@pytest.mark.parametrize("vocab", [3, 8, 50])
@pytest.mark.parametrize("scale", [0, 0.5, 1, 1.8, 7.5])
def test_by_definition(scale, vocab):
    own, other = random_rows(vocab, 2, vocab)
    s, u = logs(own), logs(other)
    agree(blended(Guidance(scale, VOICE), own, other),
          [b + scale * (a - b) for a, b in zip(s, u, strict=True)])


def test_scale_1_is_the_own_distribution_and_0_the_other():
    own, other = random_rows(1, 2)
    agree(blended(Guidance(1, VOICE), own, other), logs(own), 1e-14)
    assert blended(Guidance(0, VOICE), own, other).tolist() == pytest.approx(logs(other))


def test_equal_voices_change_nothing():
    own = random_rows(2)[0]
    agree(blended(Guidance(3.0, VOICE), own, own), logs(own), 1e-13)
    agree(blended(Guidance(3.0, VOICE), own, own + 5), logs(own), 1e-12)


@pytest.mark.parametrize("scale", [1, 1.5, 6.0])
def test_it_is_the_processor_of_transformers(scale):
    torch = pytest.importorskip("torch")
    processors = pytest.importorskip("transformers.generation.logits_process")
    own, other = random_rows(3, 2, 40)

    class Model:
        def __call__(self, ids, **_):
            rows = torch.from_numpy(other).expand(1, ids.shape[1], -1)
            return type("Out", (), {"logits": rows, "get": lambda self, key, default: default})()

    theirs = processors.UnbatchedClassifierFreeGuidanceLogitsProcessor(scale, Model())
    want = theirs(torch.tensor([[1, 2]]), torch.from_numpy(own[None]))[0].numpy()
    agree(blended(Guidance(scale, VOICE), own, other), want, 1e-12)


def test_a_token_the_negative_prompt_rules_out_gains_and_one_it_is_sure_of_loses():
    own = np.log([0.5, 0.4, 0.1])
    out = blended(Guidance(2.0, VOICE), own, [4.0, OUT, OUT])
    agree(out, [2 * np.log(0.5), 2 * np.log(0.4) + np.log(3), 2 * np.log(0.1) + np.log(3)])
    assert out[1] > out[0]
    assert blended(Guidance(2.0, VOICE), [0.0, OUT, 1.0], [1.0, 5.0, 0.0])[1] == OUT
    assert blended(Guidance(0, VOICE), [0.0, OUT, 1.0], [1.0, 5.0, 0.0])[1] == OUT


def test_a_bad_scale_is_refused_by_name():
    with pytest.raises(ParameterError, match="guidance_scale=2000"):
        Guidance(2000, VOICE)
