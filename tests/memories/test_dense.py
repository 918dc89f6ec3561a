"""Dense memory against a plain account of who wrote what: it never claims another text's keys.

Every key written here is the number of its own text (reader and tokens up to there), so a wrong
claim shows at once. All of it is held for both layouts of keys and values.
"""
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stores_zoo import KINDS, OnPages

from unspool.core.prefix import BLOCK, prefix
from unspool.core.sockets import Reader
from unspool.memories import MEMORIES, Dense, Full
from unspool.memories.dense import LATE, LOOK, NEAR

READERS = [Reader("model", "reference"), Reader("model", "reference", "salt"),
           Reader("other", "reference"), Reader("model", "fast")]


class Book:
    """Numbers texts: a key's right value is the number of (reader, tokens up to it)."""

    def __init__(self, kind):
        self.numbers, self.kind = {}, kind

    def keys(self, reader, tokens, begin, end):
        """The numbers for the tokens begin ... end of the text."""
        return [self.numbers.setdefault((reader, tuple(tokens[:i + 1])), len(self.numbers))
                for i in range(begin, end)]

    def check(self, lease, reader, tokens):
        if lease.length:
            want = self.keys(reader, tokens, 0, lease.length)
            assert self.kind.read(lease.store, lease.length) == want, "another text's keys"

    def write(self, lease, reader, tokens, upto):
        """One forward over the tokens that were not known."""
        self.kind.write(lease, lease.length, self.keys(reader, tokens, lease.length, upto))
        assert self.kind.read(lease.store, upto) == self.keys(reader, tokens, 0, upto)


def read(memory, book, text, reader=READERS[0], upto=None):
    """Lease, check, write and settle; how much was known."""
    lease = memory.known(reader, text)
    known, upto = lease.length, upto or text.length
    assert known < text.length
    book.check(lease, reader, text.tokens())
    book.write(lease, reader, text.tokens(), upto)
    memory.settle(lease, text.at(upto))
    return known


@pytest.fixture(params=KINDS)
def book(request):
    return Book(KINDS[request.param]())


# ── what it finds ────────────────────────────────────────────────────────────────────────────────
def test_a_text_that_goes_on_knows_all_but_its_last_token(book):
    memory, text = Dense(), prefix(range(10))
    assert read(memory, book, text) == 0
    for token in range(50):
        text = text.extend(token)
        assert read(memory, book, text) == text.length - 1
    assert len(memory.buffers) == 1  # it was written on in place


def test_the_last_token_is_read_afresh(book):
    memory, text = Dense(), prefix(range(10))
    assert read(memory, book, text) == 0 and read(memory, book, text) == 9
    assert read(memory, book, prefix([4])) == 0


def test_branches_of_one_text_know_the_trunk(book):
    memory, trunk = Dense(), prefix(range(40))
    read(memory, book, trunk)
    for token in range(100, 106):
        assert read(memory, book, trunk.extend(token)) == 40


def test_branches_taken_on_together_each_have_their_own_keys(book):
    memory, trunk = Dense(), prefix(range(20))
    read(memory, book, trunk)
    texts = [trunk.extend(t) for t in (1, 2, 3)]
    leases = [memory.known(READERS[0], text) for text in texts]
    assert [lease.length for lease in leases] == [20, 20, 20]
    assert len({id(lease) for lease in leases}) == 3
    for lease, text in zip(leases, texts, strict=True):
        book.write(lease, READERS[0], text.tokens(), 21)
    for lease, text in zip(leases, texts, strict=True):
        memory.settle(lease, text)
    for text in texts:
        assert read(memory, book, text.extend(9)) == 21


def test_a_text_that_lost_its_nodes_is_found_by_its_blocks(book):
    memory, tokens = Dense(), list(range(3 * BLOCK + 5))
    read(memory, book, prefix(tokens))
    assert read(memory, book, prefix(tokens)) == len(tokens) - 1
    assert read(memory, book, prefix([*tokens[:2 * BLOCK + 3], 99, 98])) == 2 * BLOCK + 3
    assert read(memory, book, prefix([99, *tokens])) == 0


def test_equal_texts_of_less_than_a_block_are_not_looked_for(book):
    memory = Dense()
    read(memory, book, prefix(range(BLOCK - 1)))
    assert read(memory, book, prefix(range(BLOCK - 1))) == 0


@pytest.mark.parametrize("length", [3, 30])
def test_a_rejected_draft_costs_nothing(book, length):
    """Also in a text of less than a block, which only its nodes can find."""
    memory, text = Dense(), prefix(range(length))
    read(memory, book, text)
    for _ in range(20):
        drafted = text
        for token in (7, 8, 9, 9, 9):
            drafted = drafted.extend(token)
        assert read(memory, book, drafted) == text.length
        text = text.extend(7).extend(5)  # one was right
        assert read(memory, book, text) == text.length - 1
    assert len(memory.buffers) == 1


