"""Noise in compiled code: Philox4x32-10 and Gumbel numbers, eight blocks or tokens at a time.

The engine draws all its noise here. `philox` says what the numbers are: the uniform ones are equal
bit for bit, Gumbel noise is our own logarithm of them. A `place` is the address of four int64
words: seed, choice, position, draw.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba.extending import intrinsic
from numpy.typing import NDArray

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.lanes import choose, counted, half
from unspool.kernels.machine.rows import with_lane
from unspool.kernels.machine.simd import (
    Kind,
    Vector,
    convert,
    f64x8,
    fill,
    i32x8,
    load,
    pick,
    read_i64,
    store,
    widen,
    zero,
)
from unspool.kernels.reading.floats import LIFT, like, log, to_floats, to_words

i64x8, i32x16 = Kind("i64", 8), Kind("i32", 16)
M0, M1 = 0xD2511F53, 0xCD9E8D57
W0, W1 = 0x9E3779B9, 0xBB67AE85
MASK = 0xFFFFFFFF
SEED = 2**64 - 1
STEP = 2.0**-32
MOST = 22.874  # above 33 ln 2, the largest Gumbel number there is

Floats = NDArray[np.float64]
Place = tuple[int, int, int, int]  # seed, choice, position, draw


@inner
def words(blocks: Any, place: int) -> Any:
    """The four words of eight blocks (i64x8), each in an i64x8 of numbers below 2^32."""
    seed = read_i64(place)
    a, b = blocks, fill(i64x8, read_i64(place + 16))
    c, d = fill(i64x8, read_i64(place + 8)), fill(i64x8, read_i64(place + 24))
    k0, k1 = seed & MASK, (seed >> 32) & MASK
    for _ in range(10):
        x, y = (a & MASK) * fill(i64x8, M0), (c & MASK) * fill(i64x8, M1)
        a, c = (y >> 32) ^ b ^ fill(i64x8, k0), (x >> 32) ^ d ^ fill(i64x8, k1)
        b, d = y, x  # what stands above 32 bits is masked where it matters
        k0, k1 = (k0 + W0) & MASK, (k1 + W1) & MASK
    return a & MASK, b & MASK, c & MASK, d & MASK


@inner
def words_at(tokens: Any, place: int) -> Any:
    """The word of each of eight tokens (i64x8)."""
    a, b, c, d = words(tokens >> 2, place)
    which = tokens & 3
    out = choose(which == fill(i64x8, 1), b, a)
    out = choose(which == fill(i64x8, 2), c, out)
    return choose(which == fill(i64x8, 3), d, out)


@inner
def as_float(words: Any) -> Any:
    """Words below 2^32 as f64x8."""
    return to_floats(words | to_words(fill(f64x8, LIFT))) - fill(f64x8, LIFT)


@inner
def gumbel_of(number: Any) -> Any:
    """Gumbel noise of words, given as floats: -log(-log(u)), u = (word + 1/2) / 2^32."""
    zero = like(number, 0.0)
    u = (number + like(number, 0.5)) * like(number, STEP)
    return zero - log(zero - log(u))


@intrinsic
def weave(context: Any, x: Any, y: Any) -> Any:
    """x0, y0, x1, y1, ...: a vector of twice the lanes."""
    out = Vector(x.element, 2 * x.lanes)

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return pick(b, a[0], a[1], [i // 2 + i % 2 * x.lanes for i in range(2 * x.lanes)])

    return out(x, y), emit


@inner
def words_of_32(first: int, place: int) -> Any:
    """The words of tokens first .. first + 31 as four f64x8. `first` is a multiple of four."""
    a, b, c, d = words(counted(i64x8, first >> 2), place)
    even = weave(convert(i32x8, a), convert(i32x8, c))
    low = weave(even, weave(convert(i32x8, b), convert(i32x8, d)))
    one, two = half(i32x16, low, 0), half(i32x16, low, 1)
    return (widen(f64x8, half(i32x8, one, 0)), widen(f64x8, half(i32x8, one, 1)),
            widen(f64x8, half(i32x8, two, 0)), widen(f64x8, half(i32x8, two, 1)))


@inner
def some(rest: Any, address: int, count: int) -> Any:
    """Eight int64 numbers: the first `count` from memory, the others those of `rest`."""
    for i in range(count):
        rest = with_lane(rest, i, read_i64(address + 8 * i))
    return rest


@kernel("void(int64, int64, int64, int64)")
def gumbel_at(place: int, tokens: int, count: int, out: int) -> None:
    """float64 noise of `count` int64 tokens; `out` has room for whole eights."""
    for i in range(0, count, 8):
        ids = zero(i64x8)
        if i + 8 <= count:
            ids = load(i64x8, tokens + 8 * i)
        else:
            ids = some(ids, tokens + 8 * i, count - i)
        store(out + 8 * i, gumbel_of(as_float(words_at(ids, place))))


def bits(place: Place) -> Place:
    """What of a place the noise depends on: whole numbers of any size are named by their low bits.
    """
    seed, choice, position, draw = place
    return seed & SEED, choice & MASK, position & MASK, draw & MASK


def seats(places: Sequence[Place]) -> NDArray[np.int64]:
    """Places as kernels read them, [R, 4]."""
    return np.array([bits(place) for place in places], np.uint64).view(np.int64)


def gumbel(seed: int, choice: int, position: int, draw: int,
           tokens: NDArray[np.integer[Any]]) -> Floats:
    """Standard Gumbel noise per token: the argmax of log-probability plus it is a fair pick."""
    ids = np.ascontiguousarray(tokens, np.int64)
    place, out = seats([(seed, choice, position, draw)]), np.empty(-(-len(ids) // 8) * 8)
    gumbel_at(place.ctypes.data, ids.ctypes.data, len(ids), out.ctypes.data)
    return out[:len(ids)]
