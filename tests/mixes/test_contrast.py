"""Contrastive decoding by definition, and its plausible set on two real models."""
import numpy as np
import pytest
from mixes_zoo import OUT, VOICE, agree, blended, logs, probabilities, random_rows
from models_zoo import hf_logits, hf_tiny

from unspool.core.errors import ParameterError
from unspool.core.sockets import Heard
from unspool.mixes import Contrast


def by_definition(own, amateur, mix):
    p, heat = probabilities(own), mix.temperature
    if mix.form == "log":
        scores = [a - mix.weight * b
                  for a, b in zip(logs(own), logs([x / heat for x in amateur]), strict=True)]
    else:
        scores = [(1 + mix.weight) * a - mix.weight * b / heat
                  for a, b in zip(own, amateur, strict=True)]
    return [s if x >= mix.cut * max(p) else OUT for s, x in zip(scores, p, strict=True)]


@pytest.mark.parametrize("form", ["log", "logits"])
@pytest.mark.parametrize("vocab", [3, 10, 50])
@pytest.mark.parametrize(("cut", "weight", "heat"), [(0.1, 1, 1), (0.01, 0.5, 0.5), (0, 2, 3.0)])
def test_by_definition(cut, weight, heat, vocab, form):
    own, amateur = random_rows(vocab, 2, vocab).tolist()
    mix = Contrast(VOICE, cut, weight, heat, form)
    agree(blended(mix, own, amateur), by_definition(own, amateur, mix))


def test_a_model_against_itself_finds_the_plausible_equal():
    own = random_rows(1)[0]
    out = blended(Contrast(VOICE), own, own)
    kept = np.array(probabilities(own)) >= 0.1 * max(probabilities(own))
    assert out[kept].tolist() == [0.0] * kept.sum() and (out[~kept] == OUT).all()


def test_logits_against_themselves_stay():
    own = random_rows(2)[0]
    agree(blended(Contrast(VOICE, 0, 0.7, form="logits"), own, own), own, 1e-12)


def test_weight_0_is_the_cut_alone():
    own, amateur = random_rows(3, 2)
    out = blended(Contrast(VOICE, 0, 0), own, amateur)
    agree(out, logs(own), 1e-13)


def test_a_cut_of_1_is_greedy():
    own, amateur = random_rows(4, 2)
    assert np.flatnonzero(blended(Contrast(VOICE, 1), own, amateur) > OUT).tolist() == [
        np.argmax(own)]


def test_the_plausible_set_of_two_real_models():
    """A tiny Llama and a smaller one: brute force over the probabilities that torch gives."""
    torch = pytest.importorskip("torch")
    expert = hf_tiny(seed=1)
    amateur = hf_tiny(seed=2, hidden_size=16, intermediate_size=32, num_hidden_layers=1)
    ids = [3, 14, 15, 9, 26, 5]
    own, other = (hf_logits(model, ids).double() for model in (expert, amateur))
    p = torch.softmax(own, -1)
    kept = p >= 0.1 * p.max(-1, keepdim=True).values
    want = torch.log_softmax(own, -1) - torch.log_softmax(other / 0.5, -1)
    out = Contrast(VOICE, temperature=0.5).blend(Heard(own.numpy(), [other.numpy()]))
    assert ((out > OUT) == kept.numpy()).all() and 0 < kept.sum() < kept.numel()
    agree(out[kept.numpy()], want[kept].numpy(), 1e-12)


@pytest.mark.parametrize(("given", "name"), [
    ({"cut": 1.1}, "contrast_alpha"), ({"weight": -1}, "contrast_weight"),
    ({"temperature": 0}, "amateur_temperature"), ({"form": "sum"}, "contrast_form")])
def test_bad_values_are_refused_by_name(given, name):
    with pytest.raises(ParameterError, match=name) as caught:
        Contrast(VOICE, **given)
    assert caught.value.name == name
