"""Every way of spelling a choice and no other, against a brute-force definition; what is refused.
"""
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool.constraints import Choice, Vocabulary, choice
from unspool.core.errors import ParameterError

LETTERS = Vocabulary([bytes([97 + i]) for i in range(12)])  # a .. l


def written(made, state=None, text=()):
    """All that can be written under a constraint, until nothing may follow."""
    state = made.start() if state is None else state
    if made.done(state):
        yield text
        return
    assert len(made.allowed(state)), "a dead end"
    for token in made.allowed(state).tolist():
        yield from written(made, made.after(state, token), (*text, token))


def spellings(text, tokens):
    """Every sequence of tokens, (id, piece), that joins to a text."""
    if not text:
        yield ()
    for token, piece in tokens:
        if piece and text[:len(piece)] == piece:
            yield from ((token, *rest) for rest in spellings(text[len(piece):], tokens))


def defined(texts, tokens, ends):
    """The same by definition: each spelling, and an end token where another text goes on."""
    for text in texts:
        longer = [other[len(text):] for other in texts if other != text
                  and other[:len(text)] == text]
        goes_on = any(True for rest in longer for _ in spellings(rest, tokens))
        for spelt in spellings(text, tokens):
            yield from ((*spelt, end) for end in ends) if goes_on else (spelt,)


TEXTS = st.lists(st.text("ab€", min_size=1, max_size=4), min_size=1, max_size=5, unique=True)
PARTS = st.lists(st.binary(min_size=1, max_size=2).map(
    lambda raw: bytes(b"ab"[x % 2] for x in raw)), max_size=5)


@settings(max_examples=300, deadline=None)
@given(TEXTS, PARTS)
def test_all_spellings_of_the_texts_and_nothing_else_can_be_written(texts, parts):
    """Also where a token leads to a place from which the rest cannot be spelt."""
    pieces = [*parts, b"", "€".encode(), "€".encode()[:1], "€".encode()[1:]]
    tokens, ends = list(enumerate(pieces)), (len(pieces), len(pieces) + 1)
    raw = [text.encode() for text in texts]
    able = [t for t, data in zip(texts, raw, strict=True) if any(spellings(data, tokens))]
    if len(able) < len(texts):
        with pytest.raises(ParameterError, match="no tokens that spell it"):
            choice(texts, Vocabulary(pieces), ends)
    if able:
        made = choice(able, Vocabulary([*pieces, b"a", b""]), ends)
        found = list(written(made))
        assert sorted(found) == sorted(defined([t.encode() for t in able], tokens, ends))
        assert len(found) == len(set(found))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1, max_size=6))
def test_lists_of_ids_are_written_as_they_are(texts):
    made, unique = choice(texts, LETTERS, (11,)), {tuple(text) for text in texts}
    tokens = [(i, (i,)) for i in range(12)]
    assert sorted(written(made)) == sorted(defined(sorted(unique), tokens, (11,)))


def test_what_is_allowed_next():
    made = choice(["abc", "abd", "b"], Vocabulary([b"a", b"b", b"c", b"d", b"ab", b"bd"]))
    assert made.allowed(made.start()).tolist() == [0, 1, 4]
    state = made.after(made.start(), 4)
    assert made.allowed(state).tolist() == [2, 3]
    assert made.allowed(made.after(made.start(), 0)).tolist() == [1, 5]


def test_a_state_is_where_the_text_stands_however_it_was_spelt():
    made = choice(["abc"], Vocabulary([b"a", b"b", b"c", b"ab"]))
    one = made.after(made.after(made.start(), 0), 1)
    assert one == made.after(made.start(), 3)
    assert made.allowed(one) is made.allowed(one)
    assert not made.allowed(one).flags.writeable and made.allowed(one).dtype == np.int64


def test_a_choice_within_another_ends_by_an_end_token():
    made = choice(["ab", "abc"], LETTERS, (9, 11))
    state = made.after(made.after(made.start(), 0), 1)
    assert made.complete(state) and not made.done(state)
    assert made.allowed(state).tolist() == [2, 9, 11]
    over = made.after(state, 9)
    assert made.complete(over) and made.done(over) and made.allowed(over).size == 0
    leaf = made.after(state, 2)
    assert made.done(leaf) and made.allowed(leaf).tolist() == [9, 11]


def test_an_end_token_is_no_part_of_a_text():
    with pytest.raises(ParameterError, match="no tokens that spell it"):
        choice(["ab"], LETTERS, (0,))


def test_a_text_that_goes_on_in_theory_only_needs_no_end():
    """No token goes on from "ab" to "abc", which is one token or nothing."""
    made = choice(["ab", "abc"], Vocabulary([b"ab", b"abc", b"x"]), (2,))
    assert made.done(made.after(made.start(), 0))


@pytest.mark.parametrize("tokens", [(1,), (0, 0), (0, 1, 2, 3), (9,), (0, 9), (0, 1, 2, 9, 9),
                                    (99,), (0, 99)])
