"""Arithmetic on the vectors of `simd`: products and sums in one rounding, choices, sums over lanes.

Every sum over lanes is a fixed tree, so its bits depend on nothing but the numbers.
"""
from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin

from unspool.kernels.machine.simd import NUMBA, Mask, Vector, call, pick, splat, suffix


@intrinsic
def fma(context: Any, x: Any, y: Any, z: Any) -> Any:
    """x * y + z, rounded once: of vectors or of three f32 or f64 numbers."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return call(b, f"llvm.fma.{suffix(a[0].type)}", a[0].type, *a)

    return z(x, y, z), emit


def _unary(name: str) -> Any:
    def function(context: Any, x: Any) -> Any:
        def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
            return call(b, f"llvm.{name}.{suffix(a[0].type)}", a[0].type, *a)

        return x(x), emit

    return intrinsic(function)


absolute = _unary("fabs")
square_root = _unary("sqrt")
nearest = _unary("rint")  # to the nearest whole number, of two equally near to the even one


def _comparison(key: Any, sign: str) -> None:
    """Ordered: a NaN compares false. Integers compare with their sign."""

    class Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if len(args) == 2 and isinstance(args[0], Vector) and args[0] == args[1]:
                return signature(Mask(args[0].lanes), *args)
            return None

    Template.key = key
    infer_global(key)(Template)

    @lower_builtin(key, Vector, Vector)
    def compare(c: Any, b: Any, s: Any, a: Any) -> Any:
        return (b.fcmp_ordered if s.args[0].floats else b.icmp_signed)(sign, *a)


for _key, _sign in ((operator.gt, ">"), (operator.ge, ">="), (operator.lt, "<"),
                    (operator.le, "<="), (operator.eq, "==")):  # fmt: skip
    _comparison(_key, _sign)


@intrinsic
def choose(context: Any, mask: Any, yes: Any, no: Any) -> Any:
    """Lane by lane: `yes` where the mask is set, else `no`."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return b.select(*a)

    return yes(mask, yes, no), emit


@intrinsic
def any_of(context: Any, mask: Any) -> Any:
    """True when the mask is set in some lane."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        whole = b.bitcast(a[0], ir.IntType(mask.lanes))
        return b.icmp_unsigned("!=", whole, ir.Constant(whole.type, 0))

    return types.boolean(mask), emit


@intrinsic
def larger(context: Any, x: Any, y: Any) -> Any:
    """Lane by lane the larger one; `y` where either is NaN."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        compare = b.fcmp_ordered if x.floats else b.icmp_signed
        return b.select(compare(">", *a), *a)

    return x(x, y), emit


def _fold(step: Any) -> Any:
    """A tree over the lanes: halves, quarters, ... until one number is left."""

    def function(context: Any, x: Any) -> Any:
        def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
            value, lanes = a[0], x.lanes
            while lanes > 1:
                lanes //= 2
                value = step(b, x, pick(b, value, value, range(lanes)),
                             pick(b, value, value, range(lanes, 2 * lanes)))
            return b.extract_element(value, ir.Constant(ir.IntType(32), 0))

        return NUMBA[x.element](x), emit

    return intrinsic(function)


def _add(b: Any, x: Any, p: Any, q: Any) -> Any:
    return b.fadd(p, q) if x.floats else b.add(p, q)


def _max(b: Any, x: Any, p: Any, q: Any) -> Any:
    compare = b.fcmp_ordered if x.floats else b.icmp_signed
    return b.select(compare(">", p, q), p, q)


total = _fold(_add)  # the sum of all lanes
largest = _fold(_max)


@intrinsic(prefer_literal=True)
def half(context: Any, kind: Any, vector: Any, which: Any) -> Any:
    """The lower (0) or upper (1) half of a vector's lanes, as a vector of `kind`."""
    if not isinstance(which, types.IntegerLiteral):
        return None
    lanes = kind.vector.lanes
    first = which.literal_value * lanes

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return pick(b, a[1], a[1], range(first, first + lanes))

    return kind.vector(kind, vector, which), emit


@intrinsic
def join(context: Any, kind: Any, low: Any, high: Any) -> Any:
    """Two vectors as one of twice the lanes, `kind`."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return pick(b, a[1], a[2], range(kind.vector.lanes))

    return kind.vector(kind, low, high), emit


@intrinsic
def lane(context: Any, vector: Any, index: Any) -> Any:
    """One number of a vector."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return b.extract_element(a[0], b.trunc(a[1], ir.IntType(32)))

    return NUMBA[vector.element](vector, types.int64), emit


@intrinsic
def counted(context: Any, kind: Any, first: Any) -> Any:
    """first, first + 1, first + 2, ...: integers only."""
    vector = kind.vector

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        steps = ir.Constant(vector.llvm, list(range(vector.lanes)))
        return b.add(splat(b, a[1], vector.lanes), steps)

    return vector(kind, NUMBA[vector.element]), emit
