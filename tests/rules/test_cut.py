"""Which tokens each cut keeps: by definition, at borders and ties, and that one always stays."""
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rules_zoo import kept

from unspool.rules import greedy, min_p, top_k, top_p

LOGITS = st.one_of(st.floats(-9, 9, width=32), st.sampled_from([0.0, 1.0, -np.inf]))
ROW = st.one_of(*[arrays(dtype, st.integers(1, 16), elements=LOGITS)
                  for dtype in (np.float64, np.float32)])
WAYS = pytest.mark.parametrize("dtype", [np.float64, np.float32])  # by definition, by kernels


def left_of(row, rule):
    """In the row's own type."""
    return kept(row, rule, dtype=row.dtype)


def best_first(row):
    return sorted((i for i in range(len(row)) if np.isfinite(row[i])), key=lambda i: (-row[i], i))


def softmax(row):
    row = row.astype(float)
    p = np.exp(row - row.max())
    return p / p.sum()


@given(ROW)
def test_greedy_keeps_the_first_of_the_likeliest(row):
    assume(np.isfinite(row).any())
    assert left_of(row, greedy()) == best_first(row)[:1]


@given(ROW, st.integers(1, 20))
def test_top_k_keeps_exactly_k(row, k):
    assert left_of(row, top_k(k)) == sorted(best_first(row)[:k])


@given(ROW, st.floats(0, 1))
def test_top_p_keeps_the_smallest_set_that_reaches_p(row, p):
    assume(np.isfinite(row).any())
    order = best_first(row)
    mass = np.cumsum(softmax(row)[order])
    assume(np.abs(mass - (p - 1e-6)).min() > 1e-9)  # not on the border itself
    size = next((n for n, m in enumerate(mass, 1) if m >= p - 1e-6), len(order))
    assert left_of(row, top_p(p)) == sorted(order[:size])


@given(ROW, st.floats(1e-6, 1))
def test_min_p_keeps_what_is_at_least_so_likely(row, p):
    assume(np.isfinite(row).any())
    share = np.exp(row.astype(float) - row.max())
    assume(np.abs(share - p).min() > 1e-9 or p == 1)
    want = [i for i in range(len(row)) if share[i] >= p]
    assert left_of(row, min_p(p)) == want


@WAYS
def test_ties_at_the_cut_go_to_the_lowest_id(dtype):
    row = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0]
    assert kept(row, greedy(), dtype=dtype) == [1]
    assert kept(row, top_k(2), dtype=dtype) == [1, 3]
    assert kept(row, top_k(4), dtype=dtype) == [0, 1, 3, 5]
    assert kept([0.0] * 4, top_p(0.5), dtype=dtype) == [0, 1]
    assert kept([0.0] * 4, top_p(0.51), dtype=dtype) == [0, 1, 2]
    assert kept([0.0] * 4, top_p(0.0), dtype=dtype) == [0]
    # no count is asked for: all the likeliest stay
    assert kept(row, min_p(1.0), dtype=dtype) == [1, 3, 5]


@WAYS
def test_ties_of_top_k_stay_when_that_is_asked(dtype):
    row = [1.0, 2.0, 1.0, 2.0, 0.0, 2.0, -np.inf]
    for k, want in [(1, [1, 3, 5]), (3, [1, 3, 5]), (4, [0, 1, 2, 3, 5]), (6, [0, 1, 2, 3, 4, 5]),
                    (0, [0, 1, 2, 3, 4, 5]), (99, [0, 1, 2, 3, 4, 5])]:
        assert kept(row, top_k(k, 1), dtype=dtype) == want


@WAYS
def test_a_thousand_equal_tokens(dtype):
    row = np.zeros(1000)
    assert kept(row, greedy(), dtype=dtype) == [0]
    assert kept(row, top_k(7), dtype=dtype) == list(range(7))
    assert kept(row, top_k(7, 1), dtype=dtype) == list(range(1000))
    assert kept(row, top_p(0.25), dtype=dtype) == list(range(250))


NEUTRAL = [top_k(0), top_k(-1), top_k(50), top_k(10**9), top_p(1.0), min_p(0.0), min_p(1e-300)]


@WAYS
@pytest.mark.parametrize("rule", NEUTRAL, ids=str)
def test_a_neutral_value_keeps_all(rule, dtype):
    """Also the tail of a row that is nearly sure of one token."""
    row = np.random.default_rng(0).normal(size=50)
    row[3] = 100
    assert kept(row, rule, dtype=dtype) == list(range(50))


@WAYS
@pytest.mark.parametrize("rule", [greedy(), top_k(1), top_p(0), top_p(1e-12), min_p(1)])
def test_one_token_always_stays(rule, dtype):
    assert kept([1.0, 3.0, 2.0, -np.inf], rule, dtype=dtype) == [1]
    assert kept([-np.inf, -np.inf, -700.0, -np.inf], rule, dtype=dtype) == [2]


@WAYS
def test_cuts_renormalise_one_after_the_other(dtype):
    row = np.log([0.4, 0.3, 0.2, 0.1])
    assert kept(row, top_k(2), top_p(0.55), dtype=dtype) == [0]
    assert kept(row, top_p(0.55), top_k(2), dtype=dtype) == [0, 1]
    assert kept(row, top_k(3), top_k(2), top_k(1), dtype=dtype) == [0]


@WAYS
def test_an_empty_row_stays_empty(dtype):
    """It is the engine that makes an error of it."""
    for rule in (greedy(), top_k(2), top_k(2, 1), top_p(0.5), min_p(0.5)):
        assert kept([-np.inf] * 3, rule, dtype=dtype) == []
