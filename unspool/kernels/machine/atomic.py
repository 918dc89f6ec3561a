"""What threads need to agree on something: words that are read, changed and compared in one go.

Also the call of one compiled function by another that knows only its address.
"""
from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from unspool.kernels.machine.cpu import ARM, X86
from unspool.kernels.machine.simd import call

WORD = ir.IntType(64)


def _word(b: Any, address: Any) -> Any:
    return b.inttoptr(address, WORD.as_pointer())


@intrinsic
def atomic_add(context: Any, address: Any, value: Any) -> Any:
    """Add to a word; gives what it was before."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return b.atomic_rmw("add", _word(b, a[0]), a[1], "seq_cst")

    return types.int64(types.int64, types.int64), emit


@intrinsic
def atomic_read(context: Any, address: Any) -> Any:
    """A word, with all that was written before it."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return b.load_atomic(_word(b, a[0]), "acquire", 8)

    return types.int64(types.int64), emit


@intrinsic
def atomic_write(context: Any, address: Any, value: Any) -> Any:
    """Write a word after all that was written before it."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        b.store_atomic(a[1], _word(b, a[0]), "release", 8)
        return c.get_dummy_value()

    return types.void(types.int64, types.int64), emit


@intrinsic
def swap_if(context: Any, address: Any, expected: Any, value: Any) -> Any:
    """Write `value` if the word still is `expected`; True when it was."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        done = b.cmpxchg(_word(b, a[0]), a[1], a[2], "seq_cst", "seq_cst")
        return b.extract_value(done, 1)

    return types.boolean(types.int64, types.int64, types.int64), emit


@intrinsic
def pause(context: Any) -> Any:
    """Tell the core that it waits in a loop."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        if X86:
            call(b, "llvm.x86.sse2.pause", ir.VoidType())
        elif ARM:
            call(b, "llvm.aarch64.hint", ir.VoidType(), ir.Constant(ir.IntType(32), 1))
        return c.get_dummy_value()

    return types.void(), emit


@intrinsic
def call_plain(context: Any, function: Any) -> Any:
    """Call a C function without arguments, such as sched_yield."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        b.call(b.inttoptr(a[0], kind.as_pointer()), [])
        return c.get_dummy_value()

    return types.void(types.int64), emit


@intrinsic
def call_op(context: Any, function: Any, args: Any, step: Any, first: Any, last: Any,
            scratch: Any) -> Any:
    """Call an operation: see `team` for what its arguments mean."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [WORD] * 5)
        b.call(b.inttoptr(a[0], kind.as_pointer()), a[1:])
        return c.get_dummy_value()

    return types.void(*[types.int64] * 6), emit


def _caller(count: int, out: ir.Type, result: Any) -> Any:
    """How to call a kernel of so many whole numbers by its address."""

    def of(kind: Any) -> Any:
        def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
            function = ir.FunctionType(out, [WORD] * count)
            done = b.call(b.inttoptr(a[0], function.as_pointer()), a[1:])
            return done if result is types.int64 else c.get_dummy_value()

        return result(*[types.int64] * (count + 1)), emit

    return of


@intrinsic
def call_rule(context: Any, function: Any, row: Any, numbers: Any, state: Any) -> Any:
    """Call an operation on a row: see `shaping/row` for what its arguments mean."""
    return _caller(3, WORD, types.int64)(function)


@intrinsic
def call_six(context: Any, function: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
    """Call a kernel that takes six whole numbers and answers nothing."""
    return _caller(6, ir.VoidType(), types.void)(function)


@intrinsic
def call_seven(context: Any, function: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any,
               g: Any) -> Any:
    """The same of seven."""
    return _caller(7, ir.VoidType(), types.void)(function)
