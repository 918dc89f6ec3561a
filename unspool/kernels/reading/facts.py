"""Facts of rows of float32 logits, segment by segment, so that who makes a row can take them as it
goes: peak, likeliest token, log-sum-exp, entropy, and whether it can be a distribution at all.

A segment is SEGMENT tokens. Its facts stand in a record of RECORD float64 words, and those of a
row, made of its segments in order, in TABLE words:

    records   float64 [rows, segments, RECORD]
    table     float64 [rows, TABLE]

What a matrix kernel calls, once each, in any order, from any thread:

    segment_facts(logits, first, count, record)
        after it wrote the last logit of a segment. `logits`: address of the segment's first one;
        `first`: that token's id; `count`: tokens of the segment (only the last has fewer than
        SEGMENT); `record`: address of its record.
    row_facts(records, segments, row)
        after all segments of a row. `records`: address of the row's first; `row`: of its table.

A row gets the same bits whoever calls, since a segment's sums have an order of their own.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.lanes import choose, fma, lane, larger, largest, total
from unspool.kernels.machine.rows import with_lane
from unspool.kernels.machine.simd import (
    convert,
    f32x8,
    f64x8,
    fill,
    load,
    read_f32,
    read_f64,
    read_i64,
    write_f32,
    write_f64,
    zero,
)
from unspool.kernels.reading.floats import LEAST, exp, log

SEGMENT, PART = 1024, 64
PARTS = SEGMENT // PART

# Words of a record. Maxima of parts are float32: two to a word.
RECORD = 16
MAXIMUM, LIKELIEST, SUM, WEIGHTED, FAULTY = range(5)  # sums of exp(x - maximum), and that times it
MAXIMA = 8
# Words of a row's table.
TABLE = 8
PEAK, BEST, NORM, ENTROPY, FAULT = range(5)

f32 = types.float32
Floats = NDArray[np.float64]


@inner
def eight(address: int, count: int) -> Any:
    """f32x8 of the first `count` floats at an address; -inf in lanes that lie beyond."""
    if count >= 8:
        return load(f32x8, address)
    out = fill(f32x8, f32(-np.inf))
    for i in range(count):
        out = with_lane(out, i, read_f32(address + 4 * i))
    return out


@inner
def maxima(logits: int, count: int, record: int) -> Any:
    """Write the maximum of each part; the largest of them, and the part that has it first.

    A NaN is passed over. Parts that lie beyond the segment have -inf.
    """
    peak, where = f32(-np.inf), 0
    for part in range(PARTS):
        at = PART * part
        most = fill(f32x8, f32(-np.inf))
        for i in range(at, min(at + PART, count), 8):
            most = larger(eight(logits + 4 * i, count - i), most)
        found = largest(most)
        write_f32(record + 8 * MAXIMA + 4 * part, found)
        if found > peak:
            peak, where = found, part
    return peak, where


@inner
def segment_facts(logits: int, first: int, count: int, record: int) -> None:
    """Write the record of one segment, see above."""
    peak, part = maxima(logits, count, record)
    best, clean = PART * part, True
    if peak == f32(-np.inf):
        for i in range(count):
            clean = clean and read_f32(logits + 4 * i) == peak
    else:
        while read_f32(logits + 4 * best) != peak:
            best += 1
    sums, weighted = zero(f64x8), zero(f64x8)
    if f32(-np.inf) < peak < f32(np.inf):
        shift, low = fill(f64x8, types.float64(peak)), fill(f64x8, LEAST)
        for i in range(0, count, 8):
            x = convert(f64x8, eight(logits + 4 * i, count - i)) - shift
            share = exp(x)
            sums = sums + share
            weighted = fma(share, choose(x < low, low, x), weighted)
    mass = total(sums)
    faulty = not clean or not peak < f32(np.inf) or mass != mass
    write_f64(record + 8 * MAXIMUM, peak)
    write_f64(record + 8 * LIKELIEST, first + best)
    write_f64(record + 8 * SUM, mass)
    write_f64(record + 8 * WEIGHTED, total(weighted))
    write_f64(record + 8 * FAULTY, 1.0 if faulty else 0.0)


@inner
def exp_of(x: float) -> float:
    return lane(exp(fill(f64x8, x)), 0)


@inner
def log_of(x: float) -> float:
    return lane(log(fill(f64x8, x)), 0)


@inner
def row_facts(records: int, segments: int, row: int) -> None:
    """Write the table of one row from its segments' records. A row with a NaN or infinity, or in
    which nothing is finite, has FAULT 1 and nothing else that counts."""
    peak, best, fault = -np.inf, 0.0, 0.0
    for s in range(segments):
        record = records + 8 * RECORD * s
        fault += read_f64(record + 8 * FAULTY)
        if read_f64(record + 8 * MAXIMUM) > peak:
            peak, best = read_f64(record + 8 * MAXIMUM), read_f64(record + 8 * LIKELIEST)
    mass, weighted = 0.0, 0.0
    if fault == 0.0:
        for s in range(segments):
            record = records + 8 * RECORD * s
            lower = read_f64(record + 8 * MAXIMUM) - peak
            if lower > LEAST:
                factor, part = exp_of(lower), read_f64(record + 8 * SUM)
                mass += factor * part
                weighted += factor * (read_f64(record + 8 * WEIGHTED) + lower * part)
    fault = 0.0 if mass > 0.0 else 1.0
    norm = log_of(mass) if mass > 0.0 else np.nan
    write_f64(row + 8 * PEAK, peak)
    write_f64(row + 8 * BEST, best)
    write_f64(row + 8 * NORM, peak + norm)
    write_f64(row + 8 * ENTROPY, norm - weighted / mass)
    write_f64(row + 8 * FAULT, fault)


# Words of the arguments of both operations. Units: all segments of all rows; rows.
LOGITS, STRIDE, VOCAB, SEGMENTS, RECORDS, ROWS = range(6)


@kernel("void(int64, int64, int64, int64, int64)")
def facts_of_segments(args: int, step: int, first: int, last: int, scratch: int) -> None:
    vocab, segments = read_i64(args + 8 * VOCAB), read_i64(args + 8 * SEGMENTS)
    for unit in range(first, last):
        row, segment = unit // segments, unit % segments
        logits = read_i64(args + 8 * LOGITS) + row * read_i64(args + 8 * STRIDE)
        begin = SEGMENT * segment
        segment_facts(logits + 4 * begin, begin, min(SEGMENT, vocab - begin),
                      read_i64(args + 8 * RECORDS) + 8 * RECORD * unit)


@kernel("void(int64, int64, int64, int64, int64)")
def facts_of_rows(args: int, step: int, first: int, last: int, scratch: int) -> None:
    segments = read_i64(args + 8 * SEGMENTS)
    for unit in range(first, last):
        records = read_i64(args + 8 * RECORDS) + 8 * RECORD * segments * unit
        row_facts(records, segments, read_i64(args + 8 * ROWS) + 8 * TABLE * unit)


@dataclass(frozen=True, slots=True, eq=False)
class RowFacts:
    """`table` [R, TABLE] and `records` [R, segments, RECORD], as above."""

    table: Floats
    records: Floats

    @property
    def peak(self) -> Floats:
        """[R]: the largest logit."""
        return self.table[:, PEAK]

    @property
    def best(self) -> Floats:
        """[R]: the id that has it, the lowest of several."""
        return self.table[:, BEST]

    @property
    def norm(self) -> Floats:
        """[R]: log of the summed exp of all logits."""
        return self.table[:, NORM]

    @property
    def entropy(self) -> Floats:
        """[R], in nats."""
        return self.table[:, ENTROPY]

    @property
    def fault(self) -> Floats:
        """[R]: 1 for a row that cannot be a distribution, else 0."""
        return self.table[:, FAULT]

    @property
    def parts(self) -> NDArray[np.float32]:
        """[R, segments * PARTS]: the maximum of each PART tokens, -inf beyond the vocabulary."""
        maxima = self.records[:, :, MAXIMA:].view(np.float32)
        return maxima.reshape(len(maxima), -1)


def room_for(rows: int, vocab: int) -> RowFacts:
    """Facts of so many rows, yet to be written."""
    return RowFacts(np.empty((rows, TABLE)), np.empty((rows, -(-vocab // SEGMENT), RECORD)))


def facts_of(rows: NDArray[np.float32]) -> RowFacts:
    """The facts of finished rows [R, V], each row contiguous."""
    facts = room_for(*rows.shape)
    segments = facts.records.shape[1]
    args = np.array([rows.ctypes.data, rows.strides[0], rows.shape[1], segments,
                     facts.records.ctypes.data, facts.table.ctypes.data], np.int64)
    where = args.ctypes.data
    facts_of_segments(where, 0, 0, len(rows) * segments, 0)
    facts_of_rows(where, 0, 0, len(rows), 0)
    return facts
