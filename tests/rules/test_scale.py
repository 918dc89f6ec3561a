"""Temperature: logits over t, for each row its own, and its two ends."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rules_zoo import lefts, logs, plainly, probabilities

from unspool.rules import temperature, top_p

WAYS = pytest.mark.parametrize("dtype", [np.float64, np.float32])  # by definition, by kernels
TYPES = st.sampled_from([np.float64, np.float32])
ROW = arrays(np.float64, st.integers(2, 20), elements=st.floats(-50, 50, width=32))


def softmax(row):
    row = row.astype(float)
    p = np.exp(row - row.max())
    return p / p.sum()


@given(ROW, st.floats(0.05, 50), TYPES)
def test_it_is_the_softmax_of_the_divided_row(row, t, dtype):
    got = probabilities(row, temperature(t), dtype=dtype)
    assert got == pytest.approx(softmax(row / t), abs=1e-12)


@given(ROW, st.floats(0.1, 10), st.floats(0.1, 10), TYPES)
def test_two_temperatures_are_their_product(row, a, b, dtype):
    one = probabilities(row, temperature(a), temperature(b), dtype=dtype)
    assert one == pytest.approx(probabilities(row, temperature(a * b), dtype=dtype), abs=1e-12)


@given(ROW, TYPES)
def test_one_changes_nothing(row, dtype):
    got = probabilities(row, temperature(1), dtype=dtype)
    assert got.tolist() == probabilities(row, dtype=dtype).tolist()
    assert got == pytest.approx(softmax(row), abs=1e-12)


@WAYS
@pytest.mark.parametrize("peak", [-40.0, 0.0, 40.0])
@pytest.mark.parametrize("t", [(1.0,), (2.0, 0.5), (0.7,)])
def test_where_the_row_lies_does_not_matter(peak, t, dtype):
    """A cut behind it sees the mass of the whole row, wherever the row lies."""
    row = np.array([0.0, -0.5, -1.0, -1.5, -2.0])
    rules = (*(temperature(x) for x in t), top_p(0.75))
    moved = probabilities(row + peak, *rules, dtype=dtype)
    assert moved == pytest.approx(probabilities(row, *rules), abs=1e-12)
    assert 1 < (moved > 0).sum() < 5


@WAYS
@pytest.mark.parametrize("t", [1e-2, 1e-4, 1e-12, 1e-40, 1e-300, 5e-324])
def test_a_tiny_temperature_leaves_the_argmax(t, dtype):
    row = np.array([1.0, 3.0, 2.5, -np.inf, -100.0])
    cold = temperature(t)
    for rules in ((cold,), (cold, cold), (cold, top_p(0.9))):
        got = probabilities(row, *rules, dtype=dtype)
        assert got.tolist() == pytest.approx([0, 1, 0, 0, 0], abs=1e-12)


@WAYS
def test_a_huge_temperature_is_uniform(dtype):
    got = probabilities([1.0, 3.0, -900.0], temperature(1e300), dtype=dtype)
    assert got == pytest.approx([1 / 3] * 3)


@WAYS
def test_removed_tokens_stay_removed(dtype):
    row = np.array([0.0, -np.inf, 1.0])
    for t in (1e-300, 0.5, 2.0, 1e300):
        assert probabilities(row, temperature(t), dtype=dtype)[1] == 0


@WAYS
def test_each_row_of_a_batch_has_its_own(dtype):
    row = np.array([[0.0, 1.0, 2.0]] * 3, dtype)
    numbers = (0.5, 1.0, 2.0)
    got = lefts(row, [plainly(temperature(t)) for t in numbers])
    for left, t in zip(got, numbers, strict=True):
        assert np.exp(logs(left, 3)) == pytest.approx(softmax(row[0] / t), abs=1e-12)