def test_a_replaced_prompt_is_a_text_like_any_other(book):
    memory, text = Dense(), prefix(range(40))
    read(memory, book, text)
    other = prefix([*range(20), 77, *range(20, 40)])
    assert read(memory, book, other) == 20
    assert read(memory, book, text.extend(1)) == 40


@pytest.mark.parametrize("other", READERS[1:], ids=str)
def test_readers_share_nothing(book, other):
    """Another salt, model or numerics: not through nodes, not through blocks."""
    memory, text = Dense(), prefix(range(40))
    read(memory, book, text)
    assert read(memory, book, text, other) == 0
    assert read(memory, book, prefix(range(40)), other) == 39
    assert read(memory, book, prefix(range(40))) == 39


def test_a_chunked_text_is_known_chunk_by_chunk(book):
    memory, text = Dense(), prefix(range(50))
    assert [read(memory, book, text, upto=u) for u in (16, 17, 40, 50)] == [0, 16, 17, 40]
    assert len(memory.buffers) == 1


# ── what it forgets ──────────────────────────────────────────────────────────────────────────────
def test_what_a_failed_forward_wrote_is_never_known(book):
    memory, text = Dense(), prefix(range(40))
    read(memory, book, text)
    lease = memory.known(READERS[0], text.extend(1))
    book.kind.write(lease, lease.length, [-7])
    memory.settle(lease, None)
    assert memory.buffers == {} and memory.index == {}
    assert read(memory, book, text.extend(1)) == 0


def test_idle_texts_are_evicted_oldest_first_and_those_in_use_never(book):
    memory = Dense(idle_bytes=0)
    first = prefix(range(20))
    held = memory.known(READERS[0], first)
    book.write(held, READERS[0], first.tokens(), 20)
    for i in range(5):
        assert read(memory, book, prefix([i + 50] * 20)) == 0
    assert held in memory.buffers.values() and len(memory.buffers) == 2
    memory.settle(held, first)
    one = max(b.nbytes for b in memory.buffers.values())
    memory = Dense(idle_bytes=3 * one)
    texts = [prefix([i] * 20) for i in range(5)]
    for text in texts:
        read(memory, book, text)
    read(memory, book, prefix([9] * 20))
    kept = [t for t in texts if any(b.line is t for b in memory.buffers.values())]
    assert kept == texts[2:]
    assert read(memory, book, texts[4]) == 19 and read(memory, book, texts[0]) == 0


def test_what_was_shared_with_a_forgotten_text_counts_for_the_rest(book):
    """Two texts that share count half of it each, and the one that is left all of it."""
    memory, trunk = Dense(), prefix(range(20 * BLOCK))
    read(memory, book, trunk)
    first = memory.known(READERS[0], trunk.extend(1))
    second = memory.known(READERS[0], trunk.extend(2))
    for lease, token in ((first, 1), (second, 2)):
        book.write(lease, READERS[0], trunk.extend(token).tokens(), trunk.length + 1)
        memory.settle(lease, trunk.extend(token))
    memory.idle_bytes = second.nbytes * 3 // 2
    memory.evict()
    assert memory.buffers == {}
    book.kind.check([])


def test_it_looks_at_what_idle_texts_take_once_a_sixteenth_is_new():
    memory, book, looks = Dense(2**20), Book(OnPages()), 0
    for text in range(200):
        before = memory.fresh
        read(memory, book, prefix([text] * 20))
        looks += memory.fresh < before
        assert sum(b.nbytes for b in memory.buffers.values()) <= 2**20 * (1 + 1 / LOOK) + 2**13
    taken = 200 * 2 * book.kind.layout.page
    assert len(memory.buffers) < 200 and looks <= LOOK * taken / 2**20


def test_what_is_evicted_is_free_at_once():
    """So the pool holds what was idle and one text more, however many come."""
    memory, book = Dense(idle_bytes=0), Book(OnPages())
    for text in range(50):
        read(memory, book, prefix([text] * (20 + text)))
        assert book.kind.pool.held <= 10 * book.kind.layout.page
    assert len(book.kind.pool.slabs) <= 6


def test_of_many_that_hold_the_same_blocks_the_newest_are_looked_at(book):
    memory, trunk = Dense(), prefix(range(2 * BLOCK))
    read(memory, book, trunk)
    leases = [memory.known(READERS[0], trunk.extend(token)) for token in range(100, 130)]
    for token, lease in enumerate(leases, 100):
        book.write(lease, READERS[0], trunk.extend(token).tokens(), trunk.length + 1)
        memory.settle(lease, trunk.extend(token))
    stranger = prefix([*range(2 * BLOCK), 129, 7])
    assert len(list(memory.near(READERS[0], stranger))) == NEAR
    assert read(memory, book, stranger) == 2 * BLOCK + 1
    assert read(memory, book, prefix([*range(2 * BLOCK), 100, 7])) == 2 * BLOCK


