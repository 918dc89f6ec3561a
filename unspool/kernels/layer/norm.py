"""RMS norm of one row."""
from __future__ import annotations

from typing import Any

from numba import types

from unspool.kernels.machine.jit import inner
from unspool.kernels.machine.lanes import fma, square_root, total
from unspool.kernels.machine.rows import load_some, store_some
from unspool.kernels.machine.simd import f32x8, fill, load, store, zero

f32 = types.float32


@inner
def rms_norm(x: int, weight: int, out: int, size: int, eps: Any) -> None:
    """x / rms(x) * weight (arXiv:1910.07467) of `size` floats at addresses; `eps` f32.

    `out` may be x. Nothing beyond `size` is read or written. The squares are summed in four sums
    that take turns, in an order that depends on `size` alone.
    """
    a = b = c = d = zero(f32x8)
    whole, left = 4 * (size & ~7), size & 7  # bytes of whole vectors, and floats behind them
    for i in range(0, 4 * (size & ~31), 128):
        p, q = load(f32x8, x + i), load(f32x8, x + i + 32)
        r, s = load(f32x8, x + i + 64), load(f32x8, x + i + 96)
        a, b, c, d = fma(p, p, a), fma(q, q, b), fma(r, r, c), fma(s, s, d)
    for i in range(4 * (size & ~31), whole, 32):
        p = load(f32x8, x + i)
        a = fma(p, p, a)
    last = load_some(x + whole, left)
    b = fma(last, last, b)
    square = f32(total((a + b) + (c + d)) / f32(size))
    by = fill(f32x8, f32(1.0)) / square_root(fill(f32x8, f32(square + eps)))
    for i in range(0, whole, 32):
        store(out + i, load(f32x8, x + i) * by * load(f32x8, weight + i))
    store_some(out + whole, last * by * load_some(weight + whole, left), left)
