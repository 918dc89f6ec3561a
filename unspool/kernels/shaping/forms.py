"""From one form of a row to another, and what is true of a row in each: peak, mass, entropy."""
from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from unspool.kernels.machine.atomic import call_op, call_seven, call_six
from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.lanes import choose, fma, total
from unspool.kernels.machine.simd import (
    convert,
    f32x8,
    f64x8,
    fill,
    load,
    read_f32,
    read_f64,
    read_i8,
    read_i64,
    store,
    write_f32,
    write_f64,
    write_i8,
    write_i64,
    zero,
)
from unspool.kernels.reading.draw import floats, norm_of
from unspool.kernels.reading.facts import ENTROPY as ENTROPY_OF_ROW
from unspool.kernels.reading.facts import (
    FAULT,
    MAXIMUM,
    NORM,
    PEAK,
    RECORD,
    SEGMENT,
    eight,
    log_of,
    maxima,
)
from unspool.kernels.reading.facts import LOGITS as ARG_LOGITS
from unspool.kernels.reading.facts import RECORDS as ARG_RECORDS
from unspool.kernels.reading.facts import ROWS as ARG_ROWS
from unspool.kernels.reading.facts import SEGMENTS as ARG_SEGMENTS
from unspool.kernels.reading.facts import STRIDE as ARG_STRIDE
from unspool.kernels.reading.facts import TABLE as TABLE_WORDS
from unspool.kernels.reading.facts import VOCAB as ARG_VOCAB
from unspool.kernels.reading.floats import LEAST, exp
from unspool.kernels.shaping.row import (
    BEST_FEW,
    BEST_MANY,
    COPY,
    COPY_RECORDS,
    COPY_TABLE,
    COUNT,
    DENSE,
    DIRTY,
    DIVISOR,
    ENTROPY,
    FACTS_OF_ROWS,
    FACTS_OF_SEGMENTS,
    FORM,
    IDS,
    LIST,
    LOGITS,
    MASS,
    MORE_BEYOND,
    OWN_IDS,
    OWN_VALUES,
    RECORDS,
    ROOM,
    SHIFT,
    SIGNATURE,
    TABLE,
    TOUCHED,
    VALUES,
    VOCAB,
    WHOLE,
    is_moved,
    number,
    set_number,
    set_word,
    tool,
    word,
)

f32, f64, i8, i64 = types.float32, types.float64, types.int8, types.int64
TOUCHED_LATELY, SUMS_ARE_OLD = 1, 2  # what DIRTY says of a DENSE row's facts; 0: all are true
HEAPED = 256  # tokens for which a heap is the faster way to find the best


