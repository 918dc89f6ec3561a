"""Adaptive-p: the curve around the target, how the target moves, and that it is reached."""
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rules_zoo import lefts

from unspool.core.prefix import Candidate
from unspool.engine.row import Row
from unspool.kernels.reading.logits import logits_of
from unspool.rules import adaptive_p, min_p, temperature, top_k
from unspool.rules.plain import Seat

LOGITS = st.one_of(st.floats(-9, 9, width=32), st.sampled_from([0.0, 1.0, -np.inf]))
ROW = st.one_of(*[arrays(dtype, st.integers(1, 40), elements=LOGITS)
                  for dtype in (np.float64, np.float32)]).filter(lambda x: np.isfinite(x).any())
WAYS = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def left(row, *rules, dtype, state=None):
    """By id, what adaptive-p, the last of the rules, makes of the values."""
    states = tuple(rule.start(()) for rule in rules)
    seat = Seat(rules, states if state is None else (*states[:-1], state))
    [found] = lefts(np.asarray(row, dtype)[None], [seat])
    return dict(zip(found.ids.tolist(), found.values.tolist(), strict=True))


@given(ROW, st.floats(0, 1), st.floats(0, 1), st.booleans())
def test_it_is_the_curve_around_what_is_wanted_now(row, target, mean, listed):
    finite = [float(x) for x in row if x > -np.inf]
    total = sum(exp(x - max(finite)) for x in finite)
    wanted = min(max(2 * target - mean, 0.0), 1.0)
    want = {}
    for i, x in enumerate(map(float, row)):
        if x > -np.inf:
            d = abs(exp(x - max(finite)) / total - wanted) / 0.3
            want[i] = 5 - 10 * d * d / (1 + d)
    rules = ((top_k(40),) if listed else ()) + (adaptive_p(target, 0.9),)
    got = left(row, *rules, dtype=row.dtype, state=(4 * mean, 4.0))
    assert got == pytest.approx(want, abs=1e-5)


@WAYS
def test_by_hand(dtype):
    row = np.log([0.6, 0.3, 0.1])
    # wanted 0.3, as if it had been met: distances 1, 0, 2/3
    got = left(row, adaptive_p(0.3, 0.9), dtype=dtype)
    assert got == pytest.approx({0: 0.0, 1: 5.0, 2: 5 - 10 * (4 / 9) / (5 / 3)}, abs=1e-6)
    # the mean was 0.6, so nothing above 0 is wanted: distances 2, 1, 1/3
    got = left(row, adaptive_p(0.3, 0.9), dtype=dtype, state=(6.0, 10.0))
    assert got == pytest.approx({0: 5 - 40 / 3, 1: 0.0, 2: 5 - (10 / 9) / (4 / 3)}, abs=1e-5)
    # the distribution after a temperature and a cut is what counts: 0.8 and 0.2
    got = left(row, temperature(0.5), top_k(2), adaptive_p(0.2, 0.9), dtype=dtype)
    assert got == pytest.approx({0: 5 - 40 / 3, 1: 5.0}, abs=1e-5)


@WAYS
def test_a_list_is_in_order_again(dtype):
    row = np.log([0.6, 0.3, 0.1])
    rules = (top_k(3), adaptive_p(0.3, 0.9), top_k(1))
    seat = Seat(rules, tuple(rule.start(()) for rule in rules))
    [found] = lefts(row[None].astype(dtype), [seat])
    assert found.ids.tolist() == [1]


@WAYS
def test_removed_tokens_stay_removed(dtype):
    assert left([1.0, -np.inf, 0.0], adaptive_p(0.0, 0.9), dtype=dtype).keys() == {0, 2}


@WAYS
def test_a_negative_target_changes_nothing(dtype):
    row = np.random.default_rng(0).normal(size=50).astype(dtype)
    for before in ((), (top_k(20),)):
        got = left(row, *before, adaptive_p(-1, 0.9), dtype=dtype)
        assert got == {i: float(row[i]) for i in got}


# ── how the target moves ─────────────────────────────────────────────────────────────────────────
def chosen(probability, processed=-0.1):
    return Candidate(0, -1.0, processed, 1, -1.0, entry=log(probability))


def test_it_remembers_the_probability_before_the_rule():
    rule = adaptive_p(0.4, 0.75)
    state = rule.start((1, 2))
    assert state == pytest.approx((1.6, 4.0))
    one = rule.after(state, 7, chosen(0.2))
    assert one == pytest.approx((0.2 + 0.75 * 1.6, 4.0))  # the weight is where it stays
    assert rule.after(one, 7, chosen(0.9)) == pytest.approx((0.9 + 0.75 * 1.4, 4.0))
    assert rule.after(one, 7, chosen(0.1)) == pytest.approx((0.1 + 0.75 * 1.4, 4.0))
    assert adaptive_p(0.4, 1.0).start(()) == pytest.approx((40, 100))  # decay is at most 0.99


def test_a_row_tells_the_probability_before_the_rule():
    row = np.log([[0.6, 0.3, 0.1]])
    for dtype in (np.float64, np.float32):
        rules = (top_k(2), adaptive_p(0.3, 0.9))
        states = tuple(rule.start(()) for rule in rules)
        fact = Row(logits_of(row.astype(dtype)), 0, Seat(rules, states)).candidate(1)
        assert fact.entry == pytest.approx(log(1 / 3), abs=1e-6)
        # distances 11/9 and 1/9, so -1.7222 and 4.8889: a gap of 6.6111
        assert fact.processed == pytest.approx(-log(1 + exp(-6.6111)), abs=1e-5)


@pytest.mark.parametrize("target", [0.3, 0.5])
def test_the_chosen_tokens_are_as_likely_as_was_asked_for(target):
    rules, noise = (min_p(0.02), adaptive_p(target, 0.9)), np.random.default_rng(0)
    states, found = tuple(rule.start(()) for rule in rules), []
    for position in range(500):
        values = noise.normal(0, 1.5, (1, 8)).astype(np.float32)
        row = Row(logits_of(values), 0, Seat(rules, states, None, (9, 0, position, 0), True))
        fact = row.candidate(row.pick[0])
        found.append(exp(fact.entry))
        states = (None, rules[1].after(states[1], fact.token, fact))
    assert np.mean(found) == pytest.approx(target, abs=0.06)
