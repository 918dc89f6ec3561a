"""Weights in GGUF's Q6_K: 6-bit codes, 256 to a block, each 16 of them with an 8-bit scale.

    weight = (d * scale) * (code - 32)      210 bytes a block

Packed, a record holds one block of eight rows: d, sixteen times the eight rows' scales, then eight
parts of 32 columns: the lower four bits of the codes as in `nibbles`, and two words of every row
with the upper two; those of word w of `packing.ordered` stand in word w // 4, shifted by 2 (w % 4).
"""
from __future__ import annotations

from typing import Any

import numpy as np

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.lanes import half, lane
from unspool.kernels.machine.registers import (
    add_fours,
    add_pairs,
    add_scaled,
    bits_of_groups,
    convert_groups,
    flip,
    keep_bits,
    load_groups,
    merge_bits,
    multiply_groups,
    shift_left,
    shift_right,
    subtract,
    subtract_sums,
    zeros,
)
from unspool.kernels.machine.simd import (
    convert,
    f16x8,
    f32x8,
    fill,
    i8x8,
    i8x16,
    i8x32,
    i16x16,
    i32x8,
    load,
    read_i8,
    read_i16,
    read_i32,
    read_i64,
    store,
    write_i8,
    write_i16,
    write_i32,
)
from unspool.kernels.weights.activations import BLOCK, I8, I16
from unspool.kernels.weights.embed import register_row
from unspool.kernels.weights.formats import PACK, Q6_K
from unspool.kernels.weights.matmul import GROUPS, group_at, register
from unspool.kernels.weights.packing import (
    by_column,
    nibble_words,
    ordered,
    place_nibbles,
    read_f16,
    words,
)

RECORD, RAW, PARTS, PART = 1680, 210, 8, 192
SCALES, CODES, UPPER = 16, 144, 128
CENTRE = 0x2020  # 32 in each of two bytes


@inner
def half_scales(at: int, unit: Any, index: int) -> Any:
    """Eight rows' d times the scales of sixteen columns: exact in float32."""
    whole = convert_groups(i32x8, load_groups(i8x8, GROUPS, at + SCALES + 8 * index, RECORD))
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
            for side in range(2 * PARTS):
                part = at + CODES + PART * (side >> 1)
                column = x + 2 * BLOCK * (PARTS * b + (side >> 1))
                high = load_groups(i16x16, GROUPS, part + UPPER + 32 * (side & 1), RECORD)
                total = zeros(i32x8, count)
                for q in range(2):
                    quarter = 2 * (side & 1) + q
                    packed = load_groups(i16x16, GROUPS, part + 32 * quarter, RECORD)
                    for pair in range(4):
                        low = keep_bits(shift_right(packed, 4 * pair), 15)
                        place = 8 * (pair >> 1) + 4 * q + 2 * (pair & 1)
                        upper = shift_left(keep_bits(shift_right(high, place), 3), 4)
                        code = subtract(merge_bits(low, upper), 32)
                        total = add_pairs(code, column + 16 * quarter + 4 * pair, x_stride, total)
                where = scales + 4 * (PARTS * b + (side >> 1))
                unit = half_scales(at, d, side)
                out = add_scaled(unit, where, s_stride, total, out)
        return out

    return tile


