"""Matrix products: how the tiles of a format are driven over rows of weights and of activations.

Packed weights lie in groups of eight rows. A unit of work is GROUPS of them, whose records take
turns, so that a unit is read from its first byte to its last. Every output is summed over the
columns in one order, whatever the tile, so it does not depend on how many rows of activations
there are. Each format registers its tiles; only those in use are compiled.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numba import types
from numba.extending import overload

from unspool.kernels.machine.cpu import registers
from unspool.kernels.machine.jit import Kernel, inner, kernel
from unspool.kernels.machine.registers import store_tile
from unspool.kernels.machine.simd import read_i64

OPERATION = "void(int64, int64, int64, int64, int64)"
GROUPS = 2 if registers() >= 32 else 1
ROWS = 8 * GROUPS  # rows of weights in a unit: packed matrices are padded to a multiple
BATCH = 64  # rows of activations that stay in the cache while units are gone through

# Words of args. X .. SUMS: activations in the form that the format wants; BIAS: address or 0; ADD:
# 1 to add to what OUT holds; COUNT: which word of the step says how many rows there are.
WEIGHTS, BLOCKS, X, X_STRIDE, SCALES, SUMS, S_STRIDE, OUT, OUT_STRIDE, BIAS, ADD, COUNT = range(12)
WORDS = 12

TILES: dict[tuple[int, int], tuple[int, Callable[[int], Any]]] = {}


def register(format: int, form: int, record: int, make: Callable[[int], Any]) -> None:
    """`make(rows)` gives the tile of a weight format and a form of activations.

    tile(weights, blocks, x, x stride, scales, sums, their stride) -> accumulators of GROUPS groups
    and `rows` rows. `record`: bytes of a block of one group.
    """
    TILES[format, form] = record, make


@inner
def group_at(group: int, blocks: int, record: int) -> int:
    """Where the first record of a group is; the next one is GROUPS records further."""
    return (group // GROUPS * GROUPS * blocks + group % GROUPS) * record


def tile(format: int, form: int, rows: int, *arguments: int) -> Any:
    """The registered tile, chosen while the kernel is compiled."""
    raise NotImplementedError


@overload(tile, prefer_literal=True)
def _choose(format: Any, form: Any, rows: Any, *arguments: Any) -> Any:
    if not all(isinstance(n, types.IntegerLiteral) for n in (format, form, rows)):
        return None
    chosen = TILES[format.literal_value, form.literal_value][1](rows.literal_value)

    def call(format: Any, form: Any, rows: Any, *arguments: Any) -> Any:
        return chosen(*arguments)

    return call


def multiply(format: int, form: int, args: int, step: int, first: int, last: int) -> None:
    """Units first .. last - 1 of a product, for every row of activations."""
    raise NotImplementedError


@overload(multiply, prefer_literal=True)
def _compile(format: Any, form: Any, args: Any, step: Any, first: Any, last: Any) -> Any:
    if not all(isinstance(n, types.IntegerLiteral) for n in (format, form)):
        return None
    kind, to = format.literal_value, form.literal_value
    record = TILES[kind, to][0]

    def loop(format: Any, form: Any, args: Any, step: Any, first: Any, last: Any) -> Any:
        blocks = read_i64(args + 8 * BLOCKS)
        x_stride, s_stride = read_i64(args + 8 * X_STRIDE), read_i64(args + 8 * S_STRIDE)
        out_stride, add = read_i64(args + 8 * OUT_STRIDE), read_i64(args + 8 * ADD)
        count = read_i64(step + 8 * read_i64(args + 8 * COUNT))
        away = GROUPS * blocks * record
        for begin in range(0, count, BATCH):
            end = min(begin + BATCH, count)
            for unit in range(first, last):
                w = read_i64(args + 8 * WEIGHTS) + unit * away
                bias = read_i64(args + 8 * BIAS)
                if bias != 0:
                    bias += 4 * ROWS * unit
                m = begin
                while m < end:
                    x = read_i64(args + 8 * X) + m * x_stride
                    d = read_i64(args + 8 * SCALES) + m * s_stride
                    s = read_i64(args + 8 * SUMS) + m * s_stride
                    out = read_i64(args + 8 * OUT) + m * out_stride + 4 * ROWS * unit
                    if end - m >= 4:
                        four = tile(kind, to, 4, w, blocks, x, x_stride, d, s, s_stride)
                        store_tile(out, out_stride, GROUPS, bias, add, four)
                        m += 4
                    elif end - m >= 2:
                        two = tile(kind, to, 2, w, blocks, x, x_stride, d, s, s_stride)
                        store_tile(out, out_stride, GROUPS, bias, add, two)
                        m += 2
                    else:
                        one = tile(kind, to, 1, w, blocks, x, x_stride, d, s, s_stride)
                        store_tile(out, out_stride, GROUPS, bias, add, one)
                        m += 1

    return loop


@cache
def product(format: int, form: int) -> Kernel:
    """The operation that multiplies weights of a format with activations of a form."""

    @kernel(OPERATION, name=f"multiply_{format}_{form}")
    def operation(args: int, step: int, first: int, last: int, scratch: int) -> None:
        multiply(format, form, args, step, first, last)

    return operation
