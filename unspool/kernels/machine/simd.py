"""Vectors inside kernels: a few typed registers' worth of numbers with the operators of Python.

`load(f32x8, address)` reads eight floats, `a * b + c` works lane by lane, and the compiler chooses
the instructions of the CPU at hand; without AVX2 it takes several smaller ones, and the bits stay
the same. Addresses are plain integers. Nothing here is checked: kernels are small and tested.
"""
from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_constant
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model, typeof_impl

from unspool.kernels.machine.cpu import X86, has

SCALARS = {
    "f16": ir.HalfType(), "f32": ir.FloatType(), "f64": ir.DoubleType(),
    "i8": ir.IntType(8), "i16": ir.IntType(16), "i32": ir.IntType(32), "i64": ir.IntType(64),
}  # fmt: skip
NUMBA = {
    "f32": types.float32, "f64": types.float64, "i8": types.int8, "i16": types.int16,
    "i32": types.int32, "i64": types.int64,
}  # fmt: skip
BOOL = ir.IntType(1)


class Vector(types.Type):
    """Numba's type of `lanes` numbers. Integers carry no sign: the operations do."""

    def __init__(self, element: str, lanes: int) -> None:
        self.element, self.lanes = element, lanes
        super().__init__(name=f"{element}x{lanes}")

    @property
    def llvm(self) -> ir.VectorType:
        return ir.VectorType(SCALARS[self.element], self.lanes)

    @property
    def floats(self) -> bool:
        return self.element.startswith("f")


class Mask(types.Type):
    """Numba's type of the answer of a comparison, one bit for each lane."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(name=f"mask{lanes}")

    @property
    def llvm(self) -> ir.VectorType:
        return ir.VectorType(BOOL, self.lanes)


@register_model(Vector)
@register_model(Mask)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, kind.llvm)


class Kind:
    """Names a Vector type inside kernels: `f32x8`."""

    def __init__(self, element: str, lanes: int) -> None:
        self.vector = Vector(element, lanes)


class _KindType(types.Type):
    def __init__(self, vector: Vector) -> None:
        self.vector = vector
        super().__init__(name=f"kind {vector.name}")


register_model(_KindType)(models.OpaqueModel)
typeof_impl.register(Kind)(lambda kind, context: _KindType(kind.vector))
lower_constant(_KindType)(lambda context, builder, kind, value: context.get_dummy_value())

f32x8, f64x4, f64x8, f16x8 = Kind("f32", 8), Kind("f64", 4), Kind("f64", 8), Kind("f16", 8)
i8x8, i8x16, i8x32 = Kind("i8", 8), Kind("i8", 16), Kind("i8", 32)
i16x8, i16x16, i32x8, i64x4 = Kind("i16", 8), Kind("i16", 16), Kind("i32", 8), Kind("i64", 4)
i32x4 = Kind("i32", 4)


# ── what other files build on ────────────────────────────────────────────────────────────────────
def pointer(b: ir.IRBuilder, address: Any, kind: Any) -> Any:
    return b.inttoptr(address, kind.as_pointer())


def splat(b: ir.IRBuilder, value: Any, lanes: int) -> Any:
    """One number in every lane."""
    nothing = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    first = b.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
    return b.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(ir.IntType(32), lanes), None))


def pick(b: ir.IRBuilder, x: Any, y: Any, lanes: Any) -> Any:
    """The named lanes of x followed by y."""
    which = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), list(lanes))
    return b.shuffle_vector(x, y, which)


def call(b: ir.IRBuilder, name: str, out: Any, *arguments: Any) -> Any:
    """A function of LLVM's own."""
    kind = ir.FunctionType(out, [a.type for a in arguments])
    return b.call(cgutils.get_or_insert_function(b.module, kind, name), arguments)


def suffix(kind: Any) -> str:
    """How LLVM spells a type at the end of a function's name."""
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    spelt = {"half": "f16", "float": "f32", "double": "f64"}.get(str(element), str(element))
    return f"v{kind.count}{spelt}" if isinstance(kind, ir.VectorType) else spelt


# ── memory ───────────────────────────────────────────────────────────────────────────────────────
@intrinsic
def load(context: Any, kind: Any, address: Any) -> Any:
    """A vector from memory, at any alignment."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return b.load(pointer(b, a[1], kind.vector.llvm), align=1)

    return kind.vector(kind, types.int64), emit


@intrinsic
def store(context: Any, address: Any, vector: Any) -> Any:
    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        b.store(a[1], pointer(b, a[0], vector.llvm), align=1)
        return c.get_dummy_value()

    return types.void(types.int64, vector), emit


def _scalar(name: str) -> tuple[Any, Any]:
    """How to read and to write one number of a type."""

    def read(context: Any, address: Any) -> Any:
        def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
            return b.load(pointer(b, a[0], SCALARS[name]), align=1)

        return NUMBA[name](types.int64), emit

    def write(context: Any, address: Any, value: Any) -> Any:
        def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
            b.store(a[1], pointer(b, a[0], SCALARS[name]), align=1)
            return c.get_dummy_value()

        return types.void(types.int64, NUMBA[name]), emit

    return intrinsic(read), intrinsic(write)


read_f32, write_f32 = _scalar("f32")
read_f64, write_f64 = _scalar("f64")
read_i8, write_i8 = _scalar("i8")
read_i16, write_i16 = _scalar("i16")
read_i32, write_i32 = _scalar("i32")
read_i64, write_i64 = _scalar("i64")


@intrinsic
def prefetch(context: Any, address: Any) -> Any:
    """Ask for a cache line that will be read soon."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        where = b.inttoptr(a[0], ir.IntType(8).as_pointer())
        how = [ir.Constant(ir.IntType(32), i) for i in (0, 3, 1)]
        call(b, "llvm.prefetch.p0", ir.VoidType(), where, *how)
        return c.get_dummy_value()

    return types.void(types.int64), emit


