"""Progress with words that a text must contain, against what the words "contain" mean."""
import itertools

import pytest
from beams_zoo import contains
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool.strategies.words import EXACT, Progress, Words, unreachable

word = st.lists(st.integers(0, 2), min_size=1, max_size=3).map(tuple)
clauses = st.lists(st.lists(word, min_size=1, max_size=2).map(tuple), min_size=1, max_size=3
                   ).map(tuple)
text = st.lists(st.integers(0, 3), max_size=9).map(tuple)


def of(words, text):
    return words.follow(Progress(), text)


@settings(max_examples=300)
@given(clauses, st.booleans(), text)
def test_all_are_met_exactly_where_the_text_contains_them(clauses, ordered, text):
    words = Words(clauses, ordered)
    for size in range(len(text) + 1):
        progress = of(words, text[:size])
        assert (not words.unmet(progress)) == contains(text[:size], words)
        assert (words.left(progress) == 0) == contains(text[:size], words)


@settings(max_examples=100)
@given(clauses, st.booleans(), text)
def test_what_fits_is_what_some_text_of_that_length_can_do(clauses, ordered, text):
    words = Words(clauses, ordered)
    progress = of(words, text)
    fewest = next(size for size in range(10) if any(
        contains((*text, *more), words) for more in itertools.product(range(3), repeat=size)))
    assert words.fewest(progress) == fewest <= words.left(progress)
    assert [words.fits(progress, room) for room in range(fewest + 2)] == [
        room >= fewest for room in range(fewest + 2)]


@given(clauses, st.booleans(), text)
def test_some_next_token_of_a_word_always_brings_the_text_on(clauses, ordered, text):
    words = Words(clauses, ordered)
    before = of(words, text)
    after = [words.after(before, rest[0]) for rest in words.ways(before)]
    assert all(set(before.met) <= set(progress.met) for progress in after)
    assert not after or min(map(words.left, after)) < words.left(before)


# ── by hand ──────────────────────────────────────────────────────────────────────────────────────
def test_a_phrase_that_breaks_off_begins_again_as_far_as_it_can():
    words = Words((((1, 1, 2),),))
    assert of(words, (1, 1)).tail == (1, 1)
    assert of(words, (1, 1, 1)).tail == (1, 1)  # one token later, not from the start
    assert of(words, (1, 1, 1, 2)) == Progress((0,), ())
    assert of(words, (1, 1, 3)).tail == ()


def test_one_token_ends_a_word_and_begins_another():
    words = Words((((1, 2),), ((2, 3),)))
    assert of(words, (1, 2)) == Progress((0,), (2,))
    assert words.left(of(words, (1, 2))) == 1
    assert of(words, (1, 2, 3)) == Progress((0, 1), ())
    assert words.fewest(Progress()) == 3 and words.left(Progress()) == 4


def test_a_word_within_another_is_met_with_it_unless_order_forbids():
    clauses = (((2,),), ((1, 2, 3),))
    assert of(Words(clauses), (1, 2, 3)).met == (0, 1)
    assert of(Words(clauses, True), (1, 2, 3)).met == (0, 1)
    assert of(Words(clauses[::-1], True), (1, 2, 3)).met == (0,)
    assert Words(clauses[::-1], True).fewest(Progress()) == 4


def test_any_word_of_a_clause_meets_it():
    words = Words((((1, 2, 3), (4,)), ((5,),)))
    assert of(words, (4,)).met == of(words, (1, 2, 3)).met == (0,)
    assert words.total == 2 and words.tokens == (1, 2, 3, 4, 5)


def test_many_words_are_counted_one_after_another():
    """A chain of words, each of which shares a token with the next."""
    chain = tuple(((i, i + 1),) for i in range(EXACT + 1))
    few, many = Words(chain[:EXACT]), Words(chain)
    assert few.fewest(Progress()) == EXACT + 1
    assert many.fewest(Progress()) == 2 * (EXACT + 1)


@pytest.mark.parametrize("clauses, longest, ordered, why", [
    ((), 9, False, "no word"),
    ((((),),), 9, False, "no tokens"), (((),), 9, False, "no tokens"),
    ((((1, 2),), ((3,),)), 2, False, "take 3 tokens, and at most 2"),
    ((((1, 2),), ((2, 3),)), 3, False, None), ((((1, 2),), ((2, 3),)), 2, False, "take 3 tokens"),
    ((((2, 3),), ((1, 2),)), 3, True, "take 4 tokens"),
    ((((1, 2),),), 0, False, None)])
def test_what_no_text_can_contain_is_known_before_it_is_written(clauses, longest, ordered, why):
    reason = unreachable(clauses, longest, ordered)
    assert reason is None if why is None else why in reason
