"""A team of threads that runs a program: a list of operations, each cut into units of work.

    program   a row of eight words for each operation:
              function, args, unit kind, units, least units to take at once
    function  void(args, step, first, last, scratch): computes units first .. last - 1
    args      address of the operation's own words
    step      address of the words of this run; step[unit kind] times `units` is how much there is
    scratch   address of memory that belongs to the calling thread alone

Who computes a unit never matters to its result. A thread takes units as it gets to them, and goes
on to the next operation when all units of this one are done; so nobody waits for a thread that
the system has put to sleep, unless it sleeps on work it took. Idle threads spin for a moment,
then yield, then sleep until they are needed.

Each operation has two counters, units yet to be taken and units yet to be done, marked with the
number of the run in their upper half: a thread that wakes up late sees that its run is over and
touches nothing. The caller may change the step's words by then, so nobody reads them but with
units in hand, which keep the run from ending.
"""
from __future__ import annotations

import ctypes
import sys
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.machine.atomic import (
    atomic_add,
    atomic_read,
    atomic_write,
    call_op,
    call_plain,
    pause,
    swap_if,
)
from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.simd import read_i64, write_i64

Words = NDArray[np.int64]

ROW = 8  # words of an operation in the program
LINE = 64  # bytes: counters of two kinds never share one
RUN = 32  # the run's number stands above this bit of a counter
SPINS, YIELDS = 4_000, 4_000  # some 100 us, then one or two milliseconds

# Words of the control block, a cache line each.
KICK, PARKED, CLOSED, PROGRAM, THREADS, YIELD = (8 * i for i in range(6))
CONTROL = 6 * 8
RUNS = 0x3FFFFFFF  # run numbers wrap here


@inner
def wait(turn: int, control: int) -> int:
    """One turn of a loop that waits: brief at first, then the core is offered to others."""
    if turn < SPINS:
        pause()
    else:
        other = read_i64(control + 8 * YIELD)
        if other != 0:
            call_plain(other)
    return turn + 1


