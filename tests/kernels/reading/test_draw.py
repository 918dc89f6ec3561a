"""Picks are what they are defined to be, whoever draws them and however little noise is drawn."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unspool.kernels.machine.jit import kernel
from unspool.kernels.machine.simd import read_f64, read_i64
from unspool.kernels.reading.draw import (
    DIVISOR,
    DRAW,
    FLOOR,
    PEAK_OF,
    PLACE,
    ROW,
    draw_of_rows,
    race,
    row_draw,
    segment_draw,
)
from unspool.kernels.reading.facts import MAXIMUM, RECORD, SEGMENT, facts_of
from unspool.kernels.reading.noise import gumbel, seats
from unspool.kernels.reading.plain import log_sum_exp

SIZES = (1, 6, 24, 33, 1030, 5003)
TEMPERATURES = (1.0, 0.8, 0.05, 1e-3, 1e-300, 3.0, 50.0)


@kernel("void(int64, int64, int64, int64)")
def backwards(row, vocab, draws, out):
    """As a matrix kernel may draw: in any order, without the peak of the row."""
    segments = -(-vocab // SEGMENT)
    for s in range(segments - 1, -1, -1):
        first = SEGMENT * s
        maximum = read_f64(read_i64(row + 8) + 8 * (RECORD * s + MAXIMUM))
        if maximum > -np.inf:
            segment_draw(read_i64(row) + 4 * first, first, min(SEGMENT, vocab - first), maximum,
                         row, FLOOR, draws + 8 * DRAW * s)
    row_draw(row, segments, draws, out)


def words_of(row, facts, r, t, place):
    """What a kernel is told of row `r` of some facts."""
    words = np.zeros(ROW, np.int64)
    words[:2] = row.ctypes.data, facts.records[r].ctypes.data
    words.view(np.float64)[[PEAK_OF, DIVISOR]] = facts.peak[r], t
    words[PLACE:] = seats([place])[0]
    return words


def drawn(rows, t, places, noisy=True):
    """[R, 2]: the pick of each row, one for each place, and the log of its mass."""
    facts = facts_of(rows)
    words = np.stack([words_of(rows[r % len(rows)], facts, r % len(rows), t, place)
                      for r, place in enumerate(places)])
    draws, out = np.empty((facts.records.shape[1], DRAW)), np.empty((len(words), 2))
    draw_of_rows(words.ctypes.data, len(words), rows.shape[1], noisy, draws.ctypes.data,
                 out.ctypes.data)
    return out


def raced(lists, ids, values, places=None):
    """[n, 2]: which of each list wins, and the log of its mass."""
    lists, ids, values = (np.ascontiguousarray(x) for x in (lists, ids, values))
    noise, out = seats(places or [(0, 0, 0, 0)]), np.empty((len(lists), 2))
    race(lists.ctypes.data, len(lists), ids.ctypes.data, values.ctypes.data,
         noise.ctypes.data if places else 0, out.ctypes.data)
    return out


def rows_of(kind, size, count=3):
    draw = np.random.default_rng(size)
    rows = draw.normal(0, {"flat": 0.01, "peaked": 9.0}.get(kind, 3.0), (count, size))
    if kind == "removed":
        rows[:, draw.random(size) < 0.9] = -np.inf
        rows[:, :SEGMENT] = -np.inf  # a whole segment, where there are several
        rows[:, -1] = 1.0
    return rows.astype(np.float32)


def defined(row, t, place):
    """The pick by its definition."""
    row, noise, winners = row.astype(np.float64), gumbel(*place, np.arange(len(row))), []
    with np.errstate(over="ignore"):
        for first in range(0, len(row), SEGMENT):
            part = row[first:first + SEGMENT]
            if part.max() > -np.inf:
                own = (part - part.max()) / t + noise[first:first + SEGMENT]
                winners.append(first + int(np.argmax(own)))
        final = [(row[i] - row.max()) / t + noise[i] for i in winners]
    return winners[int(np.argmax(final))]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["normal", "flat", "peaked", "removed"])
@pytest.mark.parametrize("t", TEMPERATURES)
def test_a_pick_is_the_argmax_of_its_definition_fused_or_not(kind, size, t):
    rows = rows_of(kind, size)
    facts = facts_of(rows)
    places = [(seed, seed % 3, 5, 0) for seed in range(len(rows))]
    got = drawn(rows, t, places)
    assert got[:, 0].tolist() == [defined(*x) for x in zip(rows, [t] * 3, places, strict=True)]
    for r, place in enumerate(places):
        words = words_of(rows[r], facts, r, t, place)
        draws, out = np.empty((len(facts.records[r]), DRAW)), np.empty(2)
        backwards(words.ctypes.data, size, draws.ctypes.data, out.ctypes.data)
        assert out.tolist() == got[r].tolist()
    assert drawn(rows, t, places, noisy=False)[:, 1].tolist() == got[:, 1].tolist()
    with np.errstate(over="ignore"):
        moved = (rows.astype(np.float64) - rows.max(-1, keepdims=True)) / t
    assert got[:, 1] == pytest.approx(log_sum_exp(moved)[:, 0], rel=1e-12, abs=1e-12)


def test_many_picks_are_their_definition():
    """Every record of the running best, and what the bound leaves out, on one row."""
    row = rows_of("normal", 3000, 1)
    places = [(seed, 0, 1, 0) for seed in range(200)]
    got = drawn(row, 1.0, places)[:, 0]
    assert got.tolist() == [defined(row[0], 1.0, place) for place in places]
    assert len(set(got.tolist())) > 50


def test_picks_are_drawn_from_the_divided_row():
    """20,000 positions; chi-square with 5 degrees of freedom, p = 1e-4."""
    row = np.array([[2.0, 1.0, 0.5, 0.0, -0.3, -1.5]], np.float32)
    p = np.exp(row[0] / 0.7) / np.exp(row[0] / 0.7).sum()
    places = [(7, 0, t, 0) for t in range(20_000)]
    picks = drawn(row, 0.7, places)[:, 0]
    counts, expected = np.bincount(picks.astype(int), minlength=6), p * len(picks)
    assert float(((counts - expected) ** 2 / expected).sum()) < 25.7


@given(st.lists(st.integers(1, 30), min_size=1, max_size=4), st.integers(0, 2**63))
def test_a_race_among_few_is_an_argmax_with_noise(sizes, seed):
    draw = np.random.default_rng(sum(sizes))
    ids, values = draw.integers(0, 50_000, sum(sizes)), draw.normal(0, 3, sum(sizes))
    ends = np.cumsum(sizes)
    lists = np.stack([ends - sizes, ends], -1)
    places = [(seed, i, 4, 0) for i in range(len(sizes))]
    got = raced(lists, ids, values, places).tolist()
    for (at, norm), (first, last), place in zip(got, lists, places, strict=True):
        own = values[first:last]
        assert at == np.argmax(own + gumbel(*place, ids[first:last]))
        assert norm == pytest.approx(np.log(np.exp(own).sum()), abs=1e-12)
    assert raced(lists[::-1], ids, values, places[::-1]).tolist() == got[::-1]
    norms = raced(lists, ids, values)[:, 1].tolist()
    assert norms == [norm for _, norm in got]
    apart = np.stack([ids, ids], -1)[:, 0], np.stack([values, values], -1)[:, 1]
    assert raced(lists, *apart, places).tolist() == got


@given(arrays(np.float32, st.integers(1, 40),
              elements=st.sampled_from([-np.inf, 0.0, 1.0, 1.5])), st.integers(0, 99))
def test_what_was_removed_is_never_picked(row, seed):
    row[len(row) // 2] = 1.0
    for t in (0.01, 1.0, 100.0):
        [[token, _]] = drawn(row[None], t, [(seed, 0, 0, 0)]).tolist()
        assert token == defined(row, t, (seed, 0, 0, 0)) and row[int(token)] > -np.inf
