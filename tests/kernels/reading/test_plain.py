"""The plain functions on rows: the likeliest, sums that neither overflow nor make NaN."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unspool.kernels.reading.plain import Plain, log_sum_exp, top_ids

LOGITS = st.sampled_from([-np.inf, -3.0, -1.0, 0.0, 0.5, 1.0, 1.0 + 2**-52, 4.0])


def best_first(row):
    return sorted(range(len(row)), key=lambda i: (-row[i], i))


@given(arrays(np.float64, st.integers(1, 20), elements=LOGITS), st.integers(1, 24))
def test_top_ids_are_the_largest_and_ties_go_to_the_lowest(row, count):
    assert top_ids(row, count).tolist() == best_first(row)[:count]


def test_top_ids_of_a_long_row():
    row = np.random.default_rng(0).integers(0, 50, 5000).astype(float)
    for count in (1, 7, 512, 4999, 5000):
        assert top_ids(row, count).tolist() == best_first(row)[:count]


def test_log_sum_exp_neither_overflows_nor_makes_nan():
    values = np.array([[1000.0, 1000.0], [-1000.0, -np.inf], [-np.inf, -np.inf]])
    got = log_sum_exp(values)[:, 0]
    assert got[0] == pytest.approx(1000 + np.log(2)) and got[1] == -1000 and got[2] == -np.inf


def test_facts_of_a_row():
    [facts] = Plain(np.log([[0.5, 0.25, 0.25]]) + 3).facts
    assert facts[:5] == pytest.approx([3 + np.log(0.5), 0, 3, 1.5 * np.log(2), 0])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_no_distribution_is_at_fault(value):
    rows = np.full((2, 3), value)
    rows[1] = 0.0
    assert [facts[4] for facts in Plain(rows).facts] == [1, 0]
