"""The pool of pages: they never move, come in runs, are used again, and are all accounted for."""
import numpy as np
import pytest

from unspool.kernels.layer.pages import BF16, INT8, Layout
from unspool.models.blocks import LEAST, MOST, PART, Pool

LAYOUT = Layout(layers=3, kv_heads=2, size=10)


def small(pages=4):
    return Pool(LAYOUT, pages * LAYOUT.page, pages * LAYOUT.page)


@pytest.mark.parametrize("kind, token", [(0, 4 * 16), (BF16, 2 * 16), (INT8, 16 + 4)])
def test_what_a_token_takes(kind, token):
    layout = Layout(layers=3, kv_heads=2, size=10, kind=kind)
    assert layout.page == 3 * 2 * 2 * 16 * token


def places(pool, pages):
    """Each block by its page, layer, head and part."""
    start, layer, head, part = (column[:, None, None, None] for column in pool.addresses[pages].T)
    at = np.ix_(range(LAYOUT.layers), range(LAYOUT.kv_heads), range(2))
    return (start + at[0] * layer + at[1] * head + at[2] * part).reshape(len(pages), -1)


def test_no_two_blocks_meet_and_none_moves():
    pool, pages, seen = small(), [], np.empty((0, 12), np.int64)
    for count in (1, 1, 2, 3, 4, 5, 9, 30):
        pages += pool.take(count)
        now = places(pool, pages)
        np.testing.assert_array_equal(now[: len(seen)], seen)
        seen = now
        pool.check()
    flat = np.sort(seen.ravel())
    assert (np.diff(flat) >= LAYOUT.block).all() and (flat % 64 == 0).all()
    ends = [(slab.ctypes.data, slab.ctypes.data + slab.nbytes) for slab in pool.slabs]
    assert all(any(a <= x and x + LAYOUT.block <= b for a, b in ends) for x in flat)


def test_a_view_is_where_the_table_says():
    pool = small()
    for page in pool.take(11):
        view = pool.view(page)
        assert view.shape == (3, 2, 2, LAYOUT.block)
        np.testing.assert_array_equal(pool.addresses[page], [view.ctypes.data, *view.strides[:3]])


def test_pages_come_in_runs():
    pool = small(8)
    first = pool.take(3)
    assert first == [0, 1, 2]
    assert pool.take(2, first[-1]) == [3, 4]  # goes on
    other = pool.take(1)
    assert pool.take(2, 4) == [6, 7]  # cannot go on: the first run
    pool.give([1, *other])
    assert pool.take(1, 4) == [5] and pool.take(1, 4) == [1]


def test_a_run_never_crosses_slabs():
    pool = small(4)
    a, b = pool.take(4), pool.take(4)
    pool.give([a[3], b[0]])
    got = pool.take(2)
    assert sorted(got) == [a[3], b[0]] and got[1] - got[0] != 1
    assert len(pool.slabs) == 2, "what was free was not used"


def test_what_is_free_in_pieces_is_used_before_there_is_more():
    pool = small(16)
    pages = pool.take(16)
    pool.give(pages[::2])
    assert sorted(pool.take(8)) == pages[::2] and len(pool.slabs) == 1
    pool.check()


def test_a_page_is_free_when_its_last_holder_gives_it_back():
    pool = small(4)
    pages = pool.take(2)
    pool.hold(pages)
    pool.states[pages[0]] = np.ones((16, 3), np.float32)
    pool.give(pages)
    assert (pool.held, pool.free) == (2 * LAYOUT.page, 2 * LAYOUT.page) and pool.states
    pool.give(pages)
    assert (pool.held, pool.free) == (0, 4 * LAYOUT.page) and not pool.states
    pool.check()


def test_a_copy_has_keys_values_and_states_of_its_own():
    pool = small(4)
    one, two = pool.take(2)
    pool.view(one)[...] = 7
    pool.states[one] = np.ones((16, 3), np.float32)
    pool.copy(one, two)
    pool.view(one)[...] = 8
    pool.states[one][:] = 2
    assert (pool.view(two) == 7).all() and (pool.states[two] == 1).all()


def test_slabs_grow_with_what_there_is():
    """Nothing of them is touched, so this takes no memory."""
    layout = Layout(layers=30, kv_heads=3, size=64)
    pool = Pool(layout)
    while pool.allocated < 2**30:
        had = pool.allocated
        pool.take(1 + int(pool.free) // layout.page)
        grown = pool.allocated - had
        assert 0 <= grown - min(max(had // PART, LEAST), MOST) < layout.page
    pool.take(500)
    assert pool.slabs[-1].shape[3] == 500  # more than MOST at once is one run
