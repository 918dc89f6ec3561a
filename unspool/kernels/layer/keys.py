"""Writes the keys and values of a forward into the pages of their texts, and turns its queries.

What a projection gives for a token, [heads q | kv_heads k | kv_heads v] of `size` floats each, is
normed where the model norms heads, turned by the angle of its position, and stored.
"""
from __future__ import annotations

from typing import Any

from numba import types

from unspool.kernels.layer.norm import rms_norm
from unspool.kernels.layer.pages import BF16, F32, INT8, PAGE, block_at
from unspool.kernels.layer.rope import rotate
from unspool.kernels.layer.step import POSITIONS, TABLES
from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.lanes import absolute, choose, lane, larger, largest, nearest, total
from unspool.kernels.machine.rows import load_some
from unspool.kernels.machine.simd import (
    bits,
    convert,
    f32x8,
    fill,
    i8x8,
    i16x8,
    i32x8,
    load,
    read_i64,
    write_f32,
    write_i8,
    write_i16,
    zero,
)
from unspool.kernels.machine.words import fraction

f32, i32 = types.float32, types.int32

# Words of the operation.
ROWS, STRIDE = 0, 1  # projected rows, changed in place; bytes from row to row
COS, SIN = 2, 3  # tables [positions, size / 2] of `rope.angle_table`
Q_NORM, K_NORM, EPS = 4, 5, 6  # weights [size] of the norms of heads, or 0; a fraction
LAYER, HEADS, KV_HEADS, SIZE, KIND = 7, 8, 9, 10, 11
WORDS = 12


@kernel("void(int64, int64, int64, int64, int64)")
def write_keys(args: int, step: int, first: int, last: int, scratch: int) -> None:
    """A unit is a row of the forward."""
    heads, kv_heads = read_i64(args + 8 * HEADS), read_i64(args + 8 * KV_HEADS)
    size, kind = read_i64(args + 8 * SIZE), read_i64(args + 8 * KIND)
    eps, pairs, layer = fraction(args + 8 * EPS), size // 2, read_i64(args + 8 * LAYER)
    for row in range(first, last):
        x = read_i64(args + 8 * ROWS) + row * read_i64(args + 8 * STRIDE)
        position = read_i64(read_i64(step + 8 * POSITIONS) + 8 * row)
        cos = read_i64(args + 8 * COS) + 4 * position * pairs
        sin = read_i64(args + 8 * SIN) + 4 * position * pairs
        for head in range(heads + kv_heads):
            weight = read_i64(args + 8 * (Q_NORM if head < heads else K_NORM))
            if weight:
                rms_norm(x, weight, x, size, eps)
            rotate(x, cos, sin, pairs)
            x += 4 * size
        table = read_i64(read_i64(step + 8 * TABLES) + 8 * row)
        page, token = position // PAGE, position % PAGE
        for head in range(kv_heads):
            k = x + 4 * (head - kv_heads) * size
            at = block_at(table, page, layer, head, 0)
            write_row(kind, k, size, at, token, True)
            at = block_at(table, page, layer, head, 1)
            write_row(kind, k + 4 * kv_heads * size, size, at, token, False)


@inner
def write_row(kind: int, x: int, size: int, block: int, token: int, key: bool) -> None:
    """Store the `size` floats at x as a block's `token`, with zeros up to a multiple of 8.

    INT8: the largest is 127 times the scale, which is NaN if one of them is not finite.
    """
    width = 4 if kind == F32 else 2 if kind == BF16 else 1
    wide = (size + 7) & ~7
    at, step = block + token * (width if key else wide * width), PAGE * width if key else width
    unit = f32(1.0)
    if kind == INT8:
        most = spoilt = zero(f32x8)
        for i in range(0, size, 8):
            v = load_some(x + 4 * i, min(size - i, 8))
            most, spoilt = larger(absolute(v), most), spoilt + v * zero(f32x8)
        unit = f32(largest(most) / f32(127.0) + total(spoilt))
        write_f32(block + PAGE * wide + 4 * token, unit)
    for i in range(0, size, 8):
        v = load(f32x8, x + 4 * i) if i + 8 <= size else load_some(x + 4 * i, size - i)
        to = at + i * step
        if kind == F32:
            for n in range(8):
                write_f32(to + n * step, lane(v, n))
        elif kind == BF16:
            halves = bf16(v)
            for n in range(8):
                write_i16(to + n * step, lane(halves, n))
        else:
            codes = code(v, unit)
            for n in range(8):
                write_i8(to + n * step, lane(codes, n))


@inner
def bf16(v: Any) -> Any:
    """The upper halves, as i16x8, of floats rounded to the nearest, of two equally near to the
    even one. A NaN stays one."""
    word = bits(i32x8, v)
    even = (word >> 16) & 1
    rounded = (word + even + fill(i32x8, i32(0x7FFF))) >> 16
    return convert(i16x8, choose(v == v, rounded, fill(i32x8, i32(0x7FC0))))


@inner
def code(v: Any, scale: Any) -> Any:
    """The floats divided by the scale, as i8x8; 0 where that is no number."""
    whole = nearest(v / fill(f32x8, scale))
    fits = absolute(whole) <= fill(f32x8, f32(127.0))
    return convert(i8x8, convert(i32x8, choose(fits, whole, zero(f32x8))))
