"""Which tokens each cut keeps: by definition, at borders and ties, and that one always stays."""
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unspool.engine.shape import shape
from unspool.rules import greedy, min_p, top_k, top_p

ROW = arrays(np.float64, st.integers(1, 16),
             elements=st.one_of(st.floats(-9, 9), st.sampled_from([0.0, 1.0, -np.inf])))


def kept(row, *rules, top=512):
    [shaped] = shape(np.asarray(row, dtype=float)[None], [rules], [(None,) * len(rules)], top)
    return sorted(shaped.ids.tolist())


def best_first(row):
    return sorted((i for i in range(len(row)) if np.isfinite(row[i])), key=lambda i: (-row[i], i))


def softmax(row):
    p = np.exp(row - row.max())
    return p / p.sum()


@given(ROW, st.integers(1, 16))
def test_greedy_keeps_the_first_of_the_likeliest(row, top):
    assume(np.isfinite(row).any())
    assert kept(row, greedy(), top=top) == best_first(row)[:1]


@given(ROW, st.integers(1, 20), st.integers(1, 16))
def test_top_k_keeps_exactly_k(row, k, top):
    assert kept(row, top_k(k), top=top) == sorted(best_first(row)[:k])


@given(ROW, st.floats(0, 1), st.integers(1, 16))
def test_top_p_keeps_the_smallest_set_that_reaches_p(row, p, top):
    assume(np.isfinite(row).any())
    order = best_first(row)
    mass = np.cumsum(softmax(row)[order])
    assume(np.abs(mass - (p - 1e-6)).min() > 1e-9)  # not on the border itself
    size = next((n for n, m in enumerate(mass, 1) if m >= p - 1e-6), len(order))
    assert kept(row, top_p(p), top=top) == sorted(order[:size])


@given(ROW, st.floats(1e-6, 1), st.integers(1, 16))
def test_min_p_keeps_what_is_at_least_so_likely(row, p, top):
    assume(np.isfinite(row).any())
    share = np.exp(row - row.max())
    assume(np.abs(share - p).min() > 1e-9 or p == 1)
    want = [i for i in range(len(row)) if share[i] >= p]
    assert kept(row, min_p(p), top=top) == want


def test_ties_at_the_cut_go_to_the_lowest_id():
    row = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0]
    assert kept(row, greedy()) == [1]
    assert kept(row, top_k(2)) == [1, 3]
    assert kept(row, top_k(4)) == [0, 1, 3, 5]
    assert kept([0.0] * 4, top_p(0.5)) == [0, 1]
    assert kept([0.0] * 4, top_p(0.51)) == [0, 1, 2]
    assert kept([0.0] * 4, top_p(0.0)) == [0]
    assert kept(row, min_p(1.0)) == [1, 3, 5]  # no count is asked for: all the likeliest stay


@pytest.mark.parametrize("top", [1, 2, 3, 100])
def test_a_thousand_equal_tokens(top):
    row = np.zeros(1000)
    assert kept(row, greedy(), top=top) == [0]
    assert kept(row, top_k(7), top=top) == list(range(7))
    assert kept(row, top_p(0.25), top=top) == list(range(250))


NEUTRAL = [top_k(0), top_k(-1), top_k(50), top_k(10**9), top_p(1.0), min_p(0.0), min_p(1e-300)]


@pytest.mark.parametrize("rule", NEUTRAL, ids=str)
def test_a_neutral_value_keeps_all(rule):
    """Also the tail of a row that is nearly sure of one token."""
    row = np.random.default_rng(0).normal(size=50)
    row[3] = 100
    for top in (4, 50, 512):
        assert kept(row, rule, top=top) == list(range(50))


@pytest.mark.parametrize("rule", [greedy(), top_k(1), top_p(0), top_p(1e-12), min_p(1)])
@pytest.mark.parametrize("top", [1, 2, 4])
def test_one_token_always_stays(rule, top):
    assert kept([1.0, 3.0, 2.0, -np.inf], rule, top=top) == [1]
    assert kept([-np.inf, -np.inf, -700.0, -np.inf], rule, top=top) == [2]


def test_cuts_renormalise_one_after_the_other():
    row = np.log([0.4, 0.3, 0.2, 0.1])
    assert kept(row, top_k(2), top_p(0.55)) == [0]
    assert kept(row, top_p(0.55), top_k(2)) == [0, 1]
    assert kept(row, top_k(3), top_k(2), top_k(1)) == [0]


def test_an_empty_row_stays_empty():
    """It is the engine that makes an error of it."""
    for rule in (greedy(), top_k(2), top_p(0.5), min_p(0.5)):
        assert kept([-np.inf] * 3, rule, top=2) == []