# ── making vectors ───────────────────────────────────────────────────────────────────────────────
@intrinsic
def fill(context: Any, kind: Any, value: Any) -> Any:
    """The same number in every lane."""
    vector = kind.vector

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return splat(b, a[1], vector.lanes)

    return vector(kind, NUMBA[vector.element]), emit


@intrinsic
def zero(context: Any, kind: Any) -> Any:
    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return ir.Constant(kind.vector.llvm, None)

    return kind.vector(kind), emit


@intrinsic
def bits(context: Any, kind: Any, vector: Any) -> Any:
    """The same bits as another kind of vector."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return b.bitcast(a[1], kind.vector.llvm)

    return kind.vector(kind, vector), emit


def _conversion(signed: bool) -> Any:
    def convert(context: Any, kind: Any, vector: Any) -> Any:
        def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
            return cast(b, a[1], kind.vector, vector, signed)

        return kind.vector(kind, vector), emit

    return convert


def cast(b: ir.IRBuilder, value: Any, to: Vector, of: Vector, signed: bool) -> Any:
    if of.element == "f16" and X86 and not has("f16c"):
        return _from_half(b, value, of.lanes)
    if to.floats and of.floats:
        return b.fpext(value, to.llvm) if _wider(to, of) else b.fptrunc(value, to.llvm)
    if to.floats:
        return b.sitofp(value, to.llvm) if signed else b.uitofp(value, to.llvm)
    if of.floats:
        return b.fptosi(value, to.llvm)
    if not _wider(to, of):
        return b.trunc(value, to.llvm)
    return b.sext(value, to.llvm) if signed else b.zext(value, to.llvm)


def _from_half(b: ir.IRBuilder, value: Any, lanes: int) -> Any:
    """f16 to f32 by moving bits: else the compiler would call a function that is not there.

    Exact for every finite number.
    """
    wide, floats = (ir.VectorType(SCALARS[name], lanes) for name in ("i32", "f32"))

    def constant(number: Any, kind: Any = wide) -> Any:
        return ir.Constant(kind, [number] * lanes)

    word = b.zext(b.bitcast(value, ir.VectorType(SCALARS["i16"], lanes)), wide)
    size = b.bitcast(b.shl(b.and_(word, constant(0x7FFF)), constant(13)), floats)
    size = b.bitcast(b.fmul(size, constant(2.0**112, floats)), wide)
    sign = b.shl(b.and_(word, constant(0x8000)), constant(16))
    return b.bitcast(b.or_(size, sign), floats)


def _wider(to: Vector, of: Vector) -> bool:
    return int(to.element[1:]) > int(of.element[1:])


convert = intrinsic(_conversion(signed=True))  # numbers to another type; towards zero to integers
widen = intrinsic(_conversion(signed=False))  # the same for integers without a sign


# ── operators ────────────────────────────────────────────────────────────────────────────────────
def _binary(key: Any, floats: str | None, integers: str | None) -> None:
    """`vector op vector` of one type, and `integers op constant`."""

    class Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if len(args) != 2 or not isinstance(args[0], Vector):
                return None
            if args[0] == args[1]:
                return signature(args[0], *args)
            if isinstance(args[1], types.Integer) and not args[0].floats:
                return signature(args[0], args[0], types.int64)
            return None

    Template.key = key
    infer_global(key)(Template)

    @lower_builtin(key, Vector, Vector)
    def both(c: Any, b: Any, s: Any, a: Any) -> Any:
        return getattr(b, (floats if s.args[0].floats else integers) or "")(*a)

    @lower_builtin(key, Vector, types.Integer)
    def constant(c: Any, b: Any, s: Any, a: Any) -> Any:
        narrow = a[1] if a[0].type.element.width == 64 else b.trunc(a[1], a[0].type.element)
        return getattr(b, integers or "")(a[0], splat(b, narrow, s.args[0].lanes))


_binary(operator.add, "fadd", "add")
_binary(operator.sub, "fsub", "sub")
_binary(operator.mul, "fmul", "mul")
_binary(operator.truediv, "fdiv", None)
_binary(operator.and_, None, "and_")
_binary(operator.or_, None, "or_")
_binary(operator.xor, None, "xor")
_binary(operator.lshift, None, "shl")
_binary(operator.rshift, None, "lshr")  # fills with zeros
