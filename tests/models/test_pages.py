"""Pages of a text: they grow without moving, and a copy is its own."""
import numpy as np
import pytest
from kernels_zoo import Forward, Shape, stored, written
from models_zoo import Held

from unspool.kernels.layer.pages import BF16, INT8, Layout
from unspool.models.pages import Pages, pages_of

LAYOUT = Layout(layers=3, kv_heads=2, size=10)


@pytest.mark.parametrize("kind, token", [(0, 4 * 16), (BF16, 2 * 16), (INT8, 16 + 4)])
def test_what_a_token_takes(kind, token):
    layout = Layout(layers=3, kv_heads=2, size=10, kind=kind)
    assert layout.page == 3 * 2 * 2 * 16 * token


def places(store):
    """Each block by its page, layer, head and part."""
    start, layer, head, part = store.addresses.T
    at = [start[:, None, None, None],
          *np.ix_(range(store.layout.layers), range(store.layout.kv_heads), range(2))]
    at = (at[0] + at[1] * layer[:, None, None, None] + at[2] * head[:, None, None, None]
          + at[3] * part[:, None, None, None])
    return at.reshape(len(start), -1)


def test_no_two_blocks_meet_and_none_moves():
    store, seen = Pages(LAYOUT), np.empty((0, 12), np.int64)
    for tokens in (1, 2, 16, 17, 50, 51, 300, 301, 1000):
        store.room(tokens)
        now = places(store)
        np.testing.assert_array_equal(now[: len(seen)], seen)
        assert store.table == store.addresses.ctypes.data and len(now) * 16 >= tokens
        seen = now
    flat = np.sort(seen.ravel())
    assert (np.diff(flat) >= LAYOUT.block).all() and (flat % 64 == 0).all()
    ends = [(slab.ctypes.data, slab.ctypes.data + slab.nbytes) for slab in store.slabs]
    assert all(any(a <= x and x + LAYOUT.block <= b for a, b in ends) for x in flat)


def test_growing_is_seldom_and_not_wasteful():
    store = Pages(LAYOUT)
    for tokens in range(1, 3000):
        store.room(tokens)
        assert tokens <= 16 * store.count < 2 * tokens + 16
    assert len(store.slabs) < 10
    assert store.nbytes == sum(slab.nbytes for slab in store.slabs) + store.addresses.nbytes


def test_a_reserve_is_made_at_once():
    store = Pages(LAYOUT, reserve=100)
    store.room(1)
    assert len(store.slabs) == 1 and store.count == 7
    store.room(112)
    assert len(store.slabs) == 1
    store.room(113)
    assert store.count == 14


def test_a_prompt_gets_one_slab():
    store = Pages(LAYOUT)
    store.room(1000)
    assert len(store.slabs) == 1 and store.count == 63


@pytest.mark.parametrize("kind", [0, BF16, INT8])
@pytest.mark.parametrize("length", [1, 16, 25, 40])
def test_a_copy_is_its_own(length, kind):
    shape = Shape(kind=kind)
    text, _ = written(shape, 40)
    before = stored(shape, text, 40)
    copied = text.copy(length)
    for got, want in zip(stored(shape, copied, length), before, strict=True):
        np.testing.assert_array_equal(got, want[:length])
    rows = shape.rows(41, seed=3)
    Forward(shape, rows[length : length + 1], [(copied, length)]).write()
    Forward(shape, rows[:1], [(copied, 0)]).write()
    for got, want in zip(stored(shape, text, 40), before, strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_copy_has_room_for_the_next_token_and_keeps_the_reserve():
    store = Pages(LAYOUT, reserve=200)
    store.room(40)
    assert store.copy(40).count == store.count == 13
    grown = Pages(LAYOUT)
    grown.room(16)
    assert grown.copy(16).count == 2


def test_a_copy_of_nothing_is_empty():
    assert Pages(LAYOUT).copy(0).count == 1


def test_a_lease_gets_its_pages_once():
    lease = Held()
    lease.reserve = 70
    store = pages_of(lease, LAYOUT)
    assert lease.store is store is pages_of(lease, LAYOUT) and store.reserve == 70
