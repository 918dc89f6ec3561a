"""Mirostat: what mu leaves, how mu follows the written tokens, and that it reaches its target."""
from math import floor, inf, log, log2

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rules_zoo import lefts

from unspool.core.prefix import Candidate
from unspool.engine.row import Row
from unspool.kernels.reading.logits import logits_of
from unspool.rules import mirostat_1, mirostat_2, temperature, top_k
from unspool.rules.plain import Seat

LOGITS = st.one_of(st.floats(-9, 9, width=32), st.sampled_from([0.0, 1.0, -np.inf]))
ROW = st.one_of(*[arrays(dtype, st.integers(1, 150), elements=LOGITS)
                  for dtype in (np.float64, np.float32)]).filter(lambda x: np.isfinite(x).any())
WAYS = pytest.mark.parametrize("dtype", [np.float64, np.float32])
BOTH = pytest.mark.parametrize("make", [mirostat_1, mirostat_2])


def kept(row, make, mu, *, dtype, before=()):
    rules = (*before, make(5, 0.1))
    seat = Seat(rules, (*[None] * len(before), mu))
    [left] = lefts(np.asarray(row, dtype)[None], [seat])
    return sorted(left.ids.tolist())


def best_first(row):
    return sorted((i for i in range(len(row)) if row[i] > -np.inf), key=lambda i: (-row[i], i))


# ── what mu leaves ───────────────────────────────────────────────────────────────────────────────
def zipf_k(values, mu, vocab):
    """As the paper's code and llama.cpp have it, k not yet whole. `values`: best first."""
    top = values[:100]
    products = squares = 0.0
    for i in range(len(top) - 1):
        t = log((i + 2) / (i + 1))
        products += t * (top[i] - top[i + 1])
        squares += t * t
    s = products / squares
    excess = s - 1
    return (excess * 2 ** mu / (1 - vocab ** -excess)) ** (1 / s)


@given(ROW, st.floats(0.1, 12))
def test_the_first_keeps_k_by_zipfs_law(row, mu):
    order = best_first(row)
    values = [float(row[i]) for i in order]
    assume(len(order) > 1 and values[0] - values[min(99, len(order) - 1)] > 0.5)
    k = zipf_k(values, mu, len(row))
    assume(abs(k - round(k)) > 1e-5 * k)
    assert kept(row, mirostat_1, mu, dtype=row.dtype) == sorted(order[:max(int(k), 1)])


@given(ROW, st.floats(-1, 12))
def test_the_second_keeps_what_surprises_no_more_than_mu(row, mu):
    weights = np.exp(row.astype(float) - row.max())
    surprise = [-log2(p) if p > 0 else inf for p in weights / weights.sum()]
    assume(min(abs(x - mu) for x in surprise) > 1e-6)
    order = best_first(row)
    want = [i for i in order if surprise[i] <= mu] or order[:1]
    assert kept(row, mirostat_2, mu, dtype=row.dtype) == sorted(want)


@WAYS
def test_by_hand(dtype):
    row = np.log([0.5, 0.25, 0.125, 0.0625, 0.0625])
    assert kept(row, mirostat_2, 2.5, dtype=dtype) == [0, 1]
    assert kept(row, mirostat_2, 3.5, dtype=dtype) == [0, 1, 2]
    assert kept(row, mirostat_2, 0.3, dtype=dtype) == [0]
    # falls 0.693, 0.693, 0.693, 0 over log 2, 3/2, 4/3, 5/4: s = 0.9609 / 0.7774 = 1.236,
    # k = (0.236 * 2 ** mu / (1 - 5 ** -0.236)) ** (1 / 1.236): 2.42 at mu 2, 4.25 at mu 3
    assert kept(row, mirostat_1, 2, dtype=dtype) == [0, 1]
    assert kept(row, mirostat_1, 3, dtype=dtype) == [0, 1, 2, 3]
    assert kept(row, mirostat_1, -9, dtype=dtype) == [0]
    assert kept(row, mirostat_1, 50, dtype=dtype) == [0, 1, 2, 3, 4]


