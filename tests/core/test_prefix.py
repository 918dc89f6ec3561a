"""A prefix is a persistent sequence: forks share, digests tell texts apart, walks are right."""
import random
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unspool.core.prefix import BLOCK, Candidate, Prefix, prefix, shared

TEXTS = st.lists(st.integers(0, 3), max_size=3 * BLOCK)


def fact(token):
    return Candidate(token, -1.0 * token, -2.0, 1, -0.5)


def test_the_root_has_no_tokens():
    root = prefix([])
    assert (root.length, root.tokens(), root.digest, root.parent) == (0, [], b"", None)


@given(TEXTS)
def test_it_holds_its_tokens_in_order(tokens):
    node = prefix(tokens)
    assert node.tokens() == tokens and node.length == len(tokens)
    for count in range(len(tokens) + 3):
        assert node.last(count) == tokens[max(len(tokens) - count, 0):]
    for length in range(len(tokens) + 1):
        assert node.at(length).tokens() == tokens[:length]


def test_a_fork_shares_the_nodes_before_it():
    trunk = prefix([1, 2, 3])
    one, other = trunk.extend(4), trunk.extend(5)
    assert one.parent is trunk and other.parent is trunk
    assert (one.tokens(), other.tokens(), trunk.tokens()) == ([1, 2, 3, 4], [1, 2, 3, 5], [1, 2, 3])
    assert one.at(3) is other.at(3)


@given(TEXTS, TEXTS, TEXTS)
def test_shared_counts_the_tokens_both_begin_with(trunk, one, other):
    """Whether they share nodes or only tokens."""
    def same(a, b):
        return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y),
                    min(len(a), len(b)))

    whole = [*trunk, *one], [*trunk, *other]
    root = prefix(trunk)
    a, b = root, root
    for token in one:
        a = a.extend(token)
    for token in other:
        b = b.extend(token)
    assert shared(a, b) == shared(b, a) == same(*whole)
    assert shared(a, prefix(whole[1])) == same(*whole)
    assert shared(a, a) == len(whole[0])


def test_facts_are_those_of_the_written_tokens():
    node = prefix([7, 8])
    for token in (1, 2, 3):
        node = node.extend(token, fact(token))
    assert node.facts(2) == [fact(2), fact(3)]
    assert node.facts(0) == []
    assert node.facts(3) == [fact(1), fact(2), fact(3)]
    with pytest.raises(AssertionError, match="written token"):
        node.facts(4)  # the fourth from the end is of the prompt


def test_a_digest_is_taken_at_each_block_s_end_and_chains():
    tokens = list(range(100, 100 + 2 * BLOCK + 3))
    node = prefix(tokens)
    first = sha256(repr(tokens[:BLOCK]).encode()).digest()
    second = sha256(first + repr(tokens[BLOCK:2 * BLOCK]).encode()).digest()
    assert node.at(BLOCK - 1).digest == b""
    assert node.at(BLOCK).digest == node.at(2 * BLOCK - 1).digest == first
    assert node.digest == second


@given(st.lists(st.integers(0, 2**31), min_size=2 * BLOCK, max_size=2 * BLOCK), st.data())
def test_texts_that_differ_anywhere_before_have_different_digests(tokens, data):
    place = data.draw(st.integers(0, 2 * BLOCK - 1))
    other = [*tokens[:place], tokens[place] + 1, *tokens[place + 1:]]
    assert prefix(tokens).digest == prefix(list(tokens)).digest
    assert prefix(tokens).digest != prefix(other).digest


def test_digits_do_not_run_together():
    """[1, 23, ...] and [12, 3, ...] are different texts."""
    rest = [0] * (BLOCK - 2)
    assert prefix([1, 23, *rest]).digest != prefix([12, 3, *rest]).digest


def test_a_long_text_is_freed_without_recursion():
    node = prefix(range(200_000))
    assert node.length == 200_000
    del node  # a chain freed by recursion would end the process here


def test_random_trees_agree_with_plain_lists():
    draw = random.Random(0)
    tree: list[tuple[Prefix, list[int]]] = [(prefix([]), [])]
    for _ in range(300):
        node, tokens = draw.choice(tree[-40:])
        token = draw.randrange(3)
        tree.append((node.extend(token), [*tokens, token]))
    for node, tokens in tree:
        assert node.tokens() == tokens
    assert max(node.length for node, _ in tree) > BLOCK
