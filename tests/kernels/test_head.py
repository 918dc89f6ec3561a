"""A head says of a row what the whole row would say, or that it cannot."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unspool.kernels.head import BeyondHead, Head, log_sum_exp, top_ids

LOGITS = st.sampled_from([-np.inf, -3.0, -1.0, 0.0, 0.5, 1.0, 1.0 + 2**-52, 4.0])
ROWS = arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 12)), elements=LOGITS)


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


@given(ROWS, st.integers(1, 12))
def test_a_head_of_any_size_knows_the_row(rows, size):
    head = Head(rows, size)
    for r, row in enumerate(rows):
        assert head.ids[r].tolist() == best_first(row)[:size]
        assert (head.values[r] == row[head.ids[r]]).all()
        assert head.maximum[r, 0] == row.max()
        assert head.whole[r, 0] == (size >= len(row))
        assert head.full(r).tolist() == row.tolist()
        rest = [row[i] for i in best_first(row)[size:]]
        assert head.outside[r, 0] == pytest.approx(
            log_sum_exp(np.array([*rest, -np.inf]))[0], abs=1e-12)
        assert head.log_sum_exp[r, 0] == pytest.approx(log_sum_exp(row)[0], abs=1e-12)


@given(ROWS, st.integers(1, 12))
def test_above_is_the_mass_of_the_likelier(rows, size):
    rows[:, 0] = 2.0  # something is left in every row
    head = Head(rows, size)
    for r, row in enumerate(rows):
        p = np.exp(row - log_sum_exp(row))
        want = [sum(p[j] for j in best_first(row)[:place]) for place in range(head.ids.shape[1])]
        assert head.above[r].tolist() == pytest.approx(want, abs=1e-12)


@settings(max_examples=200)
@given(ROWS, st.integers(1, 12), st.lists(st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0]), max_size=3))
def test_division_reaches_what_lies_beyond_the_head(rows, size, temperatures):
    """Also when the factors cancel, and for rows whose maximum is not 0."""
    rows[:, 0] = 2.0
    head = Head(rows, size)
    for t in temperatures:
        head.divide(np.full((len(rows), 1), t))
    want = rows / np.prod(temperatures)
    for r in range(len(rows)):
        peak = head.full(r).max()
        assert head.full(r) - peak == pytest.approx(want[r] - want[r].max(), abs=1e-12)
        assert head.values[r] == pytest.approx(head.full(r)[head.ids[r]], abs=1e-12)
        assert head.log_sum_exp[r, 0] - peak == pytest.approx(
            log_sum_exp(want[r])[0] - want[r].max(), abs=1e-12)


def test_a_row_each_has_its_own_temperature():
    rows = np.array([[1.0, 3.0, 2.0], [1.0, 3.0, 2.0]])
    head = Head(rows, 2)
    head.divide(np.array([[1.0], [0.5]]))
    assert head.all().tolist() == [[-2.0, 0.0, -1.0], [-4.0, 0.0, -2.0]]


def test_a_tiny_temperature_overflows_to_a_cut_without_nan():
    head = Head(np.array([[1.0, 3.0, 3.0, -np.inf]]), 4)
    head.divide(np.array([[1e-310]]))
    assert head.values.tolist() == [[0.0, 0.0, -np.inf, -np.inf]]


def test_a_cut_within_the_head_makes_the_row_whole():
    head = Head(np.array([[1.0, 5.0, 3.0, 2.0]]), 3)
    head.cut_tail(head.rank >= 2)
    assert head.whole.all() and head.outside.tolist() == [[-np.inf]]
    assert head.full(0).tolist() == [-np.inf, 5.0, 3.0, -np.inf]


def test_a_cut_that_may_reach_further_changes_nothing():
    head = Head(np.array([[1.0, 5.0, 3.0, 2.0], [0.0, 9.0, 1.0, 2.0]]), 3)
    with pytest.raises(BeyondHead):
        head.cut_tail(np.array([[False, True, True], [False, False, False]]))
    assert head.full(0).tolist() == [1.0, 5.0, 3.0, 2.0]
    assert head.full(1).tolist() == [0.0, 9.0, 1.0, 2.0]


def test_the_likeliest_token_is_never_cut():
    head = Head(np.array([[1.0, 5.0]]), 2)
    head.cut_tail(np.ones((1, 2), dtype=bool))
    assert head.full(0).tolist() == [-np.inf, 5.0]


def test_a_widened_head_is_the_same_rows():
    rows = np.random.default_rng(1).normal(size=(3, 9))
    head = Head(rows, 4)
    head.divide(np.array([[1.0], [0.5], [3.0]]))
    wide = head.widened()
    assert wide.ids.shape == (3, 9) and wide.whole.all()
    assert wide.all() == pytest.approx(head.all(), abs=1e-15)
    wide.divide(np.full((3, 1), 2.0))
    assert wide.all() == pytest.approx(head.all() / 2, abs=1e-15)


def test_widening_keeps_the_order_of_tokens_that_became_equal():
    head = Head(np.array([[1.0, 2.0, 3.0, 4.0]]), 2)
    for _ in range(2):
        head.divide(np.array([[1e300]]))
    assert head.all().tolist() == [[0.0] * 4]
    assert head.widened().ids.tolist() == [[3, 2, 1, 0]]


def test_a_row_in_which_nothing_is_left_stays_empty():
    head = Head(np.full((1, 4), -np.inf), 2)
    head.divide(np.array([[0.5]]))
    assert not np.isfinite(head.values).any() and not np.isfinite(head.full(0)).any()
