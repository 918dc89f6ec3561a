"""Moving 32 codes of one row between the file's order of columns and the packed one.

Ordered, the codes are eight words of four bytes, word 2c + n for quarter c of the columns: see
`activations.ORDER`. Two words of 4-bit codes share one packed word, the second in the high halves.
"""
from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from unspool.kernels.machine.jit import inner
from unspool.kernels.machine.lanes import fma, half, lane
from unspool.kernels.machine.simd import (
    SCALARS,
    Vector,
    cast,
    convert,
    f32x8,
    fill,
    i8x8,
    i8x16,
    i8x32,
    i32x8,
    pick,
    pointer,
    read_i32,
    store,
    write_i32,
)
from unspool.kernels.weights.activations import ORDER


def _reordered(lanes: Any, to: Any) -> Any:
    def function(context: Any, codes: Any) -> Any:
        def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
            flat = b.bitcast(a[0], ir.VectorType(SCALARS["i8"], 32))
            return b.bitcast(pick(b, flat, flat, lanes), to.vector.llvm)

        return to.vector(codes), emit

    return intrinsic(function)


ordered = _reordered(ORDER, i32x8)  # codes by column (i8x32) to words
by_column = _reordered([ORDER.index(k) for k in range(32)], i8x32)  # and back


@intrinsic
def words(context: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any) -> Any:
    """Eight words as one vector."""

    def emit(context: Any, builder: Any, s: Any, v: Any) -> Any:
        out = ir.Constant(i32x8.vector.llvm, ir.Undefined)
        for index, word in enumerate(v):
            out = builder.insert_element(out, word, ir.Constant(SCALARS["i32"], index))
        return out

    return i32x8.vector(*[types.int32] * 8), emit


@inner
def nibble_words(at: int) -> Any:
    """Four packed words of a row, 32 bytes apart, as eight words of 4-bit codes."""
    a, b, c, d = read_i32(at), read_i32(at + 32), read_i32(at + 64), read_i32(at + 96)
    return words(a, a >> 4, b, b >> 4, c, c >> 4, d, d >> 4) & 0x0F0F0F0F


@inner
def place_nibbles(at: int, word: Any) -> None:
    """Eight words of 4-bit codes as four packed words of a row."""
    for c in range(4):
        write_i32(at + 32 * c, lane(word, 2 * c) | (lane(word, 2 * c + 1) << 4))


@inner
def write_floats(out: int, codes: Any, scale: float, offset: float) -> None:
    """scale * code + offset for 32 signed bytes, as f32."""
    by, plus = fill(f32x8, scale), fill(f32x8, offset)
    low, high = half(i8x16, codes, 0), half(i8x16, codes, 1)
    store(out, fma(convert(f32x8, half(i8x8, low, 0)), by, plus))
    store(out + 32, fma(convert(f32x8, half(i8x8, low, 1)), by, plus))
    store(out + 64, fma(convert(f32x8, half(i8x8, high, 0)), by, plus))
    store(out + 96, fma(convert(f32x8, half(i8x8, high, 1)), by, plus))


@intrinsic
def read_f16(context: Any, address: Any) -> Any:
    """One f16 number of memory as f32."""
    one, wide = Vector("f16", 1), Vector("f32", 1)

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        value = b.load(pointer(b, a[0], one.llvm), align=1)
        return b.extract_element(cast(b, value, wide, one, True), ir.Constant(SCALARS["i32"], 0))

    return types.float32(types.int64), emit
