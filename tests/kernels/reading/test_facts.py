"""Facts of rows, segment by segment, against float64; and the same bits whoever takes them."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unspool.kernels.machine.jit import kernel
from unspool.kernels.reading.facts import (
    FAULT,
    PART,
    RECORD,
    SEGMENT,
    TABLE,
    WEIGHTED,
    facts_of,
    room_for,
    row_facts,
    segment_facts,
)
from unspool.kernels.reading.plain import Plain

SIZES = (1, 6, 8, 9, 63, 64, 65, 200, 1023, 1024, 1025, 5003)
LOGITS = st.sampled_from([-np.inf, -3.0, -1.0, -0.0, 0.0, 0.5, 1.0, 4.0, 80.0])


@kernel("void(int64, int64, int64, int64)")
def backwards(logits, vocab, records, row):
    """As a matrix kernel may take them: in any order, each with the logits it has just made."""
    segments = -(-vocab // SEGMENT)
    for s in range(segments - 1, -1, -1):
        first = SEGMENT * s
        segment_facts(logits + 4 * first, first, min(SEGMENT, vocab - first),
                      records + 8 * RECORD * s)
    row_facts(records, segments, row)


def rows_of(kind, size, count=3):
    draw = np.random.default_rng(size)
    rows = draw.normal(0, 4, (count, size)).astype(np.float32)
    if kind == "ties":
        rows = np.round(rows)
        rows[rows == 0] = -0.0
    if kind == "removed":
        rows[:, draw.random(size) < 0.8] = -np.inf
        rows[:, size // 2] = -1.5
    return rows


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["normal", "ties", "removed"])
def test_facts_are_those_of_float64(kind, size):
    rows = rows_of(kind, size)
    got, want = facts_of(rows), Plain(rows.astype(np.float64)).table
    assert got.table[:, :2].tolist() == want[:, :2].tolist()  # peak, and the lowest id that has it
    assert got.table[:, 2:FAULT] == pytest.approx(want[:, 2:FAULT], rel=1e-12, abs=1e-12)
    assert (got.fault == 0).all()
    for part, most in enumerate(got.parts.T[:-(-size // PART)]):
        assert (most == rows[:, PART * part:PART * (part + 1)].max(-1)).all()


@given(arrays(np.float32, st.tuples(st.integers(1, 3), st.integers(1, 70)), elements=LOGITS))
def test_any_row_of_few_values(rows):
    got, want = facts_of(rows), Plain(rows.astype(np.float64)).table
    assert (got.fault == want[:, FAULT]).all()
    sound = got.fault == 0
    assert got.table[sound, :2].tolist() == want[sound, :2].tolist()
    assert got.table[sound, 2:FAULT] == pytest.approx(want[sound, 2:FAULT], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("size", [1, 7, 64, 1030, 3000])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_damaged_row_is_at_fault_and_no_other(size, value):
    """Wherever the damage is, also among tokens that are all removed."""
    for at in {0, size // 2, size - 1}:
        rows = rows_of("normal", size, 4)
        want = facts_of(rows).table
        rows[1, at] = value
        rows[2], rows[2, at] = -np.inf, value
        rows[3] = -np.inf
        got = facts_of(rows)
        assert got.fault.tolist() == [0, 1, 1, 1]
        assert got.table[0, :FAULT].tolist() == want[0, :FAULT].tolist()


@pytest.mark.parametrize("size", [6, 1024, 2500])
def test_who_takes_the_facts_changes_no_bit(size):
    rows = rows_of("normal", size)
    whole, own = facts_of(rows), room_for(*rows.shape)
    for r, row in enumerate(rows):
        backwards(row.ctypes.data, size, own.records[r].ctypes.data, own.table[r].ctypes.data)
    assert (own.records[:, :, :WEIGHTED + 1] == whole.records[:, :, :WEIGHTED + 1]).all()
    assert (own.table[:, :FAULT + 1] == whole.table[:, :FAULT + 1]).all()
    assert (own.parts == whole.parts).all()


def test_rows_may_lie_apart():
    wide = rows_of("normal", 2000)
    part = wide[:, :1500]
    assert (facts_of(part).table[:, :5] == facts_of(part.copy()).table[:, :5]).all()


def test_the_layout_is_whole_words():
    facts = room_for(2, 1025)
    assert facts.records.shape == (2, 2, RECORD) and facts.table.shape == (2, TABLE)
    assert facts.parts.shape == (2, 2 * SEGMENT // PART)
    assert facts.records.strides[1] == 128 and facts.table.strides[0] == 64
