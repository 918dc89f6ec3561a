"""Rows of a packed matrix as floats: the embedding of tokens."""
from __future__ import annotations

from functools import cache
from typing import Any

from numba import types
from numba.extending import overload

from unspool.kernels.layer.step import TOKENS
from unspool.kernels.machine.jit import Kernel, kernel
from unspool.kernels.machine.simd import read_i64
from unspool.kernels.weights.matmul import OPERATION, group_at

# Words of args.
WEIGHTS, BLOCKS, OUT, OUT_STRIDE = range(4)
WORDS = 4

UNPACKERS: dict[int, tuple[int, Any]] = {}


def register_row(format: int, record: int, unpack: Any) -> None:
    """`unpack(group, row, blocks, out)` writes row 0 .. 7 of the packed group as f32."""
    UNPACKERS[format] = record, unpack


def unpack(format: int, group: int, row: int, blocks: int, out: int) -> None:
    """The registered unpacker, chosen while the kernel is compiled."""
    raise NotImplementedError


@overload(unpack, prefer_literal=True)
def _choose(format: Any, group: Any, row: Any, blocks: Any, out: Any) -> Any:
    if not isinstance(format, types.IntegerLiteral):
        return None
    chosen = UNPACKERS[format.literal_value][1]

    def call(format: Any, group: Any, row: Any, blocks: Any, out: Any) -> Any:
        return chosen(group, row, blocks, out)

    return call


@cache
def embedding(format: int) -> Kernel:
    """The operation that looks up the tokens of a forward. A unit is one of its rows."""
    record = UNPACKERS[format][0]

    @kernel(OPERATION, name=f"embed_{format}")
    def embed(args: int, step: int, first: int, last: int, scratch: int) -> None:
        blocks = read_i64(args + 8 * BLOCKS)
        for row in range(first, last):
            token = read_i64(read_i64(step + 8 * TOKENS) + 8 * row)
            group = read_i64(args + 8 * WEIGHTS) + group_at(token >> 3, blocks, record)
            out = read_i64(args + 8 * OUT) + row * read_i64(args + 8 * OUT_STRIDE)
            unpack(format, group, token & 7, blocks, out)

    return embed
