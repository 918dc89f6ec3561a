"""Rotary positions: the table of angles, and the turn of one head.

Like `reference.rotate`, bit for bit: pair i of a head is its numbers i and i + size / 2.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import types
from numpy.typing import NDArray

from unspool.kernels.machine.jit import inner
from unspool.kernels.machine.simd import f32x8, load, read_f32, store, write_f32

f32 = types.float32
CHUNK = 256  # positions computed by one call, so that an angle does not depend on the table's end


def angle_table(
    frequencies: Sequence[float], factor: float, positions: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Cosines and sines of position x frequency, times `factor`: two [rows, pairs].

    Computed in float64; `rows` is `positions` rounded up to a whole CHUNK.
    """
    rows = -(-positions // CHUNK) * CHUNK
    cos = np.empty((rows, len(frequencies)), np.float32)
    sin = np.empty_like(cos)
    each = np.asarray(frequencies, np.float64)
    for start in range(0, rows, CHUNK):
        turned = np.arange(start, start + CHUNK, dtype=np.float64)[:, None] * each
        cos[start : start + CHUNK] = np.cos(turned) * factor
        sin[start : start + CHUNK] = np.sin(turned) * factor
    return cos, sin


@inner
def rotate(x: int, cos: int, sin: int, pairs: int) -> None:
    """Turn the head of 2 * pairs floats at x, in place; cos, sin: addresses of `pairs` floats."""
    whole = pairs & ~7
    for i in range(0, 4 * whole, 32):
        a, b = load(f32x8, x + i), load(f32x8, x + 4 * pairs + i)
        c, s = load(f32x8, cos + i), load(f32x8, sin + i)
        store(x + i, a * c - b * s)
        store(x + 4 * pairs + i, b * c + a * s)
    for i in range(4 * whole, 4 * pairs, 4):
        p, q = read_f32(x + i), read_f32(x + 4 * pairs + i)
        t, u = read_f32(cos + i), read_f32(sin + i)
        write_f32(x + i, f32(p * t - q * u))
        write_f32(x + 4 * pairs + i, f32(q * t + p * u))
