"""The team runs every unit of every operation exactly once, in order, whoever is awake."""
import os
import threading
import time
from itertools import pairwise

import numpy as np
import pytest

from unspool.kernels.machine.jit import kernel
from unspool.kernels.machine.simd import read_i64, write_i64
from unspool.kernels.machine.team import Program, Team

WORDS = np.array([1, 3, 0, 5], np.int64)


@kernel("void(int64, int64, int64, int64, int64)")
def count(args, step, first, last, scratch):
    """Adds one to each unit's word, and notes that the thread's scratch is its own."""
    write_i64(scratch, scratch)
    for unit in range(first, last):
        at = args + 8 * unit
        write_i64(at, read_i64(at) + 1)


@kernel("void(int64, int64, int64, int64, int64)")
def follow_up(args, step, first, last, scratch):
    """args: [from, to]; to[i] = from[i] * 2 + to[i - 1] of the operation before."""
    a, b = read_i64(args), read_i64(args + 8)
    for unit in range(first, last):
        write_i64(b + 8 * unit, 2 * read_i64(a + 8 * unit))


def address(array):
    return array.ctypes.data


@pytest.fixture(params=[1, 2, 5])
def team(request):
    team = Team(request.param, 64)
    yield team
    team.close()


def test_every_unit_once(team):
    cells = [np.zeros(300, np.int64) for _ in range(4)]
    rows = [(count.address, address(c), kind, units, least)
            for c, (kind, units, least) in zip(cells, [(0, 300, 1), (1, 100, 7), (3, 60, 1000),
                                                       (2, 9, 1)], strict=True)]
    program = Program(rows, cells)
    for _ in range(50):
        team.run(program, WORDS)
    assert [c.sum() for c in cells] == [300 * 50, 300 * 50, 300 * 50, 0]
    assert all((c[: c.max() and 300] == c[0]).all() for c in cells)


def test_operations_wait_for_the_ones_before(team):
    chain = [np.arange(1, 258, dtype=np.int64), *(np.zeros(257, np.int64) for _ in range(20))]
    args = [np.array([address(a), address(b)], np.int64)
            for a, b in pairwise(chain)]
    program = Program([(follow_up.address, address(a), 0, 257, 1) for a in args], [chain, args])
    for _ in range(30):
        for cells in chain[1:]:
            cells[:] = -1
        team.run(program, WORDS)
        np.testing.assert_array_equal(chain[-1], chain[0] << 20)


def test_programs_take_turns_and_threads_go_to_sleep_between():
    team = Team(3, 64)
    a, b = np.zeros(64, np.int64), np.zeros(7, np.int64)
    long = Program([(count.address, address(a), 0, 64, 1)] * 9, [a])
    short = Program([(count.address, address(b), 0, 7, 1)], [b])
    for i in range(12):
        team.run(long, WORDS)
        team.run(short, WORDS)
        if i % 4 == 0:
            time.sleep(0.05)  # long enough for all to sleep
    team.close()
    assert (a == 9 * 12).all() and (b == 12).all()


@pytest.mark.parametrize("threads", [2, 4])
def test_what_there_is_to_do_may_change_from_run_to_run(threads):
    """A thread that is late must not take the next run's units for its own."""
    team = Team(threads, 64)
    cells = [np.zeros(64, np.int64) for _ in range(60)]
    program = Program([(count.address, address(c), 0, 1, 1) for c in cells], cells)
    step, want = np.zeros(1, np.int64), np.zeros(64, np.int64)
    for run in range(1500):
        step[0] = 1 if run % 2 else 64
        want[: step[0]] += 1
        team.run(program, step)
    team.close()
    for c in cells:
        np.testing.assert_array_equal(c, want)


def test_closing_ends_the_threads_also_those_asleep():
    before = threading.active_count()
    team = Team(4, 64)
    time.sleep(0.05)
    team.close()
    team.close()
    assert threading.active_count() == before


def test_a_team_that_nobody_holds_ends():
    before = threading.active_count()
    team = Team(3, 64)
    assert threading.active_count() == before + 2
    del team
    assert threading.active_count() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_goes_on_alone():
    """Threads do not come along; the caller does all the work itself."""
    team = Team(2, 64)
    cells = np.zeros(50, np.int64)
    program = Program([(count.address, address(cells), 0, 50, 1)] * 3, [cells])
    team.run(program, WORDS)
    child = os.fork()
    if child == 0:
        team.run(program, WORDS)
        os._exit(0 if (cells == 6).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
    team.close()
