"""Dense memory against a plain account of who wrote what: it never claims another text's keys.

Every key written here is the number of its own text (reader and tokens up to there), so a wrong
claim shows at once.
"""
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool.core.prefix import BLOCK, prefix
from unspool.core.sockets import Reader
from unspool.memories import MEMORIES, Dense, Full
from unspool.models.torch_store import store_of

LAYERS = 2
READERS = [Reader("model", "reference"), Reader("model", "reference", "salt"),
           Reader("other", "reference"), Reader("model", "fast")]


class Book:
    """Numbers texts: a key's right value is the number of (reader, tokens up to it)."""

    def __init__(self):
        self.numbers = {}

    def keys(self, reader, tokens, begin, end, layer=0):
        """[end - begin, 1, 2] for the tokens begin ... end of the text."""
        values = [self.numbers.setdefault((reader, tuple(tokens[:i + 1])), len(self.numbers))
                  for i in range(begin, end)]
        column = torch.tensor(values, dtype=torch.float64).view(-1, 1, 1)
        return column + torch.tensor([0.0, 0.25]) + layer * 0.5

    def check(self, lease, reader, tokens):
        for layer in range(LAYERS if lease.length else 0):
            want = self.keys(reader, tokens, 0, lease.length, layer)
            keys, values = lease.store.keys[layer], lease.store.values[layer]
            assert torch.equal(keys[:lease.length], want), "another text's keys"
            assert torch.equal(values[:lease.length], -want)

    def write(self, lease, reader, tokens, upto):
        """One forward over the tokens that were not known."""
        for layer in range(LAYERS):
            new = self.keys(reader, tokens, lease.length, upto, layer)
            keys, values = store_of(lease).keep(layer, lease.length, new, -new)
            want = self.keys(reader, tokens, 0, upto, layer)
            assert torch.equal(keys, want) and torch.equal(values, -want)


def read(memory, book, text, reader=READERS[0], upto=None):
    """Lease, check, write and settle; how much was known."""
    lease = memory.known(reader, text)
    known, upto = lease.length, upto or text.length
    assert known < text.length
    book.check(lease, reader, text.tokens())
    book.write(lease, reader, text.tokens(), upto)
    memory.settle(lease, text.at(upto))
    return known


@pytest.fixture
def book():
    return Book()


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
    wrong = torch.full((1, 1, 2), -7.0)
    for layer in range(LAYERS):
        lease.store.keep(layer, lease.length, wrong, wrong)
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


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from([0, 2_000, 20_000, 2**30]), st.booleans())
def test_it_never_claims_another_text_s_keys(seed, idle_bytes, full):
    """Extends, forks, drops, replaces, failures, chunks, other readers, many leases at once."""
    memory = Full(40, idle_bytes) if full else Dense(idle_bytes)  # some texts are longer than 40
    draw, book = random.Random(seed), Book()
    texts, open_leases = [prefix([0])], []
    for _ in range(draw.randint(5, 60)):
        text = some_text(draw, texts[-8:])
        reader = draw.choice(READERS) if draw.random() < 0.3 else READERS[0]
        lease = memory.known(reader, text)
        assert 0 <= lease.length < text.length
        idle = sum(b.nbytes for b in memory.buffers.values() if not b.held)
        assert idle <= idle_bytes or lease.length
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
    for lease, reader, tokens, text in open_leases:
        book.check(lease, reader, tokens)
        book.write(lease, reader, tokens, text.length)
        memory.settle(lease, text)
    assert not any(b.held for b in memory.buffers.values())
    known = {ticket for tickets in memory.index.values() for ticket in tickets}
    assert known <= set(memory.buffers)


def test_it_keeps_what_the_protocol_asks():
    assert type(MEMORIES["dense"](64)) is Dense and Dense.exact and Dense.keeps
