"""How keys and values lie in memory: in blocks of PAGE tokens of one layer and head.

    keys    [padded, PAGE], so that neighbours in memory are the same number of PAGE keys
    values  [PAGE, padded]
    kind    F32; BF16, rounded to the nearest; INT8, codes times the scale of their token, and at
            the end of the block those scales, f32 [PAGE]

`padded`: the size of a head rounded up to a multiple of 8. A text's page table is int64 [pages, 4]:
the address of the page's keys at layer 0 and head 0, and how many bytes further those of the next
layer, those of the next head, and the values that belong to them are. So the keys of all pages of a
layer and head can lie one after the other, and the values too: a CPU reads ahead by itself where
memory is read in order, and so twice as fast as from page to page.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

from unspool.core.prefix import BLOCK
from unspool.kernels.machine.jit import inner
from unspool.kernels.machine.simd import SCALARS, Vector, cast, pointer, read_i64

PAGE = BLOCK
F32, BF16, INT8 = 0, 1, 2
KINDS = {"f32": F32, "bf16": BF16, "int8": INT8}
BYTES = {F32: 4, BF16: 2, INT8: 1}


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes of a model's keys and values; `kind` is one of KINDS' values."""

    layers: int
    kv_heads: int
    size: int
    kind: int = F32

    @property
    def padded(self) -> int:
        return padded(self.size)

    @property
    def block(self) -> int:
        """Bytes of a block, of keys or of values."""
        return PAGE * (self.padded * BYTES[self.kind] + (4 if self.kind == INT8 else 0))

    @property
    def page(self) -> int:
        """Bytes of a page."""
        return 2 * self.layers * self.kv_heads * self.block


def padded(size: int) -> int:
    return (size + 7) & ~7


@inner
def block_at(table: int, page: int, layer: int, head: int, part: int) -> int:
    """The address of a page's keys (`part` 0) or values (1) at a layer and head."""
    row = table + 32 * page
    start = read_i64(row) + layer * read_i64(row + 8) + head * read_i64(row + 16)
    return start + part * read_i64(row + 24)


# ── what is stored, as floats ────────────────────────────────────────────────────────────────────
class Stored(types.Type):
    """Numba's type of a name for one kind of stored numbers."""

    def __init__(self, kind: int) -> None:
        self.bytes = BYTES[kind]
        self.vector = Vector({F32: "f32", BF16: "i16", INT8: "i8"}[kind], 8)
        super().__init__(name=f"stored {kind}")

    def floats(self, b: Any, address: Any) -> Any:
        """Eight of them."""
        read = b.load(pointer(b, address, self.vector.llvm), align=1)
        out = Vector("f32", 8)
        if self.vector.element == "i16":  # the upper half of an f32
            word = Vector("i32", 8)
            wide = cast(b, read, word, self.vector, signed=False)
            return b.bitcast(b.shl(wide, ir.Constant(word.llvm, [16] * 8)), out.llvm)
        return read if self.vector.floats else cast(b, read, out, self.vector, signed=True)


register_model(Stored)(models.OpaqueModel)


@intrinsic(prefer_literal=True)
def stored(context: Any, kind: Any) -> Any:
    """The kind of a literal number."""
    if not isinstance(kind, types.IntegerLiteral):
        return None

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return c.get_dummy_value()

    return Stored(kind.literal_value)(kind), emit


@intrinsic
def bytes_of(context: Any, kind: Any) -> Any:
    """Of one stored number."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return ir.Constant(SCALARS["i64"], kind.bytes)

    return types.int64(kind), emit


@intrinsic
def read_vectors(context: Any, kind: Any, tile: Any, address: Any) -> Any:
    """A row of the tile's columns from memory, as a tuple of vectors."""
    out = types.UniTuple(Vector("f32", 8), tile.columns)

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        vectors = ir.Constant(c.get_value_type(out), ir.Undefined)
        for i in range(tile.columns):
            at = b.add(a[2], ir.Constant(SCALARS["i64"], 8 * kind.bytes * i))
            vectors = b.insert_value(vectors, kind.floats(b, at), i)
        return vectors

    return out(kind, tile, types.int64), emit
