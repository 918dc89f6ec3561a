"""Adaptive-p: likely is what lies near a target, which moves against what was chosen so far."""
from __future__ import annotations

import numpy as np

from unspool.kernels.machine.jit import kernel
from unspool.kernels.machine.lanes import absolute, choose
from unspool.kernels.machine.simd import f64x8, fill, read_f64
from unspool.kernels.reading.floats import exp
from unspool.kernels.shaping.eights import changed, gaps, peak_of, put_eight, size_of
from unspool.kernels.shaping.row import MASS, SIGNATURE, number

WIDTH, HIGHEST, SHARPNESS = 0.3, 5.0, 10.0


@kernel(SIGNATURE)
def adaptive_p(row: int, numbers: int, state: int) -> int:
    """target. State: the weighted sum of the probabilities of chosen tokens, and of the weights."""
    target, mean = read_f64(numbers), read_f64(state) / read_f64(state + 8)
    if target < 0.0:
        return 0
    now = fill(f64x8, min(max(2.0 * target - mean, 0.0), 1.0))
    peak = peak_of(row)
    for i in range(0, size_of(row), 8):
        gap = gaps(row, i, peak)
        p = exp(gap + fill(f64x8, peak - number(row, MASS)))
        distance = absolute(p - now) / fill(f64x8, WIDTH)
        fall = fill(f64x8, SHARPNESS) * distance * distance / (fill(f64x8, 1.0) + distance)
        put_eight(row, i, choose(gap > fill(f64x8, -np.inf), fill(f64x8, HIGHEST) - fall, gap))
    changed(row)
    return 0
