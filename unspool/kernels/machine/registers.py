"""A block of accumulators: tuples of vectors that live in registers while a tile is computed.

A tile multiplies R groups of weights with M rows of activations. Its accumulators are a tuple of
R * M vectors, accumulator r * M + m for group r and row m; what differs by group is a tuple of R
vectors. A group is eight rows of weights, one in each lane.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from unspool.kernels.machine.cpu import has
from unspool.kernels.machine.simd import SCALARS, call, cast, pick, pointer, splat

F32X8 = ir.VectorType(SCALARS["f32"], 8)
I32X8 = ir.VectorType(SCALARS["i32"], 8)


def _word(number: int) -> Any:
    return ir.Constant(SCALARS["i64"], number)


def _tuple(c: Any, b: Any, kind: Any, make: Callable[[int], Any]) -> Any:
    out = ir.Constant(c.get_value_type(kind), ir.Undefined)
    for index in range(kind.count):
        out = b.insert_value(out, make(index), index)
    return out


def _at(b: Any, address: Any, stride: Any, index: int) -> Any:
    return b.add(address, b.mul(stride, _word(index)))


def _everywhere(b: Any, address: Any, element: str, lanes: int = 8) -> Any:
    """One number of memory in every lane."""
    return splat(b, b.load(pointer(b, address, SCALARS[element]), align=1), lanes)


@intrinsic(prefer_literal=True)
def zeros(context: Any, kind: Any, count: Any) -> Any:
    """`count` vectors of zeros."""
    if not isinstance(count, types.IntegerLiteral):
        return None
    out = types.UniTuple(kind.vector, count.literal_value)

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return ir.Constant(c.get_value_type(out), None)

    return out(kind, count), emit


@intrinsic(prefer_literal=True)
def load_groups(context: Any, kind: Any, count: Any, address: Any, distance: Any) -> Any:
    """A vector from each of `count` groups, which lie `distance` bytes apart."""
    if not isinstance(count, types.IntegerLiteral):
        return None
    out = types.UniTuple(kind.vector, count.literal_value)

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        def one(r: int) -> Any:
            return b.load(pointer(b, _at(b, a[2], a[3], r), kind.vector.llvm), align=1)

        return _tuple(c, b, out, one)

    return out(kind, count, types.int64, types.int64), emit


def _by_group(operation: Callable[..., Any]) -> Any:
    """`operation(builder, vector, number)` on each vector of a tuple."""

    def function(context: Any, groups: Any, number: Any) -> Any:
        def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
            element = groups.dtype.llvm.element
            narrow = a[1] if element.width == 64 else b.trunc(a[1], element)
            wide = splat(b, narrow, groups.dtype.lanes)
            return _tuple(c, b, groups, lambda r: operation(b, b.extract_value(a[0], r), wide))

        return groups(groups, types.int64), emit

    return intrinsic(function)


shift_right = _by_group(lambda b, v, n: b.lshr(v, n))
shift_right_signed = _by_group(lambda b, v, n: b.ashr(v, n))
shift_left = _by_group(lambda b, v, n: b.shl(v, n))
keep_bits = _by_group(lambda b, v, n: b.and_(v, n))
subtract = _by_group(lambda b, v, n: b.sub(v, n))
flip = _by_group(lambda b, v, n: b.xor(v, n))


@intrinsic
def merge_bits(context: Any, x: Any, y: Any) -> Any:
    """x | y, group by group."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return _tuple(c, b, x, lambda r: b.or_(b.extract_value(a[0], r), b.extract_value(a[1], r)))

    return x(x, y), emit


@intrinsic
def subtract_sums(context: Any, x: Any, y: Any) -> Any:
    """x - y, accumulator by accumulator."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return _tuple(c, b, x, lambda i: b.sub(b.extract_value(a[0], i), b.extract_value(a[1], i)))

    return x(x, y), emit


@intrinsic
def bits_of_groups(context: Any, kind: Any, groups: Any) -> Any:
    """The same bits as another kind of vector."""
    out = types.UniTuple(kind.vector, groups.count)

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return _tuple(c, b, out, lambda r: b.bitcast(b.extract_value(a[1], r), kind.vector.llvm))

    return out(kind, groups), emit


def _conversion(signed: bool) -> Any:
    def function(context: Any, kind: Any, groups: Any) -> Any:
        out = types.UniTuple(kind.vector, groups.count)

        def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
            def one(r: int) -> Any:
                return cast(b, b.extract_value(a[1], r), kind.vector, groups.dtype, signed)

            return _tuple(c, b, out, one)

        return out(kind, groups), emit

    return intrinsic(function)


convert_groups = _conversion(signed=True)
widen_groups = _conversion(signed=False)


@intrinsic
def multiply_groups(context: Any, x: Any, y: Any) -> Any:
    """x * y, group by group."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return _tuple(c, b, x, lambda r: b.fmul(b.extract_value(a[0], r), b.extract_value(a[1], r)))

    return x(x, y), emit