@inner
def take(counter: int, run: int, least: int, threads: int) -> tuple[int, int]:
    """The next units of an operation as (left before, count); count 0: none left, -1: the run is
    over."""
    while True:
        seen = atomic_read(counter)
        if (seen >> RUN) != run:
            return 0, -1
        left = seen & 0xFFFFFFFF
        if left == 0:
            return 0, 0
        count = min(left, max(least, left // (2 * threads)))
        if swap_if(counter, seen, seen - count):
            return left, count


@inner
def units_of(row: int, step: int) -> int:
    """How much there is of an operation in this run."""
    return read_i64(row + 24) * read_i64(step + 8 * read_i64(row + 16))


@kernel("void(int64, int64, int64)")
def work(control: int, run: int, scratch: int) -> None:
    """Take part in a run until it is over."""
    take_part(control, run, scratch)


@inner
def take_part(control: int, run: int, scratch: int) -> None:
    program = atomic_read(control + 8 * PROGRAM)
    counters, step = read_i64(program + 8), read_i64(program + 16)
    threads = read_i64(control + 8 * THREADS)
    for index in range(read_i64(program)):
        row = program + 8 * ROW * (index + 1)
        taken = counters + 2 * LINE * index
        done = taken + LINE
        while True:
            left, count = take(taken, run, read_i64(row + 32), threads)
            if count < 0:
                return
            if count == 0:
                break
            first = units_of(row, step) - left
            call_op(read_i64(row), read_i64(row + 8), step, first, first + count, scratch)
            atomic_add(done, -count)
        turn = 0
        while atomic_read(done) != run << RUN:
            if (atomic_read(done) >> RUN) != run:
                return
            turn = wait(turn, control)


@kernel("int64(int64, int64, int64, int64)")
def lead(control: int, program: int, step: int, scratch: int) -> int:
    """Begin a run and take part in it until it is over; returns 0.

    If threads are asleep it only begins: returns the run's number, and in the upper half how many
    must be woken before the caller goes on with `work`.
    """
    write_i64(program + 16, step)
    run = (atomic_read(control + 8 * KICK) + 1) & RUNS
    counters = read_i64(program + 8)
    for index in range(read_i64(program)):
        units = units_of(program + 8 * ROW * (index + 1), step)
        atomic_write(counters + 2 * LINE * index, (run << RUN) + units)
        atomic_write(counters + 2 * LINE * index + LINE, (run << RUN) + units)
    atomic_write(control + 8 * PROGRAM, program)
    atomic_add(control + 8 * KICK, 1)
    while True:
        parked = atomic_read(control + 8 * PARKED)
        if swap_if(control + 8 * PARKED, parked, 0):
            break
    if parked == 0:
        take_part(control, run, scratch)
        return 0
    return run + (parked << RUN)


@kernel("int64(int64, int64, int64)")
def follow(control: int, seen: int, scratch: int) -> int:
    """What every other thread does, from run to run. Returns the last kick it knows of when it
    should sleep, -1 when the team ends."""
    while True:
        turn = 0
        while atomic_read(control + 8 * KICK) == seen:
            if atomic_read(control + 8 * CLOSED) != 0:
                return -1
            if turn > SPINS + YIELDS:
                if park(control, seen):
                    return seen
                break
            turn = wait(turn, control)
        if atomic_read(control + 8 * CLOSED) != 0:
            return -1
        seen = atomic_read(control + 8 * KICK)
        take_part(control, seen & RUNS, scratch)


@inner
def park(control: int, seen: int) -> bool:
    """Say that this thread will sleep. False when a run has begun meanwhile and nobody has counted
    on waking it."""
    atomic_add(control + 8 * PARKED, 1)
    while atomic_read(control + 8 * KICK) != seen:
        parked = atomic_read(control + 8 * PARKED)
        if parked == 0:
            return True  # it is being woken: the sleep will be short
        if swap_if(control + 8 * PARKED, parked, parked - 1):
            return False
    return True


class Program:
    """Operations in order: function, args, unit kind, units and least units for each.

    `keep`: what must live as long as the program.
    """

    def __init__(self, rows: Sequence[tuple[int, ...]], keep: Sequence[Any] = ()) -> None:
        self.counters = np.zeros(2 * len(rows) * LINE // 8 + 1, np.int64)
        self.words = np.zeros((len(rows) + 1, ROW), np.int64)
        self.words[0, :2] = len(rows), self.counters.ctypes.data
        for words, row in zip(self.words[1:], rows, strict=True):
            words[: len(row)] = row
        self.keep = keep


class Team:
    """`threads` of them, the caller's included, with `scratch` bytes each.

    It runs one program at a time, for one caller at a time.
    """

    def __init__(self, threads: int, scratch: int) -> None:
        self.threads = threads
        self.control = np.zeros(CONTROL, np.int64)
        self.control[[THREADS, YIELD]] = threads, yielding()
        self.scratch = np.zeros((threads, -(-scratch // 4096) * 4096 + 4096), np.uint8)
        self.place = self.control.ctypes.data, self.scratch.ctypes.data
        self.asleep = threading.Semaphore(0)
        self.programs: set[Program] = set()  # a late thread may still look at one
        self.members = [
            threading.Thread(target=_member, args=(self.control, self.scratch[i], self.asleep),
                             name=f"unspool-{i}", daemon=True)
            for i in range(1, threads)
        ]
        self.ending = weakref.finalize(self, _end, self.control, self.asleep, self.members)
        for member in self.members:
            member.start()

    def run(self, program: Program, step: Words) -> None:
        """Run the program once; its operations read `step`."""
        self.programs.add(program)
        control, scratch = self.place
        begun = int(lead(control, program.words.ctypes.data, step.ctypes.data, scratch))
        if begun:
            self.asleep.release(begun >> RUN)
            work(control, begun & 0xFFFFFFFF, scratch)

    def close(self) -> None:
        """End the threads; the team cannot run again."""
        self.ending()


def _member(control: Words, scratch: Any, asleep: threading.Semaphore) -> None:
    seen = 0
    while (seen := int(follow(control.ctypes.data, seen, scratch.ctypes.data))) >= 0:
        asleep.acquire()


def _end(control: Words, asleep: threading.Semaphore, members: list[threading.Thread]) -> None:
    control[CLOSED] = 1
    asleep.release(len(members) or 1)
    for member in members:
        member.join()


def yielding() -> int:
    """The address of what offers the core to other threads; 0 where there is none."""
    name = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
    try:
        library = ctypes.CDLL("kernel32" if sys.platform == "win32" else None)
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    except (OSError, AttributeError):
        return 0
