"""SwiGLU of one row."""
from __future__ import annotations

from typing import Any

from numba import types

from unspool.kernels.layer.exp import exp_f32
from unspool.kernels.machine.jit import inner
from unspool.kernels.machine.rows import load_some, store_some
from unspool.kernels.machine.simd import f32x8, fill, load, store, zero

f32 = types.float32


@inner
def swiglu(gate: int, up: int, out: int, size: int) -> None:
    """silu(gate) * up (arXiv:2002.05202) of `size` floats at addresses; `out` may be either.

    Nothing beyond `size` is read or written.
    """
    whole = size & ~7
    for i in range(0, 4 * whole, 32):
        store(out + i, gated(load(f32x8, gate + i), load(f32x8, up + i)))
    if whole < size:
        end, left = 4 * whole, size - whole
        last = gated(load_some(gate + end, left), load_some(up + end, left))
        store_some(out + end, last, left)


@inner
def gated(gate: Any, up: Any) -> Any:
    return gate / (exp_f32(zero(f32x8) - gate) + fill(f32x8, f32(1.0))) * up
