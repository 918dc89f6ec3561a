"""Must-contain words: every answer has them, and a wide enough search finds the best that does."""
import math

import pytest
from beams_zoo import (
    answers,
    contains,
    every_text,
    fact,
    forward,
    job_of,
    search,
    slot_of,
    staged,
    table,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool.core.errors import ParameterError
from unspool.core.slot import Slot
from unspool.strategies import Beam, LexicalBeam
from unspool.strategies.words import Words

CASES = [
    ((((2,),),), False), ((((1, 2),),), False), ((((1,),), ((2,),)), False),
    ((((1,),), ((2,),)), True), ((((2,),), ((1,),)), True), ((((1, 1),), ((1, 2),)), False),
    ((((0, 2), (1, 1, 1)), ((2, 0),)), False), ((((0, 2), (1, 2)), ((2, 0),)), True),
]


def ranks(rows, words, ends=(3, 4), longest=4, penalty=1.0):
    """Of every text that contains the words."""
    return {t: s / len(t) ** penalty for t, s in every_text(rows, ends, longest).items()
            if contains(t, words)}


@pytest.mark.parametrize("words, ordered", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_full_width_finds_the_argmax_among_texts_that_contain_the_words(seed, words, ordered):
    rows = table(seed, 5)
    want = ranks(rows, Words(words, ordered))
    strategy = LexicalBeam(700, n=4, early_stopping="never", longest=4, ends=2, words=words,
                           ordered=ordered)
    got = answers(search(rows, strategy, (3, 4), 4))
    assert [s for _, s in got] == pytest.approx(sorted(want.values(), reverse=True)[:4])
    assert dict(got) == pytest.approx({t: want[t] for t, _ in got})


@settings(max_examples=150)
@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from(CASES), st.integers(3, 6),
       st.sampled_from([False, True, "never"]))
def test_every_answer_has_the_words_at_any_width(seed, width, case, longest, early):
    rows, (words, ordered) = table(seed, 5), case
    asked = Words(words, ordered)
    strategy = LexicalBeam(width, n=width, early_stopping=early, longest=longest, ends=2,
                           words=words, ordered=ordered)
    got = answers(search(rows, strategy, (3, 4), longest))
    want = ranks(rows, asked, longest=longest)
    assert 1 <= len(got) <= width
    assert dict(got) == pytest.approx({t: want[t] for t, _ in got})


def test_words_that_the_text_has_anyway_cost_nothing():
    """With all words met there is one bank, and the search is a beam search."""
    rows, ends = table(1, 8), (6, 7)
    likeliest = max(range(6), key=lambda t: rows[0][t])
    words = (((likeliest,),),)
    plain = answers(search(rows, Beam(3, ends=2), ends, 6))[0]
    got = answers(search(rows, LexicalBeam(3, ends=2, words=words), ends, 6))[0]
    assert likeliest in plain[0] and got[1] >= plain[1] - 1e-9


def test_tokens_of_a_word_are_read_and_stand_beside_the_likeliest():
    rows = table(0, 12)
    rare = min(range(10), key=lambda t: rows[0][t])
    strategy = LexicalBeam(2, ends=2, longest=5, words=(((rare, 3),),))
    assert strategy.reads.named == tuple(sorted({rare, 3})) and not Beam(2).reads.named
    job = job_of(strategy, (10, 11))
    forward(job, rows)
    assert rare not in {c.token for c in job.slots[job.live[0]][0].top}
    job.decide()
    assert [rare] in [b.tokens for b in job.live]


# ── banks ────────────────────────────────────────────────────────────────────────────────────────
def first_step(width, words, longest=9):
    """Six tokens, 0 the likeliest, 5 the least; what lives on after one step."""
    row = [-0.5, -1.0, -1.5, -2.0, -2.5, -3.0]
    job = job_of(LexicalBeam(width, words=words, longest=longest), (), longest)
    [root] = job.branches
    job.slots[root] = [slot_of(row, job.strategy.reads, None)]
    job.decide()
    return [b.tokens[0] for b in job.live]


def test_each_bank_has_its_share():
    assert first_step(2, (((5,),),)) == [0, 5]  # one for those without, one for those with
    assert first_step(4, (((4,),), ((5,),))) == [0, 1, 4, 5]  # 1, 1 and 2: none has both yet
    assert first_step(3, (((5,),),)) == [0, 1, 5]  # the last bank has one, its other goes down


def test_what_lower_banks_do_not_need_goes_up():
    """One token has to be the word's: the bank of texts without it is empty."""
    assert first_step(3, (((3,), (4,), (5,)),), longest=1) == []  # they end at once
    assert first_step(3, (((3, 0), (4, 0), (5, 0)),), longest=2) == [3, 4, 5]


def test_a_width_below_the_number_of_banks_serves_the_last_ones():
    assert first_step(1, (((4,),), ((5,),))) == [4]


# ── what cannot be ───────────────────────────────────────────────────────────────────────────────
def test_a_text_does_not_end_before_it_has_all_words():
    rows = table(2, 5)
    rows[0] = [-9.0, -9.0, -9.0, -9.0, -0.001]  # the end is all but certain
    got = answers(search(rows, LexicalBeam(2, longest=4, words=(((1,),),)), (4,), 4))
    assert all(1 in t for t, _ in got)


def test_words_that_cannot_be_are_refused_at_once():
    with pytest.raises(ParameterError, match="take 3 tokens, and at most 2") as refusal:
        LexicalBeam(2, longest=2, words=(((1, 2, 3),),))
    assert refusal.value.name == "must_contain"
    with pytest.raises(ParameterError, match="no word is given"):
        LexicalBeam(2, words=())


@pytest.mark.parametrize("width", [1, 3])
def test_a_word_that_the_rules_make_impossible_is_named(width):
    rows = [[-math.inf if t == 2 else x for t, x in enumerate(row)] for row in table(0, 5)]
    strategy = LexicalBeam(width, longest=4, words=(((1,),), ((2, 0),)))
    with pytest.raises(ParameterError, match=r"\(\(2, 0\),\) could not be written") as refusal:
        search(rows, strategy, (4,), 4)
    assert refusal.value.name == "must_contain"


# ── in the middle of a request ───────────────────────────────────────────────────────────────────
def test_words_written_before_count_and_texts_that_ended_without_are_given_up():
    strategy = LexicalBeam(2, n=2, longest=6, words=(((1, 2),),))
    job = staged(strategy, 3, [(1, 3), (0, 1), (2, 2)])
    assert [b.tokens for b in job.branches] == [[0, 1], [2, 2]]
    for branch in job.live:
        job.slots[branch] = [Slot(fact(2, -0.5), top=[fact(2, -0.5)], named={
            1: fact(1, -3.0), 2: fact(2, -0.5)})]
    job.decide()
    progress = {tuple(b.tokens): strategy.progress(b) for b in job.live}
    assert progress[0, 1, 2].met == (0,)


def test_nothing_taken_over_has_the_words():
    with pytest.raises(ParameterError, match="could not be written"):
        staged(LexicalBeam(2, longest=6, words=(((1, 2),),)), 1, [(1, 3)])
