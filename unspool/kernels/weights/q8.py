"""Weights in GGUF's Q8_0: 8-bit codes, 32 to a block with a 16-bit scale; weight = scale * code.

Packed, a record holds one block of eight rows, 272 bytes:

    scales     8 x 2 bytes    of rows 0 .. 7
    word 0     8 x 4 bytes    four codes of row 0, four of row 1, ...
    ...
    word 7

Word 2c + n has the columns 8c + 2n, 8c + 2n + 4, 8c + 2n + 1 and 8c + 2n + 5, see
`activations.ORDER`. So, as sixteen 16-bit numbers, its low bytes are two neighbouring columns of
eight rows, which one instruction multiplies and adds, and its high bytes the two that stand four
further. What a tile is given is said at `matmul.register`.
"""
from __future__ import annotations

from typing import Any

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.lanes import lane
from unspool.kernels.machine.registers import (
    add_floats,
    add_fours,
    add_pairs,
    add_scaled,
    convert_groups,
    flip,
    load_groups,
    scale_groups,
    shift_left,
    shift_right_signed,
    zeros,
)
from unspool.kernels.machine.simd import (
    f16x8,
    f32x8,
    i8x32,
    i16x16,
    i32x8,
    load,
    read_i16,
    read_i32,
    read_i64,
    write_i16,
    write_i32,
)
from unspool.kernels.weights.activations import BLOCK, I8, I16
from unspool.kernels.weights.embed import register_row
from unspool.kernels.weights.formats import PACK, Q8_0
from unspool.kernels.weights.matmul import GROUPS, group_at, register
from unspool.kernels.weights.packing import by_column, ordered, read_f16, words, write_floats

RECORD, RAW, CODES = 272, 34, 16  # bytes of a record, of a stored block, before the codes


def tile_i16(rows: int) -> Any:
    """A tile for 16-bit activations."""
    count = GROUPS * rows

    @inner
    def tile(weights: int, blocks: int, x: int, x_stride: int, scales: int, sums: int,
             s_stride: int) -> Any:
        out = zeros(f32x8, count)
        for b in range(blocks):
            at = weights + GROUPS * RECORD * b
            total = zeros(i32x8, count)
            for word in range(8):
                packed = load_groups(i16x16, GROUPS, at + CODES + 32 * word, RECORD)
                low = shift_right_signed(shift_left(packed, 8), 8)
                high = shift_right_signed(packed, 8)
                column = x + 2 * (BLOCK * b + 8 * (word >> 1) + 2 * (word & 1))  # 2 bytes each
                total = add_pairs(low, column, x_stride, total)
                total = add_pairs(high, column + 2 * 4, x_stride, total)
            scale = convert_groups(f32x8, load_groups(f16x8, GROUPS, at, RECORD))
            out = add_scaled(scale, scales + 4 * b, s_stride, total, out)
        return out

    return tile


def tile_i8(rows: int) -> Any:
    """A tile for 8-bit activations: codes are taken 128 higher, which the block's sum repays."""
    count = GROUPS * rows

    @inner
    def tile(weights: int, blocks: int, x: int, x_stride: int, scales: int, sums: int,
             s_stride: int) -> Any:
        out = zeros(f32x8, count)
        for b in range(blocks):
            at = weights + GROUPS * RECORD * b
            total = zeros(i32x8, count)
            for word in range(8):
                packed = load_groups(i8x32, GROUPS, at + CODES + 32 * word, RECORD)
                column = x + BLOCK * b + 4 * word
                total = add_fours(flip(packed, 0x80), column, x_stride, total)
            scale = convert_groups(f32x8, load_groups(f16x8, GROUPS, at, RECORD))
            out = add_scaled(scale, scales + 4 * b, s_stride, total, out)
            out = add_floats(scale_groups(scale, -128.0), sums + 4 * b, s_stride, out)
        return out

    return tile


@inner
def unpack(group: int, row: int, blocks: int, out: int) -> None:
    """A row of a packed group as f32."""
    for b in range(blocks):
        at = group + GROUPS * RECORD * b
        code = at + CODES + 4 * row
        c, d = code + 64, code + 192
        word = words(read_i32(code), read_i32(code + 32), read_i32(c), read_i32(c + 32),
                     read_i32(c + 64), read_i32(c + 96), read_i32(d), read_i32(d + 32))
        write_floats(out + 128 * b, by_column(word), read_f16(at + 2 * row), 0.0)


@kernel(PACK)
def pack(rows: int, blocks: int, first: int, last: int, out: int) -> None:
    for group in range(first, last):
        for row in range(8):
            source = read_i64(rows + 8 * (8 * group + row))
            for b in range(blocks if source != 0 else 0):
                at = out + group_at(group, blocks, RECORD) + GROUPS * RECORD * b
                block = source + b * RAW
                write_i16(at + 2 * row, read_i16(block))
                word = ordered(load(i8x32, block + 2))
                for i in range(8):
                    write_i32(at + CODES + 32 * i + 4 * row, lane(word, i))


PACKERS = {Q8_0: pack}
register(Q8_0, I16, RECORD, tile_i16)
register(Q8_0, I8, RECORD, tile_i8)
register_row(Q8_0, RECORD, unpack)
