"""The memory roofline: how fast a plain sum reads memory, with the threads that decoding uses."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unspool.kernels.layer.step import ONE, WORDS
from unspool.kernels.machine.jit import kernel
from unspool.kernels.machine.lanes import total
from unspool.kernels.machine.simd import i64x4, load, prefetch, read_i64, write_i64, zero
from unspool.kernels.machine.team import Program, Team

PIECE = 2**18  # bytes of a unit
AHEAD = 2048  # bytes


@kernel("void(int64, int64, int64, int64, int64)")
def add_up(args: int, step: int, first: int, last: int, scratch: int) -> None:
    """`args`: address of the numbers. A unit is PIECE bytes; the sum is added to the scratch."""
    a = b = c = d = zero(i64x4)
    for at in range(args + PIECE * first, args + PIECE * last, 256):
        for line in range(0, 256, 64):
            prefetch(at + AHEAD + line)
        a = a + load(i64x4, at) + load(i64x4, at + 32)
        b = b + load(i64x4, at + 64) + load(i64x4, at + 96)
        c = c + load(i64x4, at + 128) + load(i64x4, at + 160)
        d = d + load(i64x4, at + 192) + load(i64x4, at + 224)
    write_i64(scratch, read_i64(scratch) + total((a + b) + (c + d)))


def reader(numbers: Any, threads: int) -> Callable[[], int]:
    """A function that reads all of an array (a whole number of PIECE bytes) once.

    It gives the sum of the array's 64-bit words.
    """
    team = Team(threads, 64)
    units = numbers.nbytes // PIECE
    program = Program([(add_up.address, numbers.ctypes.data, ONE, units, 1)], [numbers])
    step = np.zeros(WORDS, np.int64)
    step[ONE] = 1

    def read() -> int:
        sums = team.scratch[:, :8].view(np.int64)
        sums[:] = 0
        team.run(program, step)
        return int(sums.sum())

    return read
