"""Temperatures that follow the entropy, and logits that fall off along a curve."""
from math import exp, log

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rules_zoo import left, probabilities

from unspool.rules import dynamic_temperature, smoothing, temperature, top_k

LOGITS = st.one_of(st.floats(-9, 9, width=32), st.sampled_from([0.0, 1.0, -np.inf]))
ROW = st.one_of(*[arrays(dtype, st.integers(1, 40), elements=LOGITS)
                  for dtype in (np.float64, np.float32)]).filter(lambda x: np.isfinite(x).any())
WAYS = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def softmax(values):
    values = [float(x) for x in values]
    weights = [exp(x - max(values)) for x in values]
    return np.array(weights) / sum(weights)


def dynamic(row, low, high, exponent):
    """Written out for one row."""
    finite = [float(x) for x in row if x > -np.inf]
    if len(finite) == 1:
        return 1.0
    entropy = -sum(p * log(p) for p in softmax(finite) if p > 0)
    share = min(max(entropy / log(len(finite)), 0.0), 1.0)
    return low + (high - low) * share ** exponent


# ── dynamic temperature ──────────────────────────────────────────────────────────────────────────
@given(ROW, st.floats(0.1, 3), st.floats(0.1, 3), st.sampled_from([0.0, 0.5, 1.0, 2.0]))
def test_it_is_the_temperature_of_the_rows_own_entropy(row, low, high, exponent):
    t = dynamic(row, low, high, exponent)
    got = probabilities(row, dynamic_temperature(low, high, exponent), dtype=row.dtype)
    assert got == pytest.approx(softmax([float(x) / t for x in row]), abs=1e-9)


@WAYS
def test_by_hand(dtype):
    row = np.log([0.5, 0.25, 0.25])  # 1.5 of 1.585 bits: a share of 0.9464
    for low, high, exponent, t in ((0.0, 1.0, 1, 0.9464), (0.5, 1.5, 2, 1.3956), (2, 1, 0, 1.0)):
        got = probabilities(row, dynamic_temperature(low, high, exponent), dtype=dtype)
        assert got == pytest.approx(softmax(row / t), abs=1e-4)
    four = np.zeros(4)  # it knows nothing: the highest temperature, which changes nothing here
    assert probabilities(four, dynamic_temperature(0.1, 9), dtype=dtype).tolist() == [0.25] * 4


@WAYS
def test_it_counts_the_tokens_that_are_left(dtype):
    row = np.array([2.0, 1.0, 0.0, -1.0])
    t = dynamic(row[:2], 0.5, 3, 1)
    got = probabilities(row, top_k(2), dynamic_temperature(0.5, 3), dtype=dtype)
    assert got[:2] == pytest.approx(softmax(row[:2] / t), abs=1e-12) and not got[2:].any()
    removed = np.array([2.0, 1.0, -np.inf, -np.inf])
    assert probabilities(removed, dynamic_temperature(0.5, 3), dtype=dtype) == pytest.approx(got)


@WAYS
def test_it_measures_the_row_as_it_is(dtype):
    row = np.array([2.0, 1.0, 0.0, -1.0])
    t = dynamic(row / 4, 0.5, 3, 1)
    got = probabilities(row, temperature(4), dynamic_temperature(0.5, 3), dtype=dtype)
    assert got == pytest.approx(softmax(row / 4 / t), abs=1e-12)


@WAYS
def test_a_temperature_of_0_leaves_the_likeliest(dtype):
    """It is what a row gets that is sure of one token, but for a rest."""
    got = probabilities([800.0, 0.0, -5.0], dynamic_temperature(0, 2), dtype=dtype)
    assert got.tolist() == [1, 0, 0]
    assert probabilities([3.0, -np.inf], dynamic_temperature(0, 2), dtype=dtype).tolist() == [1, 0]


@WAYS
def test_no_range_at_1_changes_no_bit(dtype):
    row = np.random.default_rng(0).normal(size=50).astype(dtype)
    for before in ((), (top_k(20),)):
        one = left(row, *before, dtype=dtype)
        other = left(row, *before, dynamic_temperature(1, 1), dtype=dtype)
        assert one.values.tolist() == other.values.tolist() and one.norm == other.norm


# ── smoothing ────────────────────────────────────────────────────────────────────────────────────
@given(ROW, st.floats(0.01, 2), st.floats(1, 3))
def test_it_is_the_curve(row, factor, curve):
    peak = float(row.max())
    k, s = (3 - curve) / 2, (curve - 1) / 2
    want = [-k * factor * (x - peak) ** 2 + s * factor * (x - peak) ** 3 + peak
            if x > -np.inf else -np.inf for x in map(float, row)]
    got = left(row, smoothing(factor, curve), dtype=row.dtype)
    assert got.values == pytest.approx([want[i] for i in got.ids], rel=1e-6, abs=1e-5)
    assert sorted(got.ids) == np.flatnonzero(row > -np.inf).tolist()


@WAYS
def test_smoothing_by_hand(dtype):
    row = [2.0, 1.0, 0.0, -np.inf]  # distances 0, -1, -2
    assert left(row, smoothing(0.5), dtype=dtype).values.tolist() == [2, 1.5, 0]
    assert left(row, smoothing(0.5, 3), dtype=dtype).values.tolist() == [2, 1.5, -2]
    assert left(row, smoothing(0.5, 2), dtype=dtype).values.tolist() == [2, 1.5, -1]
    listed = left(row, top_k(2), smoothing(0.5, 2), dtype=dtype)
    assert listed.values.tolist() == [2, 1.5] and listed.ids.tolist() == [0, 1]


@given(ROW, st.floats(0.01, 2), st.floats(1, 3))
def test_the_order_stays(row, factor, curve):
    finite = np.unique(row[row > -np.inf].astype(float))
    assume((np.diff(finite) > 0.1).all())  # else float32 makes neighbours one
    got = left(row, smoothing(factor, curve), dtype=row.dtype)
    back = np.full(len(row), -np.inf)
    back[got.ids] = got.values
    assert (np.argsort(-back, kind="stable") == np.argsort(-row, kind="stable")).all()


@WAYS
def test_a_curve_below_1_may_turn_the_order_round(dtype):
    """Then a list is put in order again."""
    row = [0.0, -1.0, -2.0, -9.0]  # curve 0, factor 1: 0, -1, -2, 243
    row_, got = np.array(row), left(row, top_k(4), smoothing(1.0, 0.0), dtype=dtype)
    want = -1.5 * row_ ** 2 - 0.5 * row_ ** 3
    assert dict(zip(got.ids.tolist(), got.values, strict=True)) == pytest.approx(
        dict(enumerate(want)))
    after = left(row, top_k(4), smoothing(1.0, 0.0), top_k(1), dtype=dtype)
    assert after.ids.tolist() == [3]


@WAYS
def test_factor_0_changes_no_bit(dtype):
    row = np.random.default_rng(0).normal(size=50).astype(dtype)
    for before in ((), (top_k(20),)):
        one = left(row, *before, dtype=dtype)
        other = left(row, *before, smoothing(0.0, 2), dtype=dtype)
        assert one.values.tolist() == other.values.tolist() and one.norm == other.norm
