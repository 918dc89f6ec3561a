"""Activations as the matrix kernels read them: a scale for every block of 32, and integer codes.

    form I16   16-bit codes: the products with weights stay within 2e-5 of float32's
    form I8    8-bit codes, in the order in which the packed weights hold their columns
    form F32   as they are

A block's sum goes with it, since formats with an offset need offset * sum.
"""
from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from unspool.kernels.machine.jit import inner
from unspool.kernels.machine.lanes import absolute, larger, largest, nearest, total
from unspool.kernels.machine.simd import (
    SCALARS,
    convert,
    f32x8,
    fill,
    i16x8,
    i32x8,
    load,
    pick,
    store,
    write_f32,
)

F32, I16, I8 = 0, 1, 2
BLOCK = 32
BYTES = {F32: 4, I16: 2, I8: 1}

# Column of each 8-bit code: code 8c + 4n + 2p + h of a block is column 8c + 4h + 2n + p.
ORDER = tuple(8 * c + 4 * h + 2 * n + p
              for c in range(4) for n in range(2) for p in range(2) for h in range(2))


@intrinsic
def store_ordered(context: Any, address: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """32 whole numbers within -127 .. 127 as bytes, in ORDER."""

    def emit(context: Any, builder: Any, s: Any, v: Any) -> Any:
        byte = ir.VectorType(SCALARS["i8"], 8)
        low, high = (pick(builder, builder.trunc(v[i], byte), builder.trunc(v[i + 1], byte),
                          range(16)) for i in (1, 3))
        ordered = pick(builder, low, high, ORDER)
        where = builder.inttoptr(v[0], ordered.type.as_pointer())
        builder.store(ordered, where, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, a, b, c, d), emit


@inner
def encode(form: int, x: int, size: int, codes: int, scales: int, sums: int) -> None:
    """A row of `size` floats at x; `size` is a multiple of 32 unless the form is F32."""
    if form == I16:
        encode_i16(x, size, codes, scales, sums)
    elif form == I8:
        encode_i8(x, size, codes, scales, sums)
    elif x != codes:
        for i in range(0, size, 8):
            store(codes + 4 * i, load(f32x8, x + 4 * i))


@inner
def encode_i16(x: int, size: int, codes: int, scales: int, sums: int) -> None:
    for b in range(size // BLOCK):
        p, q, r, s = rounded(x + 128 * b, 32767.0, scales + 4 * b, sums + 4 * b)
        store(codes + 64 * b, convert(i16x8, p))
        store(codes + 64 * b + 16, convert(i16x8, q))
        store(codes + 64 * b + 32, convert(i16x8, r))
        store(codes + 64 * b + 48, convert(i16x8, s))


@inner
def encode_i8(x: int, size: int, codes: int, scales: int, sums: int) -> None:
    for b in range(size // BLOCK):
        p, q, r, s = rounded(x + 128 * b, 127.0, scales + 4 * b, sums + 4 * b)
        store_ordered(codes + 32 * b, p, q, r, s)


@inner
def rounded(x: int, most: float, scale: int, sum_: int) -> Any:
    """The block at x divided by its scale, as four vectors of whole numbers."""
    p, q = load(f32x8, x), load(f32x8, x + 32)
    r, s = load(f32x8, x + 64), load(f32x8, x + 96)
    top = largest(larger(larger(absolute(p), absolute(q)), larger(absolute(r), absolute(s))))
    unit = f32(top / f32(most))
    inverse = f32(0.0)
    if top > f32(0.0):
        inverse = f32(f32(most) / top)
    by = fill(f32x8, inverse)
    i, j = convert(i32x8, nearest(p * by)), convert(i32x8, nearest(q * by))
    k, m = convert(i32x8, nearest(r * by)), convert(i32x8, nearest(s * by))
    write_f32(scale, unit)
    write_f32(sum_, f32(unit * f32(total((i + j) + (k + m)))))
    return i, j, k, m


f32 = types.float32
