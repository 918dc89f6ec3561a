"""Operations that sharpen or flatten by what the row is like."""
from __future__ import annotations

import numpy as np

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.lanes import choose, fma
from unspool.kernels.machine.simd import f64x8, fill, read_f64, zero
from unspool.kernels.reading.facts import exp_of, log_of
from unspool.kernels.shaping.eights import changed, gaps, peak_of, put_eight, size_of, spread
from unspool.kernels.shaping.row import ENTROPY, LEAST_DIVISOR, SIGNATURE, divide, number


@inner
def power(share: float, exponent: float) -> float:
    """share ** exponent, for a share from 0 to 1."""
    if exponent == 0.0 or share >= 1.0:
        return 1.0
    return exp_of(exponent * log_of(share)) if share > LEAST_DIVISOR else 0.0


@kernel(SIGNATURE)
def dynamic_temperature(row: int, numbers: int, state: int) -> int:
    """Temperatures at entropy 0 and at the most there can be, and an exponent."""
    low, high, exponent = read_f64(numbers), read_f64(numbers + 8), read_f64(numbers + 16)
    count = spread(row)[0]
    if count > 1.0:
        t = low + (high - low) * power(number(row, ENTROPY) / log_of(count), exponent)
        if t != 1.0:
            divide(row, max(t, LEAST_DIVISOR))
    return 0


@kernel(SIGNATURE)
def smoothing(row: int, numbers: int, state: int) -> int:
    """factor, curve."""
    factor, curve = read_f64(numbers), read_f64(numbers + 8)
    if factor <= 0.0:
        return 0
    square, cube = fill(f64x8, (curve - 3) / 2 * factor), fill(f64x8, (curve - 1) / 2 * factor)
    peak = peak_of(row)
    for i in range(0, size_of(row), 8):
        gap = gaps(row, i, peak)
        finite = gap > fill(f64x8, -np.inf)
        some = choose(finite, gap, zero(f64x8))
        curved = fma(some * some, fma(cube, some, square), fill(f64x8, peak))
        put_eight(row, i, choose(finite, curved, gap))
    changed(row)
    return 0
