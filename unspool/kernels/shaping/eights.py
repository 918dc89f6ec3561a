"""All values of a row, eight at a time and in any form: for operations that need every one."""
from __future__ import annotations

from typing import Any

import numpy as np

from unspool.kernels.machine.jit import inner
from unspool.kernels.machine.lanes import choose, fma, lane, total
from unspool.kernels.machine.rows import store_some
from unspool.kernels.machine.simd import (
    convert,
    f32x8,
    f64x8,
    fill,
    read_f64,
    store,
    write_f64,
    zero,
)
from unspool.kernels.reading.draw import floats
from unspool.kernels.reading.facts import PEAK, eight
from unspool.kernels.shaping.forms import touch_all
from unspool.kernels.shaping.row import (
    COUNT,
    DIVISOR,
    FORM,
    LIST,
    LOGITS,
    SHIFT,
    TABLE,
    VALUES,
    VOCAB,
    number,
    set_number,
    value_at,
    word,
)

FAR = 1e9  # a sum next to it is rounded to 1e-7


@inner
def size_of(row: int) -> int:
    """How many tokens `gaps` and `put_eight` go over."""
    return word(row, COUNT) if word(row, FORM) == LIST else word(row, VOCAB)


@inner
def peak_of(row: int) -> float:
    """The largest value of a LIST, the largest logit of another row."""
    if word(row, FORM) == LIST:
        return value_at(row, 0)
    return read_f64(word(row, TABLE) + 8 * PEAK)


@inner
def gaps(row: int, first: int, peak: float) -> Any:
    """How far eight values lie below the largest, by `peak_of`, since that may have been changed
    already: at most 0, -inf where no token is."""
    left, top = size_of(row) - first, fill(f64x8, peak)
    if word(row, FORM) == LIST:
        return floats(word(row, VALUES) + 8 * first, left) - top
    x = convert(f64x8, eight(word(row, LOGITS) + 4 * first, left))
    return (x - top) / fill(f64x8, number(row, DIVISOR))


@inner
def put_eight(row: int, first: int, values: Any) -> None:
    """Give eight tokens of a LIST or a DENSE row new values."""
    left = size_of(row) - first
    if word(row, FORM) == LIST:
        at = word(row, VALUES) + 8 * first
        if left >= 8:
            store(at, values)
        for i in range(left if left < 8 else 0):
            write_f64(at + 8 * i, lane(values, i))
    elif left >= 8:
        store(word(row, LOGITS) + 4 * first, convert(f32x8, values))
    else:
        store_some(word(row, LOGITS) + 4 * first, convert(f32x8, values), left)


@inner
def changed(row: int) -> None:
    """To be called when all values of a row were put."""
    if word(row, FORM) != LIST:
        touch_all(row)


@inner
def come_near(row: int) -> None:
    """Move values that lie so far from 0 that a log of their sum would lose its fraction: the best
    is 0 then, and their probabilities are the same."""
    peak = peak_of(row)
    if abs(peak) <= FAR:
        return
    if word(row, FORM) != LIST:
        set_number(row, SHIFT, peak)
        return
    for i in range(0, size_of(row), 8):
        put_eight(row, i, gaps(row, i, peak))


@inner
def spread(row: int) -> tuple[float, float]:
    """How many values are finite, and their variance (population).

    The largest is one of those whose gaps are summed and its own is 0, so the variance is no
    smaller than the mean square over their count: the difference loses nothing that matters.
    """
    counts, sums, squares = zero(f64x8), zero(f64x8), zero(f64x8)
    none, one, peak = zero(f64x8), fill(f64x8, 1.0), peak_of(row)
    for i in range(0, size_of(row), 8):
        gap = gaps(row, i, peak)
        finite = gap > fill(f64x8, -np.inf)
        gap = choose(finite, gap, none)
        counts = counts + choose(finite, one, none)
        sums = sums + gap
        squares = fma(gap, gap, squares)
    count = total(counts)
    mean = total(sums) / count
    return count, max(total(squares) / count - mean * mean, 0.0)
