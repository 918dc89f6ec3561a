"""What both layouts promise: texts that share never write into one another, a fork copies nothing,
and what is given back is free again."""
import gc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models_zoo import Held
from stores_zoo import KINDS, OnPages, Text

from unspool.kernels.layer.pages import PAGE

EACH = pytest.mark.parametrize("kind", KINDS)


def text_of(kind, length, **more):
    text = Text(kind, **more)
    text.write(0, list(range(length)))
    return text


# ── anything at all ──────────────────────────────────────────────────────────────────────────────
ACTS = st.lists(st.tuples(st.sampled_from(["new", "write", "write", "over", "share", "share",
                                           "free", "drop"]),
                          st.integers(0, 2**20), st.integers(0, 2**20)), max_size=40)


def act(kind, texts, made, what, one, two, reserve):
    """Do it to one of the texts. Numbers of tokens are `made`, one higher each time."""
    text = texts[one % len(texts)] if texts else None
    fresh = [next(made) for _ in range(1 + two % (3 if two % 2 else 40))]
    if what == "new" or text is None:
        texts.append(Text(kind, reserve=reserve, stated=bool(two % 3)))
        texts[-1].write(0, fresh)
    elif what == "write":
        text.write(len(text.numbers), fresh)
    elif what == "over":  # a memory took it over at a shorter prefix
        text.write(two % (len(text.numbers) + 1), fresh)
    elif what == "share":
        texts.append(text.share(two % (len(text.numbers) + 1)))
    else:
        texts.remove(text)
        if what == "free":
            text.store.free()
            text.store.free()


def check_all(kind, texts):
    """In a frame of its own: a name that still stands for a text keeps it alive."""
    kind.check([text.store for text in texts])
    for text in texts:
        text.check()


@EACH
@settings(max_examples=150, deadline=None)
@given(ACTS, st.sampled_from([0, 20, 70]))
def test_texts_hold_what_was_written_whatever_others_do(kind, acts, reserve):
    kind, texts, made = KINDS[kind](), [], iter(range(1, 10**6))
    for what, one, two in acts:
        act(kind, texts, made, what, one, two, reserve)
        check_all(kind, texts)
    for text in texts:
        text.store.free()
        assert text.store.nbytes == 0
    kind.check([])


# ── what it costs ────────────────────────────────────────────────────────────────────────────────
@EACH
@pytest.mark.parametrize("length", [1, 16, 25, 40])
def test_a_shared_text_is_its_own(kind, length):
    text = text_of(KINDS[kind](), 40)
    other = text.share(length)
    other.write(length, [1000, 1001])
    other.write(0, [2000])
    text.check()
    other.check()
    text.write(3, [3000])
    other.check()


@EACH
def test_a_fork_takes_nothing_until_it_is_written(kind):
    text = text_of(KINDS[kind](), 40)
    forks = [text.share(40) for _ in range(5)]
    before = text.store.nbytes
    assert all(fork.store.taken == 0 for fork in forks)
    assert abs(sum(f.store.nbytes for f in forks) - 5 * before) <= 5 * 96  # tables aside
    forks[0].write(40, [1000])
    assert forks[0].store.taken > 0
    assert all(fork.store.taken == 0 for fork in forks[1:])


@EACH
def test_the_last_holder_writes_in_place(kind):
    text = text_of(KINDS[kind](), 40)
    fork = text.share(33)
    text.store.free()
    fork.write(33, [1000])
    fork.check()
    assert fork.store.taken == 0


@EACH
def test_a_text_that_never_forked_stays_in_place(kind):
    text = text_of(KINDS[kind](), 40, reserve=200)
    taken = text.store.taken
    for token in range(40, 200):
        text.write(token, [token])
    text.check()
    assert text.store.taken == taken


# ── hidden states ────────────────────────────────────────────────────────────────────────────────
@EACH
def test_nothing_is_kept_of_texts_that_do_not_ask(kind):
    asks, text = text_of(KINDS[kind](), 40), text_of(KINDS[kind](), 40, stated=False)
    assert text.store.stated == 0 and text.store.nbytes < asks.store.nbytes
    with pytest.raises(ValueError, match="40 tokens, but 0"):
        text.store.states(40)


@EACH
def test_states_are_void_where_a_text_was_written_over(kind):
    text = text_of(KINDS[kind](), 40)
    text.stated = False
    text.write(20, [1000] * 30)
    assert text.store.stated == 20
    assert text.store.states(20).tolist() == text.kind.states(range(20)).tolist()
    with pytest.raises(ValueError, match="21 tokens, but 20"):
        text.store.states(21)
    with pytest.raises(ValueError, match="from token 30 on, but only 20"):
        text.store.put_states(30, text.kind.states([7]))


@EACH
def test_a_fork_has_no_more_states_than_it_shares(kind):
    text = text_of(KINDS[kind](), 40)
    fork = text.share(25)
    assert fork.store.stated == 25
    with pytest.raises(ValueError, match="26 tokens, but 25"):
        fork.store.states(26)


@EACH
def test_states_may_be_kept_without_keys(kind):
    """Of a model that reads every text whole."""
    kind = KINDS[kind]()
    text = text_of(kind, 1)
    store = type(text.store)(*((kind.pool,) if isinstance(kind, OnPages) else ()))
    store.put_states(0, kind.states(range(20)))
    assert store.states(20).tolist() == kind.states(range(20)).tolist()


# ── stores that are thrown away ──────────────────────────────────────────────────────────────────
def test_a_dropped_text_gives_its_pages_back():
    """Also from within a ring of objects, whenever the collector finds it."""
    kind = OnPages()
    text = text_of(kind, 40)
    fork = text.share(40)
    held = kind.pool.held
    del text
    assert kind.pool.held == held  # the fork has them
    del fork
    assert kind.pool.held == 0 and not kind.pool.states
    ring = Held()
    kind.write(ring, 0, [1] * 40)
    ring.reserve = ring
    del ring
    gc.collect()
    assert kind.pool.held == 0
    kind.pool.check()


@pytest.mark.parametrize("length, pages", [(25, 1), (32, 1), (33, 1), (31, 1)])
def test_a_write_after_a_fork_takes_one_page(length, pages):
    kind = OnPages()
    text = text_of(kind, 40)
    fork = text.share(length)
    held = kind.pool.held
    fork.write(length, [1000])
    assert kind.pool.held - held == pages * kind.layout.page == fork.store.taken
    fork.write(length + 1, [1001])
    assert kind.pool.held - held <= (1 + (length % PAGE == PAGE - 1)) * kind.layout.page
