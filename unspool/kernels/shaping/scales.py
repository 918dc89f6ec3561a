"""Operations that sharpen or flatten without removing a token."""
from __future__ import annotations

from unspool.kernels.machine.jit import kernel
from unspool.kernels.machine.simd import read_f64
from unspool.kernels.shaping.row import (
    SIGNATURE,
    divide,
)


@kernel(SIGNATURE)
def temperature(row: int, numbers: int, state: int) -> int:
    t = read_f64(numbers)
    if t != 1.0:
        divide(row, t)
    return 0
