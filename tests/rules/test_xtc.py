"""Exclude top choices: who goes, who is safe, and that one draw for each row decides."""
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rules_zoo import lefts

from unspool.kernels.reading.philox import draw, uniform
from unspool.rules import temperature, top_k, xtc
from unspool.rules.plain import Seat

LOGITS = st.one_of(st.floats(-9, 9, width=32), st.sampled_from([0.0, 1.0, -np.inf]))
ROW = st.one_of(*[arrays(dtype, st.integers(1, 100), elements=LOGITS)
                  for dtype in (np.float64, np.float32)]).filter(lambda x: np.isfinite(x).any())
WAYS = pytest.mark.parametrize("dtype", [np.float64, np.float32])
PROBS = [0.4, 0.25, 0.2, 0.1, 0.05]


def kept(row, *rules, dtype=np.float64, place=(1, 0, 0, 0)):
    seat = Seat(rules, (None,) * len(rules), None, place)
    [left] = lefts(np.asarray(row, dtype)[None], [seat])
    return sorted(left.ids.tolist())


def probs_of(row):
    p = np.exp(row.astype(float) - row.max())
    return p / p.sum()


@given(ROW, st.floats(0.001, 0.6), st.sets(st.integers(0, 99), max_size=3))
def test_all_likely_tokens_go_but_the_least_likely_of_them(row, threshold, safe):
    probs = probs_of(row)
    assume(np.abs(probs - threshold).min() > 1e-7)
    likely = [i for i in range(len(row)) if probs[i] >= threshold]
    likely.sort(key=lambda i: (-row[i], i))
    gone = set(likely[:-1])
    if gone & safe:
        gone = set()
    want = [i for i, x in enumerate(row) if x > -np.inf and i not in gone]
    assert kept(row, xtc(1, threshold, data=tuple(safe)), dtype=row.dtype) == want


@WAYS
def test_by_hand(dtype):
    row = np.log(PROBS)
    assert kept(row, xtc(1, 0.15), dtype=dtype) == [2, 3, 4]
    assert kept(row, xtc(1, 0.3), dtype=dtype) == [0, 1, 2, 3, 4]  # one alone is no choice
    assert kept(row, xtc(1, 0.5), dtype=dtype) == [0, 1, 2, 3, 4]
    assert kept(row, xtc(1, 0.01), dtype=dtype) == [4]
    assert kept(row, xtc(1, 0.0), dtype=dtype) == [4]
    assert kept(row, xtc(1, 0.15, data=(1,)), dtype=dtype) == [0, 1, 2, 3, 4]
    assert kept(row, xtc(1, 0.15, data=(2, 4)), dtype=dtype) == [2, 3, 4]  # they stay anyway
    assert kept(np.log([0.5, 0.5]), xtc(1, 0.5), dtype=dtype) == [1]  # on the border
    assert kept([3.0], xtc(1, 0.1), dtype=dtype) == [0]


@WAYS
def test_a_row_of_a_thousand_equals(dtype):
    assert kept(np.zeros(1000), xtc(1, 0.001), dtype=dtype) == [999]
    assert kept(np.zeros(1000), xtc(1, 0.002), dtype=dtype) == list(range(1000))


@WAYS
def test_it_works_on_what_the_rules_before_it_left(dtype):
    row = np.log(PROBS)
    assert kept(row, top_k(2), xtc(1, 0.35), dtype=dtype) == [1]
    assert kept(row, top_k(3), xtc(1, 0.2), top_k(1), dtype=dtype) == [2]
    flat = kept(row, temperature(3), xtc(1, 0.18), dtype=dtype)
    assert flat == [2, 3, 4]  # 0.265, 0.227, 0.211, 0.167, 0.133


@WAYS
def test_one_draw_for_each_row_decides(dtype):
    """It is the number named "xtc" of the row's place, not the one of its pick."""
    row, rule = np.log(PROBS), xtc(0.3, 0.15)
    hits = 0
    for replaced in (0, 2):
        for position in range(150):
            place = (77, 1, position, draw("pick", replaced))
            chance = uniform(77, 1, position, draw("xtc", replaced), np.zeros(1, np.int64))[0]
            hit = kept(row, rule, dtype=dtype, place=place) == [2, 3, 4]
            assert hit == (chance <= 0.3)
            hits += hit
    assert 60 < hits < 120


def test_rows_of_a_batch_draw_for_themselves():
    rule, places = xtc(0.5, 0.15), [(3, 0, position, 0) for position in range(64)]
    for dtype in (np.float64, np.float32):
        rows = np.repeat(np.log([PROBS]), 64, 0).astype(dtype)
        seats = [Seat((rule,), (None,), None, place) for place in places]
        got = [len(left.ids) for left in lefts(rows, seats)]
        assert got == [len(kept(rows[0], rule, dtype=dtype, place=place)) for place in places]
        assert 20 < got.count(3) < 44 and got.count(3) + got.count(5) == 64


@WAYS
def test_probability_0_never_and_1_always(dtype):
    for position in range(20):
        place = (5, 0, position, 0)
        assert len(kept(np.log(PROBS), xtc(0, 0.1), dtype=dtype, place=place)) == 5
        assert kept(np.log(PROBS), xtc(1, 0.15), dtype=dtype, place=place) == [2, 3, 4]


@given(ROW, st.floats(0.01, 0.5), st.floats(0.01, 0.5))
def test_a_lower_threshold_keeps_no_more(row, x, y):
    weak, strong = xtc(1, max(x, y)), xtc(1, min(x, y))
    assert set(kept(row, strong, dtype=row.dtype)) <= set(kept(row, weak, dtype=row.dtype))