def test_what_was_not_allowed_leads_nowhere_and_never_back(tokens):
    made = choice(["abc"], LETTERS, (9,))
    state = made.start()
    for token in tokens:
        state = made.after(state, token)
    assert made.allowed(state).size == 0
    assert not made.done(state) and not made.complete(state)
    for token in range(12):
        assert made.after(state, token) == state


def test_every_spelling_in_a_real_vocabulary(smol):
    """None has a dead end, and the tokenizer's own is among them."""
    texts = [" blue", " bluebird", "🦊 fox", " naïve"]
    made = choice(texts, smol.facts.vocabulary, smol.facts.ends)
    found = set(written(made))
    for text in texts:
        ids = tuple(smol.facts.tokenizer.encode(text, start=False))
        assert ids in found or (*ids, min(smol.facts.ends)) in found
    pieces = smol.facts.vocabulary.pieces
    spelt = {b"".join(pieces[i] for i in ids) for ids in found}
    assert spelt == {text.encode() for text in texts} and len(found) > 100


@settings(max_examples=100)
@given(TEXTS, PARTS)
def test_no_more_tokens_end_a_text_in_one_place_than_it_says(texts, parts):
    pieces = [*parts, b"a", b"b", *(bytes([x]) for x in "€".encode())]
    made = choice(texts, Vocabulary(pieces), {len(pieces)})
    seen, todo = set(), [made.start()]
    while todo:
        state = todo.pop()
        behind = [made.after(state, token) for token in made.allowed(state).tolist()]
        assert sum(map(made.done, behind)) <= made.endings
        todo += [s for s in behind if s not in seen and not made.done(s)]
        seen.update(behind)


def test_it_is_a_value():
    one, other = choice(["a", "b"], LETTERS), choice(("b", "a", "a"), LETTERS)
    assert one == other and hash(one) == hash(other)
    assert one != choice(["a", "c"], LETTERS) != choice(["a", "c"], LETTERS, (9,))
    assert str(one) == "choice=['a', 'b']" and str(choice([[2, 1]], LETTERS)) == "choice=[[2, 1]]"
    assert isinstance(one, Choice)


BAD = {
    "text": ("yes", "must be a list of texts"),
    "number": (3, "must be a list of texts"),
    "none": ([], "name one at least"),
    "empty text": (["a", ""], "must have a character"),
    "empty ids": ([[1], []], "must have a token"),
    "ids alone": ([1, 2], "a text or a list of token ids"),
    "bytes": ([b"a"], "a text or a list of token ids"),
    "mixed": (["a", [1]], "give all in one form"),
    "unknown id": ([[1, 12]], "ids run from 0 to 11"),
    "negative id": ([[-1]], "ids run from 0 to 11"),
    "no number": ([["a"]], "'a' is no token id"),
    "truth": ([[True]], "True is no token id"),
    "half": ([[1.0]], "1.0 is no token id"),
    "surrogate": (["\ud800"], "lone surrogates"),
    "not in the vocabulary": (["a", "xyz"], "'xyz': this model has no tokens that spell it"),
    "prefix": (["ab", "b", "abc"], "one begins with the other"),
    "prefix of ids": ([[1], [1, 2]], "one begins with the other"),
    "many": (["a"] * (2**16 + 1), "at most 65536"),
    "long": (["a" * (2**20 + 1)], "at most 1048576 in all"),
}


@pytest.mark.parametrize(("given", "why"), BAD.values(), ids=BAD)
def test_what_cannot_be_chosen_is_refused_by_name(given, why):
    with pytest.raises(ParameterError, match=why) as caught:
        choice(given, LETTERS)
    assert caught.value.name == "choice"


def test_an_id_that_ends_the_text_is_refused():
    with pytest.raises(ParameterError, match="token 9 ends the text"):
        choice([[1, 9]], LETTERS, (9,))


@pytest.mark.parametrize("given", [("a", "b"), {"a", "b"}, ["b", "a", "b"], frozenset("ab")])
def test_any_collection_of_texts_will_do(given):
    assert choice(given, LETTERS).texts == (b"a", b"b")


def test_ids_may_be_of_numpy():
    made = choice([np.array([1, 2]), [np.int64(3)]], LETTERS)
    assert made.texts == ((1, 2), (3,))


def test_many_long_texts():
    """Places are found as they are reached: thousands of texts that share their beginnings."""
    texts = ["".join(p) for p in itertools.product("abcd", repeat=6)]
    made = choice([text + text for text in texts], LETTERS)
    state = made.start()
    for token in (0, 1, 2, 3, 3, 2):
        assert made.allowed(state).tolist() == [0, 1, 2, 3]
        state = made.after(state, token)
    for token in (0, 1, 2, 3, 3, 2):
        assert made.allowed(state).tolist() == [token]
        state = made.after(state, token)
    assert made.done(state)