def tile_i8(rows: int) -> Any:
    """A tile for 8-bit activations: codes without their centre, which a second sum repays."""
    count = GROUPS * rows

    @inner
    def tile(weights: int, blocks: int, x: int, x_stride: int, scales: int, sums: int,
             s_stride: int) -> Any:
        out = zeros(f32x8, count)
        for b in range(blocks):
            at = weights + GROUPS * RECORD * b
            d = convert_groups(f32x8, load_groups(f16x8, GROUPS, at, RECORD))
            for side in range(2 * PARTS):
                part = at + CODES + PART * (side >> 1)
                column = x + BLOCK * (PARTS * b + (side >> 1))
                high = load_groups(i16x16, GROUPS, part + UPPER + 32 * (side & 1), RECORD)
                total, centre = zeros(i32x8, count), zeros(i32x8, count)
                for q in range(2):
                    quarter = 2 * (side & 1) + q
                    packed = load_groups(i16x16, GROUPS, part + 32 * quarter, RECORD)
                    for n in range(2):
                        low = keep_bits(shift_right(packed, 4 * n), 0x0F0F)
                        upper = keep_bits(shift_right(high, 4 * q + 2 * n), 0x0303)
                        code = bits_of_groups(i8x32, merge_bits(low, shift_left(upper, 4)))
                        middle = bits_of_groups(i8x32, flip(keep_bits(low, 0), CENTRE))
                        at_x = column + 8 * quarter + 4 * n
                        total = add_fours(code, at_x, x_stride, total)
                        centre = add_fours(middle, at_x, x_stride, centre)
                where = scales + 4 * (PARTS * b + (side >> 1))
                unit = half_scales(at, d, side)
                out = add_scaled(unit, where, s_stride, subtract_sums(total, centre), out)
        return out

    return tile


@inner
def unpack(group: int, row: int, blocks: int, out: int) -> None:
    """A row of a packed group as f32."""
    for b in range(blocks):
        at = group + GROUPS * RECORD * b
        d = read_f16(at + 2 * row)
        for part in range(PARTS):
            place = at + CODES + PART * part + 4 * row
            h, g = read_i32(place + UPPER), read_i32(place + UPPER + 32)
            upper = words(h, h >> 2, h >> 4, h >> 6, g, g >> 2, g >> 4, g >> 6) & 0x03030303
            code = by_column(nibble_words(place) | (upper << 4))
            for side in range(2):
                scale = d * np.float32(read_i8(at + SCALES + 8 * (2 * part + side) + row))
                write_half(out + 1024 * b + 128 * part + 64 * side, code, side, scale)


@inner
def write_half(out: int, code: Any, side: int, scale: float) -> None:
    """Sixteen of 32 codes less 32, times the scale."""
    by, centre = fill(f32x8, scale), fill(f32x8, np.float32(32.0))
    sixteen = half(i8x16, code, 0)
    if side == 1:
        sixteen = half(i8x16, code, 1)
    store(out, (convert(f32x8, half(i8x8, sixteen, 0)) - centre) * by)
    store(out + 32, (convert(f32x8, half(i8x8, sixteen, 1)) - centre) * by)


@kernel(PACK)
def pack(rows: int, blocks: int, first: int, last: int, out: int) -> None:
    for group in range(first, last):
        for row in range(8):
            source = read_i64(rows + 8 * (8 * group + row))
            for b in range(blocks if source != 0 else 0):
                at = out + group_at(group, blocks, RECORD) + GROUPS * RECORD * b
                block = source + b * RAW
                write_i16(at + 2 * row, read_i16(block + 208))
                for i in range(16):
                    write_i8(at + SCALES + 8 * i + row, read_i8(block + 192 + i))
                for part in range(PARTS):
                    n, j = part >> 2, part & 3
                    both = load(i8x32, block + 64 * n + 32 * (j & 1))
                    four = load(i8x32, block + 128 + 32 * n)
                    place = at + CODES + PART * part + 4 * row
                    place_nibbles(place, ordered((both >> (4 * (j >> 1))) & 15))
                    place_upper(place + UPPER, ordered((four >> (2 * j)) & 3))


@inner
def place_upper(at: int, word: Any) -> None:
    """Eight words of 2-bit codes as two packed words of a row."""
    for h in range(2):
        low = lane(word, 4 * h) | (lane(word, 4 * h + 1) << 2)
        high = (lane(word, 4 * h + 2) << 4) | (lane(word, 4 * h + 3) << 6)
        write_i32(at + 32 * h, low | high)


PACKERS = {Q6_K: pack}
register(Q6_K, I16, RECORD, tile_i16)
register(Q6_K, I8, RECORD, tile_i8)
register_row(Q6_K, RECORD, unpack)
