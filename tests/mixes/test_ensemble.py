import math

import numpy as np
import pytest
from mixes_zoo import OTHER, OUT, VOICE, agree, blended, logs, probabilities, random_rows, softmax

from unspool.core.errors import ParameterError
from unspool.core.schedule import Schedule
from unspool.mixes import Ensemble

THREE = (2.0, 1.0, 0.5)


@pytest.mark.parametrize("vocab", [3, 10, 50])
def test_by_definition(vocab):
    rows = random_rows(vocab, 3, vocab).tolist()
    shares = [w / sum(THREE) for w in THREE]
    ps = [probabilities(row) for row in rows]
    mixed = [math.log(math.fsum(w * p[i] for w, p in zip(shares, ps, strict=True)))
             for i in range(vocab)]
    product = [math.fsum(w * math.log(p[i]) for w, p in zip(shares, ps, strict=True))
               for i in range(vocab)]
    agree(blended(Ensemble(THREE, (VOICE, OTHER)), *rows), mixed)
    agree(blended(Ensemble(THREE, (VOICE, OTHER), "log"), *rows), product)


@pytest.mark.parametrize("kind", ["linear", "log"])
def test_identities(kind):
    own, one, two = random_rows(1, 3)
    agree(blended(Ensemble((3.0,), (), kind), own), logs(own), 1e-13)
    agree(blended(Ensemble((1.0, 0.0), (VOICE,), kind), own, one), logs(own), 1e-13)
    agree(blended(Ensemble((0.0, 5.0), (VOICE,), kind), own, one), logs(one), 1e-13)
    agree(blended(Ensemble((1.0, 4.0), (VOICE,), kind), own, own), logs(own), 1e-13)
    agree(blended(Ensemble(THREE, (VOICE, OTHER), kind), own, one, two),
          blended(Ensemble((20.0, 10.0, 5.0), (VOICE, OTHER), kind), own, one, two), 1e-13)
    agree(blended(Ensemble(THREE, (VOICE, OTHER), kind), own, one, two),
          blended(Ensemble((2.0, 0.5, 1.0), (OTHER, VOICE), kind), own, two, one), 1e-13)


def test_a_mixture_is_normalised():
    rows = random_rows(2, 3)
    assert np.exp(blended(Ensemble(THREE, (VOICE, OTHER)), *rows)).sum() == pytest.approx(1)


def test_one_model_is_enough_for_a_mixture_and_a_product_wants_both():
    sure, other = np.log([0.98, 0.01, 0.01]), np.log([0.01, 0.5, 0.49])
    even = (1.0, 1.0)
    agree(softmax(blended(Ensemble(even, (VOICE,)), sure, other)), [0.495, 0.255, 0.25])
    parts = np.sqrt([0.0098, 0.005, 0.0049])
    agree(softmax(blended(Ensemble(even, (VOICE,), "log"), sure, other)), parts / parts.sum())


def test_what_a_reader_rules_out():
    own, other = [0.0, 0.0, OUT, 0.0], [0.0, OUT, 5.0, OUT]
    third = 1 / 3
    agree(blended(Ensemble((1.0, 1.0), (VOICE,)), own, [0.0, OUT, OUT, OUT]),
          [math.log(0.5 * third + 0.5), math.log(third / 2), OUT, math.log(third / 2)])
    agree(blended(Ensemble((0.0, 1.0), (VOICE,)), own, other),
          [other[0] - math.log(1 + math.exp(5)), OUT, OUT, OUT])
    agree(blended(Ensemble((0.0, 1.0), (VOICE,)), own, [OUT, OUT, 1.0, OUT]), own)  # none is left
    product = blended(Ensemble((1.0, 1.0), (VOICE,), "log"), own, other)
    assert (product[[0, 1, 3]] > OUT).all() and product[2] == OUT


@pytest.mark.parametrize(("weights", "kind", "name"), [
    ((1.0,), "linear", "ensemble_weights"), ((1.0, -1.0), "linear", "ensemble_weights"),
    ((0.0, 0.0), "log", "ensemble_weights"), ((1.0, math.nan), "log", "ensemble_weights"),
    ((0.0, Schedule(((0, 1.0), (9, 0.0)))), "log", "ensemble_weights"),
    ((1.0, 1.0), "geometric", "ensemble_kind")])
def test_bad_values_are_refused_by_name(weights, kind, name):
    with pytest.raises(ParameterError, match=name) as caught:
        Ensemble(weights, (VOICE,), kind)
    assert caught.value.name == name


def test_a_weight_may_fall_to_0_while_another_rises():
    fades = Ensemble((Schedule(((0, 1.0), (9, 0.0))), Schedule(((0, 0.0), (9, 1.0)))), (VOICE,))
    assert fades.voices == (VOICE,)