@WAYS
def test_an_exponent_of_1_is_no_division_by_zero(dtype):
    """Zipf's law itself: k is 2 ** mu / log(vocabulary)."""
    row = -np.log(np.arange(1, 400))
    for mu in (3.0, 5.0, 8.0):
        k = floor(2 ** mu / log(399) + 1e-4)
        assert kept(row, mirostat_1, mu, dtype=dtype) == list(range(k))


@BOTH
@WAYS
def test_at_the_ends(make, dtype):
    assert kept([2.0], make, 0.1, dtype=dtype) == [0]
    assert kept([-np.inf, 2.0, -np.inf], make, 5, dtype=dtype) == [1]
    assert kept(np.zeros(300), make, 20, dtype=dtype) == list(range(300))
    assert kept(np.zeros(300), make, 1, dtype=dtype) == [0]
    assert kept([9.0, -np.inf, -900.0], make, 1, dtype=dtype) == [0]
    row = np.random.default_rng(0).normal(size=300)
    assert kept(row, make, 1e9, dtype=dtype) == list(range(300))
    assert kept(row, make, -1e9, dtype=dtype) == [int(row.argmax())]


@BOTH
@given(ROW, st.floats(0, 12), st.floats(0, 12))
def test_more_surprise_allowed_keeps_no_less(make, row, x, y):
    less = kept(row, make, min(x, y), dtype=row.dtype)
    assert set(less) <= set(kept(row, make, max(x, y), dtype=row.dtype))


@WAYS
def test_they_see_what_the_rules_before_them_left(dtype):
    row = np.log([0.5, 0.25, 0.125, 0.0625, 0.0625])
    # two are left, of 2/3 and 1/3: 0.58 and 1.58 bits
    assert kept(row, mirostat_2, 1.5, dtype=dtype, before=(top_k(2),)) == [0]
    assert kept(row, mirostat_2, 1.6, dtype=dtype, before=(top_k(2),)) == [0, 1]
    # flatter: 0.345, 0.244, 0.172, 0.122, 0.122
    assert kept(row, mirostat_2, 2.2, dtype=dtype, before=(temperature(2.0),)) == [0, 1]


# ── how mu follows ───────────────────────────────────────────────────────────────────────────────
def surprised(bits):
    return Candidate(0, -1.0, -bits * log(2), 1, -1.0)


@BOTH
def test_mu_moves_against_what_was_too_much(make):
    rule = make(5, 0.1)
    mu = rule.start((1, 2, 3))
    assert mu == 10
    mu = rule.after(mu, 7, surprised(3))
    assert mu == pytest.approx(10.2)
    assert rule.after(mu, 7, surprised(9)) == pytest.approx(9.8)
    assert mu == pytest.approx(10.2)  # the other branch of a fork has its own
    assert rule.after(mu, 7, surprised(inf)) == mu  # written by force, and not from these rows


@BOTH
def test_each_row_of_a_batch_has_its_own_mu(make):
    row = -0.5 * np.arange(60.0)
    for dtype in (np.float64, np.float32):
        rows = np.repeat(row[None], 3, 0).astype(dtype)
        seats = [Seat((make(5, 0.1),), (mu,)) for mu in (1.5, 3.0, 4.5)]
        got = [len(left.ids) for left in lefts(rows, seats)]
        assert got == [len(kept(row, make, mu, dtype=dtype)) for mu in (1.5, 3.0, 4.5)]
        assert got[0] < got[1] < got[2]


@BOTH
@pytest.mark.parametrize("tau", [2.0, 4.0])
def test_the_text_has_the_surprise_that_was_asked_for(make, tau):
    rule, noise = make(tau, 0.1), np.random.default_rng(0)
    state, bits = rule.start(()), []
    for position in range(600):
        values = noise.normal(0, 1.5, (1, 400)).astype(np.float32)
        row = Row(logits_of(values), 0, Seat((rule,), (state,), None, (9, 0, position, 0), True))
        fact = row.candidate(row.pick[0])
        assert fact.processed == pytest.approx(row.processed(fact.token))
        bits.append(-fact.processed / log(2))
        state = rule.after(state, fact.token, fact)
    assert np.mean(bits[100:]) == pytest.approx(tau, abs=0.1)
