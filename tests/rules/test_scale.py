"""Temperature: logits over t, for each row its own, and its two ends."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unspool.engine.shape import shape
from unspool.rules import temperature, top_p

ROW = arrays(np.float64, st.integers(2, 20), elements=st.floats(-50, 50))


def probabilities(row, *rules, top=512):
    [shaped] = shape(np.asarray(row)[None], [rules], [(None,) * len(rules)], top)
    p = np.zeros(len(row))
    p[shaped.ids] = np.exp(shaped.values - shaped.norm)
    return p


def softmax(row):
    p = np.exp(row - row.max())
    return p / p.sum()


@given(ROW, st.floats(0.05, 50), st.integers(1, 20))
def test_it_is_the_softmax_of_the_divided_row(row, t, top):
    assert probabilities(row, temperature(t), top=top) == pytest.approx(softmax(row / t), abs=1e-12)


@given(ROW, st.floats(0.1, 10), st.floats(0.1, 10))
def test_two_temperatures_are_their_product(row, a, b):
    one = probabilities(row, temperature(a), temperature(b), top=3)
    assert one == pytest.approx(probabilities(row, temperature(a * b)), abs=1e-12)


@given(ROW)
def test_one_changes_nothing(row):
    for top in (1, 512):
        assert probabilities(row, temperature(1), top=top) == pytest.approx(softmax(row), abs=1e-12)


@pytest.mark.parametrize("peak", [-40.0, 0.0, 40.0])
@pytest.mark.parametrize("t", [(1.0,), (2.0, 0.5), (0.7,)])
def test_where_the_row_lies_does_not_matter(peak, t):
    """A rule behind it sees the mass beyond the head, wherever the row lies."""
    row = np.array([0.0, -0.5, -1.0, -1.5, -2.0]) + peak
    rules = (*(temperature(x) for x in t), top_p(0.75))
    whole = probabilities(row, *rules)
    assert (whole > 0).tolist() == (probabilities(row - peak, *rules) > 0).tolist()
    for top in (1, 2, 3, 4):
        assert probabilities(row, *rules, top=top) == pytest.approx(whole, abs=1e-12)


@pytest.mark.parametrize("t", [1e-2, 1e-4, 1e-12, 1e-40, 1e-300, 5e-324])
def test_a_tiny_temperature_leaves_the_argmax(t):
    row = np.array([1.0, 3.0, 2.5, -np.inf, -100.0])
    assert probabilities(row, temperature(t)).tolist() == pytest.approx([0, 1, 0, 0, 0], abs=1e-12)


def test_a_huge_temperature_is_uniform():
    assert probabilities([1.0, 3.0, -900.0], temperature(1e300)) == pytest.approx([1 / 3] * 3)


def test_removed_tokens_stay_removed():
    row = np.array([0.0, -np.inf, 1.0])
    for t in (1e-300, 0.5, 2.0, 1e300):
        assert probabilities(row, temperature(t))[1] == 0


def test_each_row_of_a_batch_has_its_own():
    row = np.array([[0.0, 1.0, 2.0]] * 3)
    recipes = [(temperature(t),) for t in (0.5, 1.0, 2.0)]
    got = shape(row, recipes, [(None,)] * 3, top=2)
    for shaped, t in zip(got, (0.5, 1.0, 2.0), strict=True):
        p = np.zeros(3)
        p[shaped.ids] = np.exp(shaped.values - shaped.norm)
        assert p == pytest.approx(softmax(row[0] / t), abs=1e-12)
