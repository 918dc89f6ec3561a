"""A text's table of pages: how it grows, and what a fork and a long text take."""
import tracemalloc

import numpy as np
import pytest
from kernels_zoo import Forward, Shape, stored, written
from models_zoo import Held

from unspool.kernels.layer.pages import BF16, INT8, KINDS, PAGE, Layout
from unspool.models.blocks import Pool
from unspool.models.pages import GROWTH, Pages, pages_of

LAYOUT = Layout(layers=3, kv_heads=2, size=10)
DEFAULT = {"layers": 30, "kv_heads": 3, "size": 64}  # of the default model


def text_of(tokens, pool=None, **more):
    text = Pages(pool or Pool(LAYOUT), **more)
    text.room(0, tokens)
    return text


# ── growing ──────────────────────────────────────────────────────────────────────────────────────
def test_growing_is_seldom_and_not_wasteful():
    text, tables = Pages(Pool(LAYOUT)), set()
    for token in range(3000):
        text.room(token, 1)
        tables.add(len(text.numbers))
        assert token < 16 * len(text.numbers) <= 2 * token + 16
        assert len(text.numbers) <= token // 16 + 1 + GROWTH
        assert text.table == text.addresses.ctypes.data
    assert len(tables) < 20
    assert text.nbytes == text.taken + text.addresses.nbytes == (
        len(text.numbers) * (LAYOUT.page + 32))


def test_a_text_alone_lies_in_one_run():
    text = Pages(Pool(LAYOUT))
    for token in range(3000):
        text.room(token, 1)
    assert text.numbers == list(range(len(text.numbers)))


def test_texts_that_grow_together_lie_in_runs_too():
    pool = Pool(LAYOUT)
    texts = [Pages(pool) for _ in range(10)]
    for token in range(1000):
        for text in texts:
            text.room(token, 1)
    for text in texts:
        breaks = np.diff(text.numbers) != 1
        assert breaks.sum() <= 9  # 1, 1, 2, 4, 8, 16, 16, 16, 16


def test_a_reserve_is_made_at_once_in_a_run():
    text = text_of(1, reserve=100)
    assert text.numbers == list(range(7))
    text.room(1, 99)
    assert len(text.numbers) == 7
    text.room(100, 13)
    assert len(text.numbers) == 14


def test_a_fork_reserves_what_it_does_not_share():
    text = text_of(50, reserve=200)
    fork = text.share(50)
    assert fork.reserve == 200 and len(fork.numbers) == 4
    fork.room(50, 1)
    assert len(fork.numbers) == 13 and fork.numbers[:3] == text.numbers[:3]
    assert fork.taken == 10 * LAYOUT.page and np.all(np.diff(fork.numbers[3:]) == 1)


def test_a_fork_grows_by_what_it_wrote_itself():
    text = text_of(1024)
    fork, taken = text.share(1024), []
    for token in range(1024, 1024 + 40 * 16):
        fork.room(token, 1)
        taken.append(fork.taken // LAYOUT.page)
    assert sorted(set(taken)) == [1, 2, 4, 8, 16, 32, 48]


@pytest.mark.parametrize("step", [1, 37, 256, 512, 8192])
@pytest.mark.parametrize("kind", KINDS)
def test_a_long_text_takes_a_quarter_more_at_most(kind, step):
    """Nothing of it is touched, so this takes no memory."""
    pool = Pool(Layout(**DEFAULT, kind=KINDS[kind]))
    text = Pages(pool)
    for start in range(0, 8192, step):
        text.room(start, min(step, 8192 - start))
    assert pool.allocated <= 1.25 * (8192 // PAGE) * pool.layout.page
    pool.check()


def test_what_was_needed_at_the_peak_is_all_there_is():
    """Over many texts of different lengths, with forks that come and go."""
    noise, pool, peak = np.random.default_rng(0), Pool(LAYOUT, 0, 0), 0
    live = []
    for _ in range(400):
        live.append(text_of(int(noise.integers(1, 600)), pool))
        forks = [live[-1].share(int(noise.integers(1, 1 + PAGE * len(live[-1].numbers))))
                 for _ in range(3)]
        for fork in forks:
            fork.room(PAGE * len(fork.numbers) - 3, 20)
        peak = max(peak, pool.held)
        live += forks
        noise.shuffle(live)
        while len(live) > 12:
            live.pop().free()
        pool.check()
    assert pool.allocated <= peak + 38 * LAYOUT.page  # the largest that was taken at once
    for text in live:
        text.free()
    assert pool.held == 0


# ── forks ────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("kind", [0, BF16, INT8])
@pytest.mark.parametrize("length", [1, 16, 25, 40])
def test_what_kernels_write_into_a_fork_stays_there(length, kind):
    shape = Shape(kind=kind)
    text, _ = written(shape, 40)
    before = stored(shape, text, 40)
    fork = text.share(length)
    for got, want in zip(stored(shape, fork, length), before, strict=True):
        np.testing.assert_array_equal(got, want[:length])
    rows = shape.rows(41, seed=3)
    Forward(shape, rows[length : length + 1], [(fork, length)]).write()
    for got, want in zip(stored(shape, fork, length), before, strict=True):
        np.testing.assert_array_equal(got, want[:length])
    Forward(shape, rows[:1], [(fork, 0)]).write()
    for got, want in zip(stored(shape, text, 40), before, strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_fork_of_a_long_text_takes_no_memory():
    pool = Pool(Layout(**DEFAULT))
    text = text_of(2000, pool)
    before = (pool.allocated, pool.held, pool.free)
    tracemalloc.start()
    forks = [text.share(2000) for _ in range(5)]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 64 * 1024 and (pool.allocated, pool.held, pool.free) == before
    for number, fork in enumerate(forks):
        fork.room(2000, 1)
        assert pool.held == before[1] + (1 + number) * pool.layout.page
        assert fork.numbers[:125] == text.numbers[:125]


def test_pages_behind_are_given_back_where_others_hold_them():
    """A text that is taken over far before its end."""
    text = text_of(100)
    fork = text.share(100)
    text.room(20, 5)
    assert text.pool.holders[fork.numbers[0]] == 2
    assert all(text.pool.holders[page] == 1 for page in fork.numbers[1:])
    assert len(text.numbers) == 2 and text.numbers[0] == fork.numbers[0]
    text.pool.check()


def test_pages_behind_are_kept_where_nobody_else_holds_them():
    text = text_of(100)
    pages = text.numbers.copy()
    text.room(20, 5)
    assert text.numbers == pages


def test_a_share_of_nothing_is_empty():
    fork = text_of(20).share(0)
    assert fork.numbers == [] and fork.nbytes == 0
    fork.room(0, 1)
    assert len(fork.numbers) == 1


def test_a_lease_gets_its_pages_once():
    lease, pool = Held(), Pool(LAYOUT)
    lease.reserve = 70
    store = pages_of(lease, pool)
    assert lease.store is store is pages_of(lease, pool) and store.reserve == 70
