"""Sums over 32 columns of 4-bit codes, for the formats that pack them so.

Packed, eight rows' codes lie in four quarters of eight columns, in each four bytes of every row. As
sixteen 16-bit numbers, a quarter shifted right by 4s holds columns 2s and 2s + 1 of eight rows in
its low four bits; as 32 bytes, the low and the high halves are four columns each, see
`activations.ORDER`.
"""
from __future__ import annotations

from typing import Any

from unspool.kernels.machine.jit import inner
from unspool.kernels.machine.registers import (
    add_fours,
    add_pairs,
    bits_of_groups,
    keep_bits,
    load_groups,
    shift_right,
    subtract,
)
from unspool.kernels.machine.simd import i8x32, i16x16
from unspool.kernels.weights.matmul import GROUPS

BYTES = 128  # of 32 columns of eight rows


@inner
def add_nibbles_i16(at: int, away: int, x: int, x_stride: int, centre: int, total: Any) -> Any:
    """total += (code - centre) * 16-bit activations; the groups' codes are `away` bytes apart."""
    for quarter in range(4):
        packed = load_groups(i16x16, GROUPS, at + 32 * quarter, away)
        for pair in range(4):
            code = subtract(keep_bits(shift_right(packed, 4 * pair), 15), centre)
            total = add_pairs(code, x + 16 * quarter + 4 * pair, x_stride, total)
    return total


@inner
def add_nibbles_i8(at: int, away: int, x: int, x_stride: int, total: Any) -> Any:
    """total += code * 8-bit activations."""
    for quarter in range(4):
        packed = load_groups(i16x16, GROUPS, at + 32 * quarter, away)
        low = bits_of_groups(i8x32, keep_bits(packed, 0x0F0F))
        high = bits_of_groups(i8x32, keep_bits(shift_right(packed, 4), 0x0F0F))
        total = add_fours(low, x + 8 * quarter, x_stride, total)
        total = add_fours(high, x + 8 * quarter + 4, x_stride, total)
    return total