def test_texts_without_a_block_of_their_own_are_given_up_when_many_came_after(book):
    memory, trunk = Dense(), prefix(range(2 * BLOCK))
    own = prefix([*range(2 * BLOCK), *range(100, 100 + BLOCK)])
    lost = [trunk.extend(1000 + i) for i in range(3)]
    for text in (trunk, own, *lost):
        read(memory, book, text)
    held = memory.known(READERS[0], lost[2])
    for i in range(LATE + len(lost)):
        assert len(memory.buffers) <= LATE + 5
        read(memory, book, trunk.extend(2000 + i))
    kept = {buffer.line.token for buffer in memory.buffers.values()}
    assert kept.isdisjoint({1000, 1001}) and own.token in kept and held.held
    assert read(memory, book, own.extend(1)) == own.length
    memory.settle(held, None)
    assert memory.known(READERS[0], lost[0].extend(1)).length == trunk.length


def test_a_model_that_makes_no_store_has_its_texts_found_all_the_same():
    """Such as one whose scores follow from the last token alone."""
    memory, text = Dense(idle_bytes=0), prefix(range(20))
    memory.settle(memory.known(READERS[0], text), text)
    one, two = (memory.known(READERS[0], text.extend(t)) for t in (1, 2))
    assert (one.length, one.store, two.length, two.store) == (20, None, 20, None)


def test_clear_frees_everything(book):
    memory, text = Dense(), prefix(range(40))
    read(memory, book, text)
    memory.clear()
    assert memory.buffers == {} and memory.index == {}
    assert read(memory, book, text) == 0


# ── anything at all ──────────────────────────────────────────────────────────────────────────────
def some_text(draw, texts):
    """One that goes on, forks, starts over, shares a beginning, or is another object."""
    text = draw.choice(texts)
    kind = draw.choice("ggggffrrno")
    if kind == "g":
        for _ in range(draw.choice([1, 1, 1, 5, 20])):
            text = text.extend(draw.randrange(2))
    elif kind == "f":
        text = text.at(draw.randint(0, text.length)).extend(draw.randrange(2))
    elif kind == "r":
        text = prefix([*text.tokens()[:draw.randint(0, text.length)], draw.randrange(2)])
    elif kind == "n":
        text = prefix(draw.randrange(2) for _ in range(draw.randint(1, 40)))
    else:
        text = prefix(text.tokens())
    return text if text.length else text.extend(0)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from([0, 2_000, 20_000, 2**30]), st.booleans())
def test_it_never_claims_another_text_s_keys(kind, seed, idle_bytes, full):
    """Extends, forks, drops, replaces, failures, chunks, other readers, many leases at once."""
    memory = Full(40, idle_bytes) if full else Dense(idle_bytes)  # some texts are longer than 40
    draw, book = random.Random(seed), Book(KINDS[kind]())
    texts, open_leases = [prefix([0])], []
    for _ in range(draw.randint(5, 60)):
        text = some_text(draw, texts[-8:])
        reader = draw.choice(READERS) if draw.random() < 0.3 else READERS[0]
        lease = memory.known(reader, text)
        assert 0 <= lease.length < text.length
        tokens = text.tokens()
        book.check(lease, reader, tokens)
        upto = draw.randint(lease.length + 1, text.length)
        open_leases.append((lease, reader, tokens, text.at(upto)))
        texts.append(text)
        while open_leases and draw.random() < 0.6:
            lease, reader, tokens, text = open_leases.pop(draw.randrange(len(open_leases)))
            book.check(lease, reader, tokens)  # nobody wrote into it meanwhile
            book.write(lease, reader, tokens, text.length)
            memory.settle(lease, text if draw.random() < 0.9 else None)
        audit(memory, book.kind)
    for lease, reader, tokens, text in open_leases:
        book.check(lease, reader, tokens)
        book.write(lease, reader, tokens, text.length)
        memory.settle(lease, text)
    assert not any(b.held for b in memory.buffers.values())
    memory.clear()
    book.kind.check([])


def audit(memory, kind):
    """What is held is held by a buffer, and the index knows each by the blocks of its line."""
    buffers = memory.buffers.values()
    kind.check([buffer.store for buffer in buffers if buffer.store is not None])
    if memory.fresh * LOOK >= memory.idle_bytes:
        memory.evict()
        assert sum(b.nbytes for b in buffers if not b.held) <= memory.idle_bytes
    want = {}
    for buffer in buffers:
        for block in range(len(buffer.blocks)):
            line = buffer.line.at((block + 1) * BLOCK)
            assert line.length == (block + 1) * BLOCK
            want.setdefault((buffer.reader, line.digest), set()).add(buffer.ticket)
    assert memory.index == want


def test_it_keeps_what_the_protocol_asks():
    assert type(MEMORIES["dense"](64)) is Dense and Dense.exact and Dense.keeps
