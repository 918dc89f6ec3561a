"""Weights in GGUF's Q4_0 and Q4_1: 4-bit codes, 32 to a block with a 16-bit scale.

    Q4_0  weight = scale * (code - 8)          18 bytes a block
    Q4_1  weight = scale * code + minimum      20 bytes a block

Packed, a record holds one block of eight rows: their scales, their minima (Q4_1), their codes as
`nibbles` has them.
"""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.lanes import join
from unspool.kernels.machine.registers import (
    add_floats,
    add_scaled,
    convert_groups,
    load_groups,
    scale_groups,
    zeros,
)
from unspool.kernels.machine.simd import (
    f16x8,
    f32x8,
    i8x16,
    i8x32,
    i32x8,
    load,
    read_i16,
    read_i64,
    write_i16,
)
from unspool.kernels.weights.activations import I8, I16
from unspool.kernels.weights.embed import register_row
from unspool.kernels.weights.formats import PACK, Q4_0, Q4_1
from unspool.kernels.weights.matmul import GROUPS, group_at, register
from unspool.kernels.weights.nibbles import add_nibbles_i8, add_nibbles_i16
from unspool.kernels.weights.packing import (
    by_column,
    nibble_words,
    ordered,
    place_nibbles,
    read_f16,
    write_floats,
)

EIGHT = np.float32(-8.0)
RECORD = {0: 144, 1: 160}  # by whether there are minima
CODES = {0: 16, 1: 32}  # where the codes begin


def tile_i16(rows: int, minima: int) -> Any:
    """A tile for 16-bit activations."""
    count, record, codes = GROUPS * rows, RECORD[minima], CODES[minima]
    centre = 8 if minima == 0 else 0

    @inner
    def tile(weights: int, blocks: int, x: int, x_stride: int, scales: int, sums: int,
             s_stride: int) -> Any:
        out = zeros(f32x8, count)
        for b in range(blocks):
            at = weights + GROUPS * record * b
            total = zeros(i32x8, count)
            total = add_nibbles_i16(at + codes, record, x + 64 * b, x_stride, centre, total)
            scale = convert_groups(f32x8, load_groups(f16x8, GROUPS, at, record))
            out = add_scaled(scale, scales + 4 * b, s_stride, total, out)
            if minima == 1:
                least = convert_groups(f32x8, load_groups(f16x8, GROUPS, at + 16, record))
                out = add_floats(least, sums + 4 * b, s_stride, out)
        return out

    return tile


def tile_i8(rows: int, minima: int) -> Any:
    """A tile for 8-bit activations: the codes keep their offset, which the block's sum repays."""
    count, record, codes = GROUPS * rows, RECORD[minima], CODES[minima]

    @inner
    def tile(weights: int, blocks: int, x: int, x_stride: int, scales: int, sums: int,
             s_stride: int) -> Any:
        out = zeros(f32x8, count)
        for b in range(blocks):
            at = weights + GROUPS * record * b
            total = zeros(i32x8, count)
            total = add_nibbles_i8(at + codes, record, x + 32 * b, x_stride, total)
            scale = convert_groups(f32x8, load_groups(f16x8, GROUPS, at, record))
            out = add_scaled(scale, scales + 4 * b, s_stride, total, out)
            if minima == 1:
                least = convert_groups(f32x8, load_groups(f16x8, GROUPS, at + 16, record))
            else:
                least = scale_groups(scale, -8.0)
            out = add_floats(least, sums + 4 * b, s_stride, out)
        return out

    return tile


def unpacker(minima: int) -> Any:
    record, codes = RECORD[minima], CODES[minima]

    @inner
    def unpack(group: int, row: int, blocks: int, out: int) -> None:
        """A row of a packed group as f32."""
        for b in range(blocks):
            at = group + GROUPS * record * b
            scale = read_f16(at + 2 * row)
            offset = read_f16(at + 16 + 2 * row) if minima == 1 else scale * EIGHT
            code = by_column(nibble_words(at + codes + 4 * row))
            write_floats(out + 128 * b, code, scale, offset)

    return unpack


def packer(minima: int) -> Any:
    record, raw_block, head = RECORD[minima], 18 + 2 * minima, 2 + 2 * minima
    codes = CODES[minima]

    @kernel(PACK, name=f"pack_q4_{minima}")
    def pack(rows: int, blocks: int, first: int, last: int, out: int) -> None:
        for group in range(first, last):
            for row in range(8):
                source = read_i64(rows + 8 * (8 * group + row))
                for b in range(blocks if source != 0 else 0):
                    at = out + group_at(group, blocks, record) + GROUPS * record * b
                    block = source + b * raw_block
                    write_i16(at + 2 * row, read_i16(block))
                    if minima == 1:
                        write_i16(at + 16 + 2 * row, read_i16(block + 2))
                    both = load(i8x16, block + head)  # columns 0-15 low, 16-31 high
                    code = ordered(join(i8x32, both & 15, (both >> 4) & 15))
                    place_nibbles(at + codes + 4 * row, code)

    return pack


PACKERS = {Q4_0: packer(0), Q4_1: packer(1)}
for _id, _minima in ((Q4_0, 0), (Q4_1, 1)):
    register(_id, I16, RECORD[_minima], partial(tile_i16, minima=_minima))
    register(_id, I8, RECORD[_minima], partial(tile_i8, minima=_minima))
    register_row(_id, RECORD[_minima], unpacker(_minima))
