"""Picks: from whole rows that a temperature divides, and from the few tokens that cuts left.

A pick is Gumbel-max: the token whose logit plus noise is largest is a draw from the softmax. In a
whole row it is defined segment by segment, so that who makes a row can pick as it goes:

    in a segment       the largest (x - maximum of the segment) / t + noise
    of those winners   the largest (x - peak of the row) / t + noise

of equal ones the lowest id. Beside `facts.segment_facts` a matrix kernel calls

    segment_draw(logits, first, count, maximum, row, floor, draw)
        once for each segment: `maximum` as in its record; `row`: address of the row's words, see
        DIVISOR; `floor`: FLOOR; `draw`: address of DRAW float64 words that it writes.
    row_draw(row, segments, draws, out)
        after `row_facts`: the pick, and the log of the summed exp of (x - peak) / t.

Most noise is never drawn: from -log(u) >= 1 - u follows noise <= -log(1 - u), so a token cannot
win unless exp(y) >= (1 - u) * exp(best so far), y being its divided logit.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.lanes import any_of, lane, larger, largest, total
from unspool.kernels.machine.simd import (
    convert,
    f64x8,
    fill,
    read_f32,
    read_f64,
    read_i64,
    write_f64,
    zero,
)
from unspool.kernels.reading.facts import MAXIMUM, RECORD, SEGMENT, eight, exp_of, log_of
from unspool.kernels.reading.floats import exp, to_floats, to_words
from unspool.kernels.reading.noise import (
    as_float,
    gumbel_of,
    i64x8,
    some,
    words_at,
    words_of_32,
)

# Words of a row: addresses, float64 numbers, and the four of its place, see `noise`.
ROW = 8
LOGITS, RECORDS, PEAK_OF, DIVISOR, PLACE = range(5)
# Float64 words of the draw of one segment, its winner's and the sum of all exp(y).
DRAW = 4
TOKEN, LOGIT, NOISE, MASS = range(4)
NOBODY = -1.0

FLOOR = 0.0407  # below exp of the least noise there is: the maximum of a segment has no less
SURE = 1.0 - 1e-6  # rounding is far smaller

TOP, WORDS = 4294967295.5, 4294967296.0  # (1 - u) * WORDS is TOP - word


@inner
def divided(logits: int, count: int, shift: Any, divisor: Any) -> Any:
    """(x - shift) / divisor of eight floats; -inf in lanes beyond `count`."""
    return (convert(f64x8, eight(logits, count)) - shift) / divisor


@inner
def win(y: Any, noise: Any, best: float) -> tuple[float, int]:
    """The best sum of y and noise, and its lane; -1 when none is above `best`."""
    value, where = y + noise, -1
    if any_of(value > fill(f64x8, best)):
        for i in range(8):
            if lane(value, i) > best:
                best, where = lane(value, i), i
    return best, where


@inner
def segment_draw(logits: int, first: int, count: int, maximum: float, row: int, floor: float,
                 draw: int) -> None:
    """Write the draw of one segment, see above."""
    shift, divisor = fill(f64x8, maximum), fill(f64x8, read_f64(row + 8 * DIVISOR))
    best, hurdle = -np.inf, floor * SURE
    token, noise_of_token, mass = -1, 0.0, zero(f64x8)
    for block in range(0, count, 32):
        here = logits + 4 * block
        y0 = divided(here, count - block, shift, divisor)
        y1 = divided(here + 32, count - block - 8, shift, divisor)
        y2 = divided(here + 64, count - block - 16, shift, divisor)
        y3 = divided(here + 96, count - block - 24, shift, divisor)
        ys = (y0, y1, y2, y3)
        shares = (exp(y0), exp(y1), exp(y2), exp(y3))
        mass = mass + ((shares[0] + shares[1]) + (shares[2] + shares[3]))
        most = larger(larger(shares[0], shares[1]), larger(shares[2], shares[3]))
        if not any_of(most * fill(f64x8, 2 * WORDS) >= fill(f64x8, hurdle)):
            continue  # not even with the largest noise
        words = words_of_32(first + block, row + 8 * PLACE)
        for i in range(4):
            gap = (fill(f64x8, TOP) - words[i]) * fill(f64x8, hurdle)
            if any_of(shares[i] * fill(f64x8, WORDS) >= gap):
                noise = gumbel_of(words[i])
                best, where = win(ys[i], noise, best)
                if where >= 0:
                    token, noise_of_token = block + 8 * i + where, lane(noise, where)
                    hurdle = max(hurdle, lane(exp(fill(f64x8, best)), 0) * SURE)
    write_f64(draw + 8 * TOKEN, first + token if token >= 0 else NOBODY)
    write_f64(draw + 8 * LOGIT, read_f32(logits + 4 * max(token, 0)))
    write_f64(draw + 8 * NOISE, noise_of_token)
    write_f64(draw + 8 * MASS, total(mass))


@inner
def row_draw(row: int, segments: int, draws: int, out: int) -> None:
    """Write the token that wins (NOBODY if none was in question) and the log of the mass."""
    peak, divisor = read_f64(row + 8 * PEAK_OF), read_f64(row + 8 * DIVISOR)
    best, token, mass = -np.inf, NOBODY, 0.0
    for s in range(segments):
        draw = draws + 8 * DRAW * s
        record = read_i64(row + 8 * RECORDS) + 8 * RECORD * s
        lower = (read_f64(record + 8 * MAXIMUM) - peak) / divisor
        if lower > -np.inf:
            mass += exp_of(lower) * read_f64(draw + 8 * MASS)
            value = (read_f64(draw + 8 * LOGIT) - peak) / divisor + read_f64(draw + 8 * NOISE)
            if read_f64(draw + 8 * TOKEN) != NOBODY and value > best:
                best, token = value, read_f64(draw + 8 * TOKEN)
    write_f64(out, token)
    write_f64(out + 8, log_of(mass))


@kernel("void(int64, int64, int64, int64, int64, int64)")
def draw_of_rows(rows: int, count: int, vocab: int, noisy: int, draws: int, out: int) -> None:
    """The pick (if `noisy`) and the log of the mass of `count` finished rows: float64 [count, 2].

    `draws`: room for the draws of one row.
    """
    segments = -(-vocab // SEGMENT)
    for r in range(count):
        row = rows + 8 * ROW * r
        logits, divisor = read_i64(row + 8 * LOGITS), read_f64(row + 8 * DIVISOR)
        for s in range(segments):
            first = SEGMENT * s
            record = read_i64(row + 8 * RECORDS) + 8 * RECORD * s
            maximum = read_f64(record + 8 * MAXIMUM)
            lower = (maximum - read_f64(row + 8 * PEAK_OF)) / divisor
            if lower > -np.inf:  # its winner must beat the peak, whose noise is no less either
                floor = FLOOR * exp_of(-lower) if noisy != 0 else np.inf
                segment_draw(logits + 4 * first, first, min(SEGMENT, vocab - first), maximum, row,
                             floor, draws + 8 * DRAW * s)
        row_draw(row, segments, draws, out + 16 * r)


# ── few tokens ───────────────────────────────────────────────────────────────────────────────────
@inner
def floats(address: int, count: int) -> Any:
    """Eight float64 numbers, -inf beyond `count`."""
    return to_floats(some(to_words(fill(f64x8, -np.inf)), address, min(count, 8)))


@inner
def norm_of(values: int, count: int) -> float:
    """Log of the summed exp of finite numbers."""
    most, sums = fill(f64x8, -np.inf), zero(f64x8)
    for i in range(0, count, 8):
        most = larger(floats(values + 8 * i, count - i), most)
    peak = largest(most)
    for i in range(0, count, 8):
        sums = sums + exp(floats(values + 8 * i, count - i) - fill(f64x8, peak))
    return peak + log_of(total(sums))


@kernel("void(int64, int64, int64, int64, int64, int64)")
def race(lists: int, count: int, ids: int, values: int, places: int, out: int) -> None:
    """Of each of `count` lists of tokens which one wins, and the log of its summed exp.

    `ids` (int64) and `values` (float64, logits divided and finite) hold the tokens of all lists;
    `lists`: int64 [count, 2], where each begins and ends; `places`: of each list, 0 to draw
    nothing; `out`: float64 [count, 2], where in the list the winner is, the first of equal ones,
    and the log.
    """
    for r in range(count):
        first, last = read_i64(lists + 16 * r), read_i64(lists + 16 * r + 8)
        best, winner = -np.inf, 0
        for i in range(first, last if places != 0 else first, 8):
            tokens = some(zero(i64x8), ids + 8 * i, min(last - i, 8))
            noise = gumbel_of(as_float(words_at(tokens, places + 32 * r)))
            best, where = win(floats(values + 8 * i, last - i), noise, best)
            if where >= 0:
                winner = i + where - first
        write_f64(out + 16 * r, winner)
        write_f64(out + 16 * r + 8, norm_of(values + 8 * first, last - first))
