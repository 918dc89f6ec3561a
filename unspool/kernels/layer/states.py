"""What attention knows of the keys it has seen: weighted sums of values that can be added up.

    state   for each head of a group: the sum of weight * value, [padded] floats, then the largest
            score and the sum of the weights, in the first two of eight floats

A weight is exp(score - largest score). To add two states, both are brought to the larger of their
largest scores (online softmax, arXiv:1805.02867).
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from unspool.kernels.layer.exp import exp_f32
from unspool.kernels.layer.pages import padded
from unspool.kernels.machine.jit import inner
from unspool.kernels.machine.lanes import choose, fma, lane
from unspool.kernels.machine.rows import store_some
from unspool.kernels.machine.simd import f32x8, fill, load, read_f32, store, write_f32, zero

f32 = types.float32
NOTHING = f32(-np.inf)  # the score of a key that is not seen


class Sizes(NamedTuple):
    """What all units share. `scales`: bytes from a block's start to its scales; 0: it has none."""

    group: int
    size: int
    padded: int
    state: int  # bytes of one head's state
    scales: int


def state_floats(size: int) -> int:
    return padded(size) + 8


@inner
def finite(most: Any) -> Any:
    """What to take off the scores: nothing where there are none."""
    return most if most > NOTHING else f32(0.0)


@inner
def clear(sizes: Sizes, state: int) -> None:
    """The state of no keys at all."""
    for at in range(state, state + sizes.group * sizes.state, sizes.state):
        for i in range(at, at + sizes.state, 32):
            store(i, zero(f32x8))
        write_f32(at + 4 * sizes.padded, NOTHING)


@inner
def add_state(sizes: Sizes, whole: int, part: int) -> None:
    """Add a segment's state to that of the segments before it."""
    for g in range(0, sizes.group * sizes.state, sizes.state):
        a, b = whole + g, part + g
        m, n = read_f32(a + 4 * sizes.padded), read_f32(b + 4 * sizes.padded)
        most = m if m > n else n
        old = exp_f32(fill(f32x8, f32(m - finite(most))))
        new = exp_f32(fill(f32x8, f32(n - finite(most))))
        for i in range(0, sizes.state, 32):
            store(a + i, fma(load(f32x8, a + i), old, load(f32x8, b + i) * new))
        write_f32(a + 4 * sizes.padded, most)


@inner
def finish(sizes: Sizes, state: int, out: int) -> None:
    """Divide by the sum of the weights; zeros where nothing was seen."""
    whole = sizes.size & ~7
    for at in range(state, state + sizes.group * sizes.state, sizes.state):
        by = load(f32x8, at + 4 * sizes.padded)
        weights = fill(f32x8, lane(by, 1))
        nothing = weights == zero(f32x8)
        for i in range(0, 4 * whole, 32):
            store(out + i, choose(nothing, zero(f32x8), load(f32x8, at + i) / weights))
        if whole < sizes.size:
            end = choose(nothing, zero(f32x8), load(f32x8, at + 4 * whole) / weights)
            store_some(out + 4 * whole, end, sizes.size - whole)
        out += 4 * sizes.size
