"""DoLa by the paper's definition, and which layers are candidates."""
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixes_zoo import OUT, agree, blended, logs, probabilities, random_rows

from unspool.core.errors import ParameterError
from unspool.core.sockets import Heard
from unspool.mixes import Dola, buckets
from unspool.mixes.layers import jensen_shannon
from unspool.mixes.rows import log_softmax


def kl(p, q):
    return math.fsum(x * math.log(x / y) for x, y in zip(p, q, strict=True) if x > 0)


def divergence(p, q):
    """Jensen-Shannon: how far both lie from their mean."""
    mean = [(x + y) / 2 for x, y in zip(p, q, strict=True)]
    return (kl(p, mean) + kl(q, mean)) / 2


def by_definition(own, inner, cut=0.1):
    p = probabilities(own)
    far = {j: divergence(p, probabilities(row)) for j, row in inner.items()}
    chosen = logs(inner[max(far, key=far.get)])
    return [math.log(x) - y if x >= cut * max(p) else OUT for x, y in zip(p, chosen, strict=True)]


@given(st.integers(0, 10**6), st.integers(3, 50), st.floats(0.1, 8))
def test_the_divergence_by_definition(seed, vocab, spread):
    p, q = random_rows(seed, 2, vocab, spread)
    found = jensen_shannon(log_softmax(p), log_softmax(q))
    assert found == pytest.approx(divergence(probabilities(p), probabilities(q)), abs=1e-12)
    assert found == jensen_shannon(log_softmax(q), log_softmax(p))
    assert -1e-12 <= found <= math.log(2) + 1e-12


def test_the_divergence_at_its_ends():
    apart = [log_softmax(row) for row in ([0.0, OUT, OUT], [OUT, 3.0, 3.0], [-2000.0, 0.0, 0.0])]
    assert jensen_shannon(apart[0], apart[0]) == 0
    assert jensen_shannon(apart[0], apart[1]) == pytest.approx(math.log(2))
    assert jensen_shannon(apart[0], apart[2]) == pytest.approx(math.log(2))


@pytest.mark.parametrize("vocab", [3, 10, 50])
@pytest.mark.parametrize("seed", range(5))
def test_by_definition(seed, vocab):
    own, *rows = random_rows(seed, 5, vocab).tolist()
    inner = dict(zip((0, 2, 4, 6), rows, strict=True))
    agree(blended(Dola((0, 2, 4, 6)), own, inner=inner), by_definition(own, inner))


def test_each_row_has_its_own_premature_layer():
    """An average over the rows would choose one layer for both."""
    own = np.zeros((2, 3))
    near, far = [0.0, 0.1, 0.0], [3.0, 0.0, 0.0]
    out = Dola((1, 3)).blend(Heard(own, inner={1: np.array([near, far]), 3: np.array([far, near])}))
    agree(out[0], out[1])
    agree(out[0], [x - y for x, y in zip(logs([0.0] * 3), logs(far), strict=True)])


def test_the_other_divergence_of_transformers_would_choose_otherwise():
    """transformers 4.55 takes KL(mean | p), which is not the paper's."""
    p, one, two = [0.4, 0.2, 0.4], [0.01, 0.5, 0.49], [0.1, 0.8, 0.1]

    def theirs(q):
        mean = [(x + y) / 2 for x, y in zip(p, q, strict=True)]
        return (kl(mean, p) + kl(mean, q)) / 2

    assert theirs(one) > theirs(two) and divergence(p, one) < divergence(p, two)
    out = blended(Dola((1, 2), 0), np.log(p), inner={1: np.log(one), 2: np.log(two)})
    agree(out, np.log(p) - np.log(two))


def test_of_equally_far_layers_the_first():
    own, row, turned = [1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
    for first, second in ((row, turned), (turned, row)):
        out = blended(Dola((1, 2)), own, inner={1: first, 2: second})
        agree(out, [x - y for x, y in zip(logs(own), logs(first), strict=True)])


def test_a_layer_that_says_the_same_leaves_the_plausible_equal():
    own = [3.0, 2.5, -9.0]
    assert blended(Dola((1,)), own, inner={1: own}).tolist() == [0.0, 0.0, OUT]


@pytest.mark.parametrize(("layers", "tied", "which", "want"), [
    (32, False, "low", range(0, 16, 2)), (32, False, "high", range(16, 32, 2)),
    (32, True, "low", range(2, 16, 2)), (32, True, "high", range(16, 32, 2)),
    (30, True, "low", range(2, 15, 2)), (30, True, "high", range(15, 30, 2)),
    (40, False, "low", range(0, 20, 2)), (40, False, "high", range(20, 40, 2)),
    (41, False, "low", range(0, 20, 2)), (41, False, "high", range(21, 41, 2)),
    (80, True, "low", range(2, 20, 2)), (80, True, "high", range(60, 80, 2)),
    (5, True, "low", [2]), (4, True, "low", [2]), (3, True, "low", [2]), (2, True, "low", [1]),
    (1, False, "low", [0]), (1, False, "high", [0]), (2, True, "high", [1])])
def test_the_buckets(layers, tied, which, want):
    assert buckets(layers, tied, which) == tuple(want)


@given(st.integers(2, 120), st.booleans(), st.sampled_from(["low", "high"]))
def test_the_buckets_lie_in_the_model(layers, tied, which):
    found = buckets(layers, tied, which)
    assert found and all(0 <= layer < layers for layer in found)
    assert not (tied and 0 in found)


def test_a_list_is_checked_and_put_in_order():
    assert buckets(8, True, [6, 2, 2, 0]) == (0, 2, 6)


@pytest.mark.parametrize(("layers", "tied", "which"), [
    (8, False, [8]), (8, False, [-1]), (8, False, [True]), (8, False, [1.0]), (8, False, []),
    (8, False, "middle"), (0, False, "low"), (0, False, [0]), (1, True, "low"), (1, True, "high")])
def test_what_the_model_has_not_is_refused_by_name(layers, tied, which):
    with pytest.raises(ParameterError, match="dola_layers") as caught:
        buckets(layers, tied, which)
    assert caught.value.name == "dola_layers"


def test_a_mix_without_layers_is_refused():
    with pytest.raises(ParameterError, match="dola_layers"):
        Dola(())
    assert Dola((1, 3)).layers == (1, 3)
