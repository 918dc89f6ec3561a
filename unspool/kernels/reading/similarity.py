"""How alike hidden states are: the largest cosine of a token's state with those before it.

Products and sums are float64, and a sum's order depends on the width alone, so a cosine has the
same bits whatever else is compared. It sees rows of float32 and knows neither texts nor models.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.lanes import fma, square_root, total
from unspool.kernels.machine.rows import load_some
from unspool.kernels.machine.simd import convert, f32x8, f64x8, load, write_f64, zero


@inner
def products(a: int, b: int, width: int) -> Any:
    """The sums of a * b and of b * b over `width` floats at addresses."""
    dot, square = zero(f64x8), zero(f64x8)
    whole = 4 * (width & ~7)
    for i in range(0, whole, 32):
        p, q = convert(f64x8, load(f32x8, a + i)), convert(f64x8, load(f32x8, b + i))
        dot, square = fma(p, q, dot), fma(q, q, square)
    p = convert(f64x8, load_some(a + whole, width & 7))
    q = convert(f64x8, load_some(b + whole, width & 7))
    return total(fma(p, q, dot)), total(fma(q, q, square))


@kernel("void(int64, int64, int64, int64, int64, int64)")
def largest_cosines(states: int, stride: int, width: int, first: int, count: int, out: int) -> None:
    """For each of rows first .. first + count - 1 the largest cosine with a row before it; -1.0 for
    row 0. A row of zeros is at a right angle to every other: cosine 0.

    `states`: float32 rows of `width`, `stride` bytes apart; `out`: float64 [count].
    """
    for i in range(count):
        own, most = states + stride * (first + i), -1.0
        square = products(own, own, width)[1]
        for other in range(first + i):
            dot, length = products(own, states + stride * other, width)
            both = types.float64(square * length)
            cosine = dot / square_root(both) if both > 0.0 else 0.0
            most = max(most, cosine)
        write_f64(out + 8 * i, most)


def similarity(states: NDArray[np.float32], rows: int) -> list[float]:
    """What `largest_cosines` says of the last `rows` of `states` [tokens, width]."""
    out = np.empty(rows)
    tokens, width = states.shape
    largest_cosines(states.ctypes.data, states.strides[0], width, tokens - rows, rows,
                    out.ctypes.data)
    found: list[float] = out.tolist()
    return found
