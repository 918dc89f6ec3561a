"""Beam search's options and kin by hand-written slots: patience, a width above the vocabulary,
doubled texts, siblings, groups."""
import math

import pytest
from beams_zoo import (
    answers,
    every_text,
    fact,
    forward,
    job_of,
    search,
    staged,
    table,
    trail,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool.core.edits import Fork
from unspool.core.errors import ParameterError
from unspool.core.slot import Slot
from unspool.strategies import Beam, DiverseBeam, SiblingBeam

TAILS = ({}, {"early_stopping": True}, {"early_stopping": "never", "longest": 5},
         {"length_penalty": -0.5, "kind": "gnmt"}, {"patience": 2.0}, {"n": 2})


# ── patience ─────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("patience, hold", [(0.0, 1), (0.5, 2), (1.0, 4), (1.4, 6), (2.0, 8)])
def test_patience_says_how_many_finished_texts_are_waited_for(patience, hold):
    beam = Beam(4, early_stopping=True, patience=patience)
    [root] = job_of(beam).branches
    kept = [(-0.9, Fork(root, fact(1, -0.9)))]
    assert not beam.done([(-0.1, root)] * (hold - 1), kept)
    assert beam.done([(-0.1, root)] * hold, kept)
    assert Beam(4, n=3, patience=0.1).hold == 3  # never fewer than are asked for


@pytest.mark.parametrize("seed", range(5))
def test_more_patience_finds_no_worse_texts(seed):
    rows, ends = table(seed, 6), (4, 5)
    found = [answers(search(rows, Beam(2, early_stopping=True, ends=2, patience=p), ends, 6))[0][1]
             for p in (0.5, 1.0, 2.0, 4.0)]
    assert found == sorted(found)


# ── width and texts at the start ─────────────────────────────────────────────────────────────────
def test_a_width_above_the_vocabulary_fills_up_as_the_tree_grows():
    job = job_of(Beam(50, n=50), longest=4)
    for count in (4, 16, 50):
        forward(job, table(0))
        job.decide()
        assert len(job.live) == count


@pytest.mark.parametrize("strategy", [Beam(4), DiverseBeam(4, groups=2, penalty=1.0)])
def test_texts_that_were_taken_over_twice_are_searched_once(strategy):
    job = staged(strategy, 4, [(1, 2), (1, 2), (1, 1), (1, 2)])
    assert [b.tokens for b in job.branches] == [[1, 2], [1, 1]]
    assert [r.reason for r in job.trace].count("the same text as another") == 2


def test_a_text_that_had_ended_competes():
    job = staged(Beam(2, n=2), 2, [(1, 3), (1, 2)])
    assert job.stage == 1 and len(job.live) == 1
    rows = table(1)
    while job.live:
        forward(job, rows)
        job.decide()
    found = dict(answers(job))
    assert found[1, 3] == pytest.approx(-0.5)
    assert all(t[:2] == (1, 2) for t in found if t != (1, 3))


@pytest.mark.parametrize("make", [
    lambda: Beam(0), lambda: Beam(2, n=0), lambda: Beam(2, patience=-1.0),
    lambda: Beam(2, coverage=math.nan), lambda: SiblingBeam(2, rate=-0.1),
    lambda: DiverseBeam(4, groups=0, penalty=0.5), lambda: DiverseBeam(4, groups=2, penalty=-1.0),
    lambda: DiverseBeam(5, groups=2, penalty=0.5)])
def test_numbers_that_make_no_search_are_refused(make):
    with pytest.raises(ParameterError) as refusal:
        make()
    assert refusal.value.name and f"{refusal.value.name}=" in str(refusal.value)


# ── siblings ─────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("seed", range(3))
def test_a_rate_of_0_and_one_group_are_beam_search(seed, tail):
    rows, ends = table(seed, 6), (4, 5)
    want = search(rows, Beam(4, ends=2, **tail), ends)
    for kin in (SiblingBeam(4, ends=2, rate=0.0, **tail),
                DiverseBeam(4, ends=2, groups=1, penalty=3.0, **tail)):
        got = search(rows, kin, ends)
        assert answers(got) == answers(want) and trail(got) == trail(want)


def two_parents(strategy):
    """Two branches, scores -0.1 and -0.9; each may go on with 1, 2, 3 at -0.5, -0.8, -1.5."""
    job = job_of(strategy)
    [root] = job.branches
    job.slots[root] = [Slot(fact(5, -0.1), top=[fact(5, -0.1), fact(6, -0.9)])]
    job.decide()
    top = [fact(1, -0.5), fact(2, -0.8), fact(3, -1.5)]
    job.slots = {b: [Slot(top[0], top=top)] for b in job.branches}
    job.decide()
    return [(b.tokens, round(b.score, 9)) for b in job.branches]


def test_siblings_make_room_for_each_other_s_cousins():
    assert two_parents(SiblingBeam(2, rate=0.0)) == [([5, 1], -0.6), ([5, 2], -0.9)]
    # keys -0.6 - r, -0.9 - 2r and -1.4 - r: from r = 0.5 on the third one is second
    assert two_parents(SiblingBeam(2, rate=0.4)) == [([5, 1], -0.6), ([5, 2], -0.9)]
    assert two_parents(SiblingBeam(2, rate=0.6)) == [([5, 1], -0.6), ([6, 1], -1.4)]


# ── groups ───────────────────────────────────────────────────────────────────────────────────────
def test_each_group_is_kept_off_the_tokens_of_those_before_it():
    job = job_of(DiverseBeam(3, n=3, groups=3, penalty=1.0))
    [root] = job.branches
    top = [fact(1, -0.1), fact(2, -0.6), fact(3, -1.7), fact(4, -5.0)]
    job.slots[root] = [Slot(top[0], top=top)]
    job.decide()
    # the second: -1.1, -0.6; the third: -1.1, -1.6, -1.7
    assert [(b.tokens, b.choice, b.score) for b in job.branches] == [
        ([1], 0, -0.1), ([2], 1, -0.6), ([1], 2, -0.1)]
    job.slots = {b: [Slot(top[0], top=top)] for b in job.branches}
    job.decide()
    assert [(b.tokens, b.choice) for b in job.branches] == [([1, 1], 0), ([2, 2], 1), ([1, 1], 2)]
    assert [b.score for b in job.branches] == pytest.approx([-0.2, -1.2, -0.2])  # the true ones
    assert len(job.strategy.ranked(job)) == 2  # a text is one answer, whoever found it


def test_it_asks_for_as_many_as_can_be_ranked_down():
    assert DiverseBeam(6, groups=1, penalty=1.0).reads == Beam(6).reads
    assert DiverseBeam(6, groups=3, penalty=1.0).reads.top == 2 * 2 + 2 * 2
    assert DiverseBeam(6, groups=3, penalty=1.0, ends=9).reads.top == 2 + 9 + 2 * 2


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from([(2, 2), (4, 2), (6, 3), (3, 3)]),
       st.sampled_from([0.0, 0.3, 1.0, 50.0]), st.sampled_from(TAILS))
