"""Weights that are floats: F32, BF16 and F16. Every product is one fused float32 step.

Packed, a record holds one column of eight rows.
"""
from __future__ import annotations

from functools import partial
from typing import Any

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.lanes import lane
from unspool.kernels.machine.registers import (
    add_floats,
    bits_of_groups,
    convert_groups,
    load_groups,
    shift_left,
    widen_groups,
    zeros,
)
from unspool.kernels.machine.simd import (
    bits,
    f16x8,
    f32x8,
    fill,
    i16x8,
    i32x8,
    read_f32,
    read_i16,
    read_i32,
    read_i64,
    write_f32,
    write_i16,
    write_i32,
)
from unspool.kernels.weights.activations import F32 as AS_IS
from unspool.kernels.weights.embed import register_row
from unspool.kernels.weights.formats import BF16, F16, F32, PACK
from unspool.kernels.weights.matmul import GROUPS, group_at, register
from unspool.kernels.weights.packing import read_f16

RECORD = {F32: 32, BF16: 16, F16: 16}


@inner
def f32_column(at: int) -> Any:
    return load_groups(f32x8, GROUPS, at, 32)


@inner
def bf16_column(at: int) -> Any:
    """A bf16 number is the upper half of a float32."""
    half = widen_groups(i32x8, load_groups(i16x8, GROUPS, at, 16))
    return bits_of_groups(f32x8, shift_left(half, 16))


@inner
def f16_column(at: int) -> Any:
    return convert_groups(f32x8, load_groups(f16x8, GROUPS, at, 16))


def tile_of(rows: int, record: int, column: Any) -> Any:
    count = GROUPS * rows

    @inner
    def tile(weights: int, blocks: int, x: int, x_stride: int, scales: int, sums: int,
             s_stride: int) -> Any:
        out = zeros(f32x8, count)
        for k in range(blocks):
            out = add_floats(column(weights + GROUPS * record * k), x + 4 * k, x_stride, out)
        return out

    return tile


@inner
def f32_number(at: int) -> Any:
    return read_f32(at)


@inner
def bf16_number(at: int) -> Any:
    word = fill(i32x8, read_i16(at) << 16)
    return lane(bits(f32x8, word), 0)


@inner
def f16_number(at: int) -> Any:
    return read_f16(at)


def unpacker(record: int, number: Any) -> Any:
    size = record // 8

    @inner
    def unpack(group: int, row: int, blocks: int, out: int) -> None:
        """A row of a packed group as f32."""
        for k in range(blocks):
            write_f32(out + 4 * k, number(group + GROUPS * record * k + size * row))

    return unpack


def packer(size: int) -> Any:
    @kernel(PACK, name=f"pack_floats_{size}")
    def pack(rows: int, blocks: int, first: int, last: int, out: int) -> None:
        for group in range(first, last):
            for row in range(8):
                source = read_i64(rows + 8 * (8 * group + row))
                at = out + group_at(group, blocks, 8 * size) + size * row
                for k in range(blocks if source != 0 else 0):
                    number = source + size * k
                    if size == 4:
                        write_i32(at + GROUPS * 32 * k, read_i32(number))
                    else:
                        write_i16(at + GROUPS * 16 * k, read_i16(number))

    return pack


PACKERS = {F32: packer(4), BF16: packer(2), F16: packer(2)}
for _id, _column, _number in ((F32, f32_column, f32_number), (BF16, bf16_column, bf16_number),
                              (F16, f16_column, f16_number)):
    register(_id, AS_IS, RECORD[_id], partial(tile_of, record=RECORD[_id], column=_column))
    register_row(_id, RECORD[_id], unpacker(RECORD[_id], _number))
