"""Short rows and small products: what attention and the norms share.

A row's last lanes may be missing: `load_some` and `store_some` touch only those that exist.
"""
from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

from unspool.kernels.machine.jit import inner
from unspool.kernels.machine.lanes import lane
from unspool.kernels.machine.simd import NUMBA, Vector, f32x8, pointer, read_f32, write_f32, zero

F32X8 = Vector("f32", 8)
WORD = ir.IntType(64)


@intrinsic
def with_lane(context: Any, vector: Any, index: Any, value: Any) -> Any:
    """The vector with one lane changed."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return b.insert_element(a[0], a[2], b.trunc(a[1], ir.IntType(32)))

    return vector(vector, types.int64, NUMBA[vector.element]), emit


@inner
def load_some(address: int, count: int) -> Any:
    """f32x8 of the first `count` floats at the address, then zeros."""
    row = zero(f32x8)
    for i in range(count):
        row = with_lane(row, i, read_f32(address + 4 * i))
    return row


@inner
def store_some(address: int, row: Any, count: int) -> None:
    """The first `count` lanes of an f32x8."""
    for i in range(count):
        write_f32(address + 4 * i, lane(row, i))


# ── tiles ────────────────────────────────────────────────────────────────────────────────────────
class Tile(types.Type):
    """Numba's type of a name for `rows` x `columns` vectors of eight floats.

    The vectors themselves are a flat tuple, vector (row, column) at column * rows + row.
    """

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        self.sums = types.UniTuple(F32X8, rows * columns)
        super().__init__(name=f"tile {rows} x {columns}")

    def address(self, b: Any, first: Any, stride: Any, index: int) -> Any:
        """Of a vector of the tile in memory, whose rows lie `stride` bytes apart."""
        column, row = divmod(index, self.rows)
        start = b.add(first, b.mul(stride, ir.Constant(WORD, row)))
        return pointer(b, b.add(start, ir.Constant(WORD, 32 * column)), F32X8.llvm)


register_model(Tile)(models.OpaqueModel)


@intrinsic(prefer_literal=True)
def tile_of(context: Any, rows: Any, columns: Any) -> Any:
    """The tile of two literal numbers."""
    if not all(isinstance(n, types.IntegerLiteral) for n in (rows, columns)):
        return None

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return c.get_dummy_value()

    return Tile(rows.literal_value, columns.literal_value)(rows, columns), emit


def _number(name: str) -> Any:
    def function(context: Any, tile: Any) -> Any:
        def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
            return ir.Constant(WORD, getattr(tile, name))

        return types.int64(tile), emit

    return intrinsic(function)


rows_of, columns_of = _number("rows"), _number("columns")


@intrinsic
def load_sums(context: Any, tile: Any, address: Any, stride: Any) -> Any:
    """A tile's vectors from memory."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        out = ir.Constant(c.get_value_type(tile.sums), ir.Undefined)
        for i in range(tile.sums.count):
            out = b.insert_value(out, b.load(tile.address(b, a[1], a[2], i), align=1), i)
        return out

    return tile.sums(tile, types.int64, types.int64), emit


@intrinsic
def store_sums(context: Any, tile: Any, address: Any, stride: Any, sums: Any) -> Any:
    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        for i in range(tile.sums.count):
            b.store(b.extract_value(a[3], i), tile.address(b, a[1], a[2], i), align=1)
        return c.get_dummy_value()

    return types.void(tile, types.int64, types.int64, sums), emit