def test_what_is_asked_for_is_enough(seed, shape, penalty, tail):
    """With whole rows the search finds the same."""
    rows, ends, (width, groups) = table(seed, 12), (10, 11), shape
    strategy = DiverseBeam(width, ends=2, groups=groups, penalty=penalty, **{**tail, "n": width})
    whole = DiverseBeam(width, ends=12, groups=groups, penalty=penalty, **{**tail, "n": width})
    got, want = search(rows, strategy, ends), search(rows, whole, ends)
    assert answers(got) == answers(want) and trail(got) == trail(want)
    texts = every_text(rows, ends, 5)
    for branch in got.branches:
        assert branch.score == pytest.approx(texts[tuple(branch.tokens)])
        assert 0 <= branch.choice < groups


def test_a_strong_penalty_parts_the_groups_at_every_step():
    job = search(table(3, 12), DiverseBeam(3, n=3, groups=3, penalty=100.0), longest=4)
    texts = [t for t, _ in answers(job)]
    assert len(texts) == 3
    for place in range(4):
        assert len({t[place] for t in texts}) == 3


def test_groups_finish_by_themselves():
    """A finished text holds a place in its own group only."""
    rows, ends = table(7, 8, 3.0), (6, 7)
    job = search(rows, DiverseBeam(4, n=4, groups=2, penalty=0.5, ends=2), ends, 6)
    by_group = [sum(b.choice == g for b in job.branches) for g in (0, 1)]
    assert all(1 <= count <= 2 for count in by_group)
