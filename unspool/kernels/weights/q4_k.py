"""Weights in GGUF's Q4_K: 4-bit codes, 256 to a block, each 32 of them with a scale and a minimum.

    weight = (d * scale) * code - (dmin * minimum)      144 bytes a block

d and dmin are 16-bit floats, scale and minimum 6-bit whole numbers. Packed, a record holds one
block of eight rows: d, dmin with its sign turned, eight times the eight rows' scales, as many
minima, a byte each, then eight times 32 columns as `nibbles` has them.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.registers import (
    add_floats,
    add_scaled,
    convert_groups,
    load_groups,
    multiply_groups,
    widen_groups,
    zeros,
)
from unspool.kernels.machine.simd import (
    f16x8,
    f32x8,
    i8x8,
    i8x32,
    i32x8,
    load,
    read_i8,
    read_i16,
    read_i64,
    write_i8,
    write_i16,
)
from unspool.kernels.weights.activations import I8, I16
from unspool.kernels.weights.embed import register_row
from unspool.kernels.weights.formats import PACK, Q4_K
from unspool.kernels.weights.matmul import GROUPS, group_at, register
from unspool.kernels.weights.nibbles import BYTES, add_nibbles_i8, add_nibbles_i16
from unspool.kernels.weights.packing import (
    by_column,
    nibble_words,
    ordered,
    place_nibbles,
    read_f16,
    write_floats,
)

RECORD, RAW, PARTS = 1184, 144, 8
SCALES, MINIMA, CODES = 32, 96, 160


@inner
def part_scales(at: int, part: int, unit: Any, first: int) -> Any:
    """Eight rows' d or dmin times the whole numbers of one part: exact in float32."""
    whole = widen_groups(i32x8, load_groups(i8x8, GROUPS, at + first + 8 * part, RECORD))
    return multiply_groups(unit, convert_groups(f32x8, whole))


def tile_i16(rows: int) -> Any:
    """A tile for 16-bit activations."""
    count = GROUPS * rows

    @inner
    def tile(weights: int, blocks: int, x: int, x_stride: int, scales: int, sums: int,
             s_stride: int) -> Any:
        out = zeros(f32x8, count)
        for b in range(blocks):
            at = weights + GROUPS * RECORD * b
            d = convert_groups(f32x8, load_groups(f16x8, GROUPS, at, RECORD))
            least = convert_groups(f32x8, load_groups(f16x8, GROUPS, at + 16, RECORD))
            for part in range(PARTS):
                total = zeros(i32x8, count)
                block = PARTS * b + part
                code = at + CODES + BYTES * part
                total = add_nibbles_i16(code, RECORD, x + 64 * block, x_stride, 0, total)
                scale = part_scales(at, part, d, SCALES)
                out = add_scaled(scale, scales + 4 * block, s_stride, total, out)
                lower = part_scales(at, part, least, MINIMA)
                out = add_floats(lower, sums + 4 * block, s_stride, out)
        return out

    return tile


def tile_i8(rows: int) -> Any:
    """A tile for 8-bit activations."""
    count = GROUPS * rows

    @inner
    def tile(weights: int, blocks: int, x: int, x_stride: int, scales: int, sums: int,
             s_stride: int) -> Any:
        out = zeros(f32x8, count)
        for b in range(blocks):
            at = weights + GROUPS * RECORD * b
            d = convert_groups(f32x8, load_groups(f16x8, GROUPS, at, RECORD))
            least = convert_groups(f32x8, load_groups(f16x8, GROUPS, at + 16, RECORD))
            for part in range(PARTS):
                total = zeros(i32x8, count)
                block = PARTS * b + part
                code = at + CODES + BYTES * part
                total = add_nibbles_i8(code, RECORD, x + 32 * block, x_stride, total)
                scale = part_scales(at, part, d, SCALES)
                out = add_scaled(scale, scales + 4 * block, s_stride, total, out)
                lower = part_scales(at, part, least, MINIMA)
                out = add_floats(lower, sums + 4 * block, s_stride, out)
        return out

    return tile


@inner
def unpack(group: int, row: int, blocks: int, out: int) -> None:
    """A row of a packed group as f32."""
    for b in range(blocks):
        at = group + GROUPS * RECORD * b
        d, least = read_f16(at + 2 * row), read_f16(at + 16 + 2 * row)
        for part in range(PARTS):
            scale = d * np.float32(read_i8(at + SCALES + 8 * part + row))
            lower = least * np.float32(read_i8(at + MINIMA + 8 * part + row))
            code = by_column(nibble_words(at + CODES + 128 * part + 4 * row))
            write_floats(out + 1024 * b + 128 * part, code, scale, lower)


@inner
def six_bits(scales: int, part: int) -> tuple[int, int]:
    """Scale and minimum of one part, from the block's twelve bytes of them."""
    if part < 4:
        return read_i8(scales + part) & 63, read_i8(scales + 4 + part) & 63
    both = read_i8(scales + 4 + part)
    high, higher = read_i8(scales + part - 4), read_i8(scales + part)
    scale = (both & 15) | (((high >> 6) & 3) << 4)
    return scale, ((both >> 4) & 15) | (((higher >> 6) & 3) << 4)


@kernel(PACK)
def pack(rows: int, blocks: int, first: int, last: int, out: int) -> None:
    for group in range(first, last):
        for row in range(8):
            source = read_i64(rows + 8 * (8 * group + row))
            for b in range(blocks if source != 0 else 0):
                at = out + group_at(group, blocks, RECORD) + GROUPS * RECORD * b
                block = source + b * RAW
                write_i16(at + 2 * row, read_i16(block))
                write_i16(at + 16 + 2 * row, read_i16(block + 2) ^ 0x8000)
                for part in range(PARTS):
                    scale, least = six_bits(block + 4, part)
                    write_i8(at + SCALES + 8 * part + row, scale)
                    write_i8(at + MINIMA + 8 * part + row, least)
                    both = load(i8x32, block + 16 + 32 * (part >> 1))
                    code = (both >> (4 * (part & 1))) & 15
                    place_nibbles(at + CODES + 128 * part + 4 * row, ordered(code))


PACKERS = {Q4_K: pack}
register(Q4_K, I16, RECORD, tile_i16)
register(Q4_K, I8, RECORD, tile_i8)
register_row(Q4_K, RECORD, unpack)
