"""A head says of a row what the whole row would say, or marks it short."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unspool.kernels.reading.head import Head
from unspool.kernels.reading.logits import logits_of
from unspool.kernels.reading.plain import log_sum_exp

LOGITS = st.sampled_from([-np.inf, -3.0, -1.0, 0.0, 0.5, 1.0, 4.0])
FINE = st.sampled_from([-np.inf, -3.0, 0.0, 1.0, 1.0 + 2**-52, 4.0])
SIZES = st.tuples(st.integers(1, 3), st.integers(1, 12))
ROWS = st.one_of(arrays(np.float64, SIZES, elements=FINE),
                 arrays(np.float32, SIZES, elements=LOGITS))


def head_of(rows, size):
    """Of all rows, in order."""
    rows = np.asarray(rows)
    return Head(logits_of(rows), range(len(rows)), size)


def best_first(row):
    return sorted(range(len(row)), key=lambda i: (-row[i], i))


@given(ROWS, st.integers(1, 12))
def test_a_head_of_any_size_knows_the_row(rows, size):
    rows[:, 0] = 2.0  # something is left in every row
    head = head_of(rows, size)
    for r, row in enumerate(rows.astype(np.float64)):
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
    rows[:, 0] = 2.0
    head = head_of(rows, size)
    for r, row in enumerate(rows.astype(np.float64)):
        p = np.exp(row - log_sum_exp(row))
        want = [sum(p[j] for j in best_first(row)[:place]) for place in range(head.ids.shape[1])]
        assert head.above[r].tolist() == pytest.approx(want, abs=1e-12)


@settings(max_examples=200)
@given(ROWS, st.integers(1, 12), st.lists(st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0]), max_size=3))
def test_division_reaches_what_lies_beyond_the_head(rows, size, temperatures):
    """Also when the factors cancel, and for rows whose maximum is not 0."""
    rows[:, 0] = 2.0
    head = head_of(rows, size)
    for t in temperatures:
        head.divide(np.full((len(rows), 1), t))
    want = rows.astype(np.float64) / np.prod(temperatures)
    for r in range(len(rows)):
        peak = head.full(r).max()
        assert head.full(r) - peak == pytest.approx(want[r] - want[r].max(), abs=1e-12)
        assert head.values[r] == pytest.approx(head.full(r)[head.ids[r]], abs=1e-12)
        assert head.log_sum_exp[r, 0] - peak == pytest.approx(
            log_sum_exp(want[r])[0] - want[r].max(), abs=1e-12)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_rule_may_replace_the_values(kind):
    """Then the sum is that of what it made of them, and of the rest as it was."""
    head = head_of(np.array([[3.0, 1.0, 2.0, 0.0]], kind), 2)
    head.values = head.values - 1
    assert head.log_sum_exp[0, 0] == pytest.approx(np.log(np.exp([2.0, 1.0, 1.0, 0.0]).sum()))
    with pytest.raises(ValueError, match="read-only"):
        head_of(np.array([[3.0, 1.0]], kind), 2).values[0, 0] = 9


def test_a_row_each_has_its_own_temperature():
    head = head_of([[1.0, 3.0, 2.0], [1.0, 3.0, 2.0]], 2)
    head.divide(np.array([[1.0], [0.5]]))
    assert head.all().tolist() == [[-2.0, 0.0, -1.0], [-4.0, 0.0, -2.0]]


def test_a_tiny_temperature_overflows_to_a_cut_without_nan():
    head = head_of([[1.0, 3.0, 3.0, -np.inf]], 4)
    head.divide(np.array([[1e-310]]))
    assert head.values.tolist() == [[0.0, 0.0, -np.inf, -np.inf]]


def test_a_cut_within_the_head_makes_the_row_whole():
    head = head_of([[1.0, 5.0, 3.0, 2.0]], 3)
    head.cut_tail(head.rank >= 2)
    assert head.whole.all() and head.outside.tolist() == [[-np.inf]]
    assert head.full(0).tolist() == [-np.inf, 5.0, 3.0, -np.inf]
    assert head.short.tolist() == [False]


def test_a_cut_that_may_reach_further_marks_its_row_alone():
    head = head_of([[1.0, 5.0, 3.0, 2.0], [0.0, 9.0, 1.0, 2.0]], 3)
    head.cut_tail(np.array([[False, True, True], [False, False, False]]))
    assert head.short.tolist() == [False, True]
    assert head.full(0).tolist() == [-np.inf, 5.0, -np.inf, -np.inf]
    head.cut_tail(head.rank >= 1)
    assert head.short.tolist() == [False, True]


def test_the_likeliest_token_is_never_cut():
    head = head_of([[1.0, 5.0]], 2)
    head.cut_tail(np.ones((1, 2), dtype=bool))
    assert head.full(0).tolist() == [-np.inf, 5.0]


def test_a_head_may_be_of_some_rows_in_any_order():
    rows = np.random.default_rng(1).normal(size=(4, 9))
    head, every = Head(logits_of(rows), [3, 1], 4), head_of(rows, 4)
    assert (head.ids == every.ids[[3, 1]]).all() and (head.all() == rows[[3, 1]]).all()
    for one in (head, every):
        one.divide(np.full((len(one.ids), 1), 0.5))
    assert (head.log_sum_exp == every.log_sum_exp[[3, 1]]).all()
    assert (head.outside == every.outside[[3, 1]]).all()


def test_a_row_in_which_nothing_is_left_stays_empty():
    head = head_of(np.full((1, 4), -np.inf), 2)
    head.divide(np.array([[0.5]]))
    assert not np.isfinite(head.values).any() and not np.isfinite(head.full(0)).any()