@intrinsic
def scale_groups(context: Any, groups: Any, number: Any) -> Any:
    """groups * one f32 number."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        wide = splat(b, a[1], groups.dtype.lanes)
        return _tuple(c, b, groups, lambda r: b.fmul(b.extract_value(a[0], r), wide))

    return groups(groups, types.float32), emit


def _pairs(b: Any, x: Any, y: Any) -> Any:
    """Sixteen products of 16-bit numbers, neighbours added: one instruction on most CPUs."""
    wide = ir.VectorType(SCALARS["i32"], 16)
    product = b.mul(b.sext(x, wide), b.sext(y, wide))
    even = pick(b, product, product, range(0, 16, 2))
    return b.add(even, pick(b, product, product, range(1, 16, 2)))


def _fours(b: Any, sums: Any, x: Any, y: Any) -> Any:
    """sums + thirty-two products of unsigned x and signed y, four neighbours added."""
    if has("avx512vnni", "avx512vl"):
        words = (b.bitcast(v, I32X8) for v in (x, y))
        return call(b, "llvm.x86.avx512.vpdpbusd.256", I32X8, sums, *words)
    wide = ir.VectorType(SCALARS["i16"], 32)
    p, q = b.zext(x, wide), b.sext(y, wide)
    low, high = (_pairs(b, pick(b, p, p, part), pick(b, q, q, part))
                 for part in (range(16), range(16, 32)))
    even = pick(b, low, high, range(0, 16, 2))
    return b.add(sums, b.add(even, pick(b, low, high, range(1, 16, 2))))


@intrinsic
def add_pairs(context: Any, codes: Any, x: Any, stride: Any, sums: Any) -> Any:
    """sums += codes * two 16-bit activations of each row, those at x + m * stride.

    `codes`: i16x16 for each group, two neighbouring columns of eight rows; `sums`: i32x8.
    """

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        rows = sums.count // codes.count
        pair = [b.bitcast(_everywhere(b, _at(b, a[1], a[2], m), "i32"),
                          ir.VectorType(SCALARS["i16"], 16)) for m in range(rows)]

        def one(i: int) -> Any:
            product = _pairs(b, b.extract_value(a[0], i // rows), pair[i % rows])
            return b.add(b.extract_value(a[3], i), product)

        return _tuple(c, b, sums, one)

    return sums(codes, types.int64, types.int64, sums), emit


@intrinsic
def add_fours(context: Any, codes: Any, x: Any, stride: Any, sums: Any) -> Any:
    """sums += codes * four 8-bit activations of each row; `codes`: i8x32 without a sign."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        rows = sums.count // codes.count
        four = [b.bitcast(_everywhere(b, _at(b, a[1], a[2], m), "i32"),
                          ir.VectorType(SCALARS["i8"], 32)) for m in range(rows)]

        def one(i: int) -> Any:
            return _fours(b, b.extract_value(a[3], i), b.extract_value(a[0], i // rows),
                          four[i % rows])

        return _tuple(c, b, sums, one)

    return sums(codes, types.int64, types.int64, sums), emit


@intrinsic
def add_floats(context: Any, weights: Any, x: Any, stride: Any, sums: Any) -> Any:
    """sums += weights * one f32 activation of each row, the one at x + m * stride."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        rows = sums.count // weights.count
        number = [_everywhere(b, _at(b, a[1], a[2], m), "f32") for m in range(rows)]

        def one(i: int) -> Any:
            return _fma(b, b.extract_value(a[0], i // rows), number[i % rows],
                        b.extract_value(a[3], i))

        return _tuple(c, b, sums, one)

    return sums(weights, types.int64, types.int64, sums), emit


@intrinsic
def add_scaled(context: Any, scales: Any, x: Any, stride: Any, sums: Any, out: Any) -> Any:
    """out += (scale of the group * scale of the row) * integer sums; rows' scales at x."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        rows = sums.count // scales.count
        number = [_everywhere(b, _at(b, a[1], a[2], m), "f32") for m in range(rows)]

        def one(i: int) -> Any:
            scale = b.fmul(b.extract_value(a[0], i // rows), number[i % rows])
            return _fma(b, scale, b.sitofp(b.extract_value(a[3], i), F32X8),
                        b.extract_value(a[4], i))

        return _tuple(c, b, out, one)

    return out(scales, types.int64, types.int64, sums, out), emit


def _fma(b: Any, x: Any, y: Any, z: Any) -> Any:
    return call(b, "llvm.fma.v8f32", F32X8, x, y, z)


@intrinsic(prefer_literal=True)
def store_tile(context: Any, out: Any, stride: Any, groups: Any, bias: Any, add: Any,
               values: Any) -> Any:
    """Accumulator (r, m) to out + m * stride + 32 * r bytes.

    `bias`: address of f32 numbers to add, one for each row of weights, or 0; `add`: not 0 to add to
    what stands there. `groups`: how many there are, a literal.
    """
    if not isinstance(groups, types.IntegerLiteral):
        return None
    count = groups.literal_value

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        nothing = ir.Constant(F32X8, None)
        rows = values.count // count
        for r in range(count):
            with b.if_else(b.icmp_signed("!=", a[3], _word(0))) as (given, missing):
                with given:
                    read = b.load(pointer(b, b.add(a[3], _word(32 * r)), F32X8), align=1)
                    here = b.block
                with missing:
                    there = b.block
            offset = b.phi(F32X8)
            offset.add_incoming(read, here)
            offset.add_incoming(nothing, there)
            for m in range(rows):
                where = pointer(b, b.add(_at(b, a[0], a[1], m), _word(32 * r)), F32X8)
                value = b.fadd(b.extract_value(a[5], r * rows + m), offset)
                with b.if_else(b.icmp_signed("!=", a[4], _word(0))) as (adding, writing):
                    with adding:
                        b.store(b.fadd(b.load(where, align=1), value), where, align=1)
                    with writing:
                        b.store(value, where, align=1)
        return c.get_dummy_value()

    return types.void(types.int64, types.int64, groups, types.int64, types.int64, values), emit