# ── dense rows ───────────────────────────────────────────────────────────────────────────────────
@inner
def copy_row(row: int) -> None:
    """A DENSE row from the model's own, with its facts."""
    vocab, to, of = word(row, VOCAB), word(row, COPY), word(row, LOGITS)
    for i in range(0, vocab - 7, 8):
        store(to + 4 * i, load(f32x8, of + 4 * i))
    for i in range(vocab - vocab % 8, vocab):
        write_f32(to + 4 * i, read_f32(of + 4 * i))
    words = RECORD * (-(-vocab // SEGMENT))
    for i in range(words):
        write_i64(word(row, COPY_RECORDS) + 8 * i, read_i64(word(row, RECORDS) + 8 * i))
    for i in range(TABLE_WORDS):
        write_i64(word(row, COPY_TABLE) + 8 * i, read_i64(word(row, TABLE) + 8 * i))
    adopt_copy(row)


@inner
def adopt_copy(row: int) -> None:
    set_word(row, LOGITS, word(row, COPY))
    set_word(row, RECORDS, word(row, COPY_RECORDS))
    set_word(row, TABLE, word(row, COPY_TABLE))
    set_word(row, FORM, DENSE)


@inner
def touch_all(row: int) -> None:
    for s in range(-(-word(row, VOCAB) // SEGMENT)):
        write_i8(word(row, TOUCHED) + s, i8(1))
    set_word(row, DIRTY, TOUCHED_LATELY)


@kernel(SIGNATURE)
def make_dense(row: int, unused: int, unused_too: int) -> int:
    """Whatever the form, a DENSE row whose logits are the values."""
    form = word(row, FORM)
    if form == LIST:
        to = word(row, COPY)
        for i in range(word(row, VOCAB)):
            write_f32(to + 4 * i, f32(-np.inf))
        for i in range(word(row, COUNT)):
            token = read_i64(word(row, IDS) + 8 * i)
            write_f32(to + 4 * token, f32(read_f64(word(row, VALUES) + 8 * i)))
        set_word(row, IDS, word(row, OWN_IDS))
        set_word(row, VALUES, word(row, OWN_VALUES))
        adopt_copy(row)
        touch_all(row)
        set_number(row, SHIFT, 0.0)
        set_number(row, DIVISOR, 1.0)
        renew(row)
        return 0
    if form == WHOLE:
        copy_row(row)
    if is_moved(row):
        to, shift, by = word(row, LOGITS), number(row, SHIFT), number(row, DIVISOR)
        for i in range(word(row, VOCAB)):
            write_f32(to + 4 * i, f32((f64(read_f32(to + 4 * i)) - shift) / by))
        touch_all(row)
        renew(row)
    set_number(row, SHIFT, 0.0)
    set_number(row, DIVISOR, 1.0)
    return 0


@inner
def renew(row: int) -> None:
    """Take the largest logits of the segments of a DENSE row that were touched: all that most rules
    ask for. What they add up to is for `refresh`."""
    if word(row, DIRTY) != TOUCHED_LATELY:
        return
    vocab, touched, peak = word(row, VOCAB), word(row, TOUCHED), -np.inf
    for s in range(-(-vocab // SEGMENT)):
        record = word(row, RECORDS) + 8 * RECORD * s
        if read_i8(touched + s) != i8(0):
            most, _ = maxima(word(row, LOGITS) + 4 * SEGMENT * s,
                             min(SEGMENT, vocab - SEGMENT * s), record)
            write_f64(record + 8 * MAXIMUM, f64(most))
        peak = max(peak, read_f64(record + 8 * MAXIMUM))
    write_f64(word(row, TABLE) + 8 * PEAK, peak)
    write_f64(word(row, TABLE) + 8 * FAULT, 0.0 if peak > -np.inf else 1.0)
    set_word(row, DIRTY, SUMS_ARE_OLD)


@inner
def forget_touched(row: int) -> None:
    """The next row begins with nothing touched."""
    for s in range(-(-word(row, VOCAB) // SEGMENT)):
        write_i8(word(row, TOUCHED) + s, i8(0))


@inner
def refresh(row: int) -> None:
    """Take all facts of the segments of a DENSE row that were touched."""
    if word(row, DIRTY) == 0:
        return
    vocab, touched, args = word(row, VOCAB), word(row, TOUCHED), word(row, ROOM)
    segments = -(-vocab // SEGMENT)
    for name, value in ((ARG_LOGITS, word(row, LOGITS)), (ARG_STRIDE, 0), (ARG_VOCAB, vocab),
                        (ARG_SEGMENTS, segments), (ARG_RECORDS, word(row, RECORDS)),
                        (ARG_ROWS, word(row, TABLE))):
        write_i64(args + 8 * name, value)
    for s in range(segments):
        if read_i8(touched + s) != i8(0):
            write_i8(touched + s, i8(0))
            call_op(tool(row, FACTS_OF_SEGMENTS), args, 0, s, s + 1, 0)
    call_op(tool(row, FACTS_OF_ROWS), args, 0, 0, 1, 0)
    set_word(row, DIRTY, 0)


# ── the best tokens ──────────────────────────────────────────────────────────────────────────────
@inner
def take_best(row: int, count: int) -> None:
    """The `count` best tokens of a WHOLE or DENSE row into IDS and VALUES, fewer if fewer are left.
    """
    vocab, ids, values = word(row, VOCAB), word(row, IDS), word(row, VALUES)
    shift, by, moved = number(row, SHIFT), number(row, DIVISOR), is_moved(row)
    if count <= HEAPED:
        call_six(tool(row, BEST_FEW), row + 8 * LOGITS, 1, vocab, count, ids, values)
    else:
        call_seven(tool(row, BEST_MANY), row + 8 * LOGITS, 1, vocab, count, word(row, ROOM), ids,
                   values)
    found = 0
    while found < count and read_f64(values + 8 * found) > -np.inf:
        if moved:
            y = (read_f64(values + 8 * found) - shift) / by
            if y == -np.inf:
                break
            write_f64(values + 8 * found, y)
        found += 1
    set_word(row, COUNT, found)
    set_word(row, MORE_BEYOND, 1 if found == count and count < vocab else 0)


# ── statistics ───────────────────────────────────────────────────────────────────────────────────
@kernel(SIGNATURE)
def mass_and_entropy(row: int, unused: int, unused_too: int) -> int:
    """MASS and ENTROPY of the values of a row that has any."""
    if word(row, FORM) == LIST:
        values, count = word(row, VALUES), word(row, COUNT)
        norm = norm_of(values, count)
        weighted = zero(f64x8)
        for i in range(0, count, 8):
            y = floats(values + 8 * i, count - i) - fill(f64x8, norm)
            weighted = fma(exp(y), bounded(y), weighted)
        set_number(row, MASS, norm)
        set_number(row, ENTROPY, -total(weighted))
        return 0
    table, by = word(row, TABLE), number(row, DIVISOR)
    if not is_moved(row):
        refresh(row)
        set_number(row, MASS, read_f64(table + 8 * NORM))
        set_number(row, ENTROPY, read_f64(table + 8 * ENTROPY_OF_ROW))
        return 0
    vocab, logits = word(row, VOCAB), word(row, LOGITS)
    top = (read_f64(table + 8 * PEAK) - number(row, SHIFT)) / by
    shift, divisor = fill(f64x8, number(row, SHIFT)), fill(f64x8, by)
    peak, sums, weighted = fill(f64x8, top), zero(f64x8), zero(f64x8)
    for i in range(0, vocab, 8):
        y = (convert(f64x8, eight(logits + 4 * i, vocab - i)) - shift) / divisor - peak
        share = exp(y)
        sums = sums + share
        weighted = fma(share, bounded(y), weighted)
    mass = total(sums)
    set_number(row, MASS, top + log_of(mass))
    set_number(row, ENTROPY, log_of(mass) - total(weighted) / mass)
    return 0


@inner
def bounded(y: Any) -> Any:
    """What exp makes 0 adds nothing to a sum of products with it."""
    low = fill(f64x8, LEAST)
    return choose(y < low, low, y)

