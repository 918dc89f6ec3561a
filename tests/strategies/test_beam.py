"""Beam search by hand-written slots, against an enumeration of all texts of a small tree."""
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool.core.branch import Ended
from unspool.core.edits import Fork
from unspool.core.job import Job
from unspool.core.prefix import Candidate
from unspool.core.request import Request
from unspool.core.slot import Slot
from unspool.stops.length import MaxNew
from unspool.stops.tokens import EndTokens
from unspool.strategies import Beam

PROMPT = (0,)


def fact(token, processed, raw=None):
    return Candidate(token, processed if raw is None else raw, processed, 1, -0.1)


def table(seed, size=4):
    """Log-probabilities of the next token by the last, all different."""
    draw = random.Random(seed)
    rows = [[draw.gauss(0, 1.5) for _ in range(size)] for _ in range(size)]
    return [[x - math.log(sum(map(math.exp, row))) for x in row] for row in rows]


def forward(job, rows):
    """Slots as the engine reads them: as many of the likeliest as the strategy asks for."""
    for branch in job.live:
        row = rows[branch.settled.token]
        order = sorted(range(len(row)), key=lambda t: (-row[t], t))[:job.strategy.reads.top]
        top = [fact(t, row[t]) for t in order]
        job.slots[branch] = [Slot(top[0], top=top)]


def search(rows, strategy, ends=(), longest=5, steps=60):
    job = Job(Request(PROMPT, strategy, stops=(EndTokens(frozenset(ends)), MaxNew(longest))))
    for _ in range(steps):
        if not job.live:
            return job
        forward(job, rows)
        job.decide()
    raise AssertionError("no end")


def every_text(rows, ends, longest, penalty):
    """(rank, tokens) of every finished text, best first."""
    out = []

    def grow(tokens, score):
        if tokens and (tokens[-1] in ends or len(tokens) == longest):
            out.append((score / len(tokens) ** penalty, tokens))
            return
        for t, logprob in enumerate(rows[tokens[-1] if tokens else PROMPT[-1]]):
            grow([*tokens, t], score + logprob)

    grow([], 0.0)
    return sorted(out, key=lambda x: -x[0])


def texts(job):
    return [(score, b.tokens) for b, score in job.strategy.ranked(job)]


# ── what is kept ─────────────────────────────────────────────────────────────────────────────────
def test_it_asks_for_so_many_that_ends_take_no_place():
    assert Beam(5).reads.top == 10 and Beam(3, ends=10).reads.top == 13


def test_a_step_keeps_the_best_of_all_branches():
    job = Job(Request(PROMPT, Beam(2)))
    [root] = job.branches
    job.slots[root] = [Slot(fact(1, -0.1), top=[fact(1, -0.1), fact(2, -0.7), fact(3, -2.0)])]
    job.decide()
    assert [b.tokens for b in job.branches] == [[1], [2]]
    one, two = job.branches
    job.slots = {one: [Slot(fact(1, -2.0), top=[fact(1, -2.0), fact(2, -2.1), fact(3, -9.0)])],
                 two: [Slot(fact(4, -0.5), top=[fact(4, -0.5), fact(5, -1.0), fact(6, -9.0)])]}
    job.decide()
    assert [b.tokens for b in job.branches] == [[2, 4], [2, 5]]
    assert [b.score for b in job.branches] == pytest.approx([-1.2, -1.7])
    reasons = {r.branch: r.reason for r in job.trace if r.edit == "drop"}
    assert reasons[two.number] == "continued by its best tokens"
    assert reasons[one.number] == "rank below 2 of the living"


def test_ties_go_to_the_earlier_branch_and_then_the_lower_id():
    job = Job(Request(PROMPT, Beam(3)))
    [root] = job.branches
    job.slots[root] = [Slot(fact(4, -1.0), top=[fact(4, -1.0), fact(5, -1.0), fact(6, -1.0)])]
    job.decide()
    top = [fact(1, -1.0), fact(2, -1.0), fact(3, -1.0)]
    job.slots = {b: [Slot(top[0], top=top)] for b in job.branches}
    job.decide()
    assert [b.tokens for b in job.branches] == [[4, 1], [4, 2], [4, 3]]


@pytest.mark.parametrize("ends", [(3,), (1, 2, 3)])
@pytest.mark.parametrize("seed", range(5))
def test_every_step_has_its_full_width_of_living_texts(seed, ends):
    """However many tokens end a text (6 of 10 here, and 2)."""
    rows = table(seed, 10)
    ends = tuple(range(10 - 2 * len(ends), 10))
    strategy = Beam(3, n=3, early_stopping="never", longest=6, ends=len(ends))
    job = Job(Request(PROMPT, strategy, stops=(EndTokens(frozenset(ends)), MaxNew(6))))
    for step in range(5):
        forward(job, rows)
        job.decide()
        if not job.live:
            break
        assert len(job.live) == min(3, (10 - len(ends)) ** (step + 1))
        assert not any(b.tokens[-1] in ends for b in job.live)
        assert len({tuple(b.tokens) for b in job.branches}) == len(job.branches)
    assert job.branches


@pytest.mark.parametrize("order, kept", [
    ([1, 2, 9, 8], [[1], [2]]),
    ([1, 9, 2, 8], [[9], [1], [2]]),
    ([1, 9, 8, 2], [[9], [1], [2]]),  # 8 is the third of them, so it does not count
])
def test_a_token_that_ends_counts_only_among_the_first_width(order, kept):
    job = Job(Request(PROMPT, Beam(2, ends=2), stops=(EndTokens(frozenset({8, 9})),)))
    [root] = job.branches
    top = [fact(t, -0.5 * place) for place, t in enumerate(order, 1)]
    job.slots[root] = [Slot(top[0], top=top)]
    job.decide()
    assert [b.tokens for b in job.branches] == kept
    assert [b.ended for b in job.branches] == [*[Ended("stop", 9)] * (len(kept) - 2), None, None]


# ── what wins ────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 2.0, -1.0])
@pytest.mark.parametrize("ends", [(3,), (2, 3)])
@pytest.mark.parametrize("seed", range(4))
def test_a_wide_enough_beam_finds_the_best_of_all_texts(seed, ends, penalty):
    rows = table(seed)
    strategy = Beam(300, n=5, length_penalty=penalty, early_stopping="never", longest=4,
                    ends=len(ends))
    got = texts(search(rows, strategy, ends, 4))
    want = every_text(rows, ends, 4, penalty)[:5]
    assert [t for _, t in got] == [t for _, t in want]
    assert [s for s, _ in got] == pytest.approx([s for s, _ in want])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from([False, True, "never"]),
       st.sampled_from([0.0, 1.0, 2.0, -1.0]))
def test_every_answer_is_a_real_text_with_its_own_rank(seed, width, early, penalty):
    rows, ends = table(seed), (3,)
    strategy = Beam(width, n=width, length_penalty=penalty, early_stopping=early, longest=5)
    got = texts(search(rows, strategy, ends))
    want = {tuple(t): s for s, t in every_text(rows, ends, 5, penalty)}
    assert 1 <= len(got) <= width
    assert [s for s, _ in got] == sorted((s for s, _ in got), reverse=True)
    assert len({tuple(t) for _, t in got}) == len(got)
    for score, tokens in got:
        assert score == pytest.approx(want[tuple(tokens)])


@pytest.mark.parametrize("seed", range(6))
def test_a_beam_of_one_is_greedy_and_searching_longer_never_loses(seed):
    rows = table(seed)
    text, last = [], PROMPT[-1]
    while len(text) < 5 and (not text or text[-1] != 3):
        last = max(range(4), key=lambda t: rows[last][t])
        text.append(last)
    [(score, tokens)] = texts(search(rows, Beam(1), (3,)))
    assert tokens == text
    assert score == pytest.approx(sum(
        rows[a][b] for a, b in zip([PROMPT[-1], *text], text, strict=False)) / len(text))
    scores = [texts(search(rows, Beam(3, early_stopping=early, longest=5), (3,)))[0][0]
              for early in (True, False, "never")]
    assert scores[0] <= scores[1] + 1e-12 and scores[0] <= scores[2] + 1e-12


# ── when it ends ─────────────────────────────────────────────────────────────────────────────────
def chain(*pairs):
    """Rows in which the n-th token continues (0) or ends (1) with these log-probabilities."""
    rows = {len(pairs): [-9.0, -0.1]}
    return {**rows, **{i: list(p) for i, p in enumerate(pairs)}}


def steps_of(early, pairs, penalty=1.0, longest=10):
    job = Job(Request(PROMPT, Beam(1, length_penalty=penalty, early_stopping=early,
                                   longest=longest),
                      stops=(EndTokens(frozenset({1})), MaxNew(longest))))
    count = 0
    while job.live and count < 20:
        for branch in job.live:
            row = chain(*pairs)[min(branch.written, len(pairs))]
            top = [fact(t, row[t]) for t in sorted((0, 1), key=lambda t: -row[t])]
            job.slots[branch] = [Slot(top[0], top=top)]
        job.decide()
        count += 1
    return count, job.strategy.ranked(job)[0][0].tokens


def test_early_stopping_true_ends_with_the_first_full_set():
    assert steps_of(True, [(-1.0, -0.5)]) == (1, [1])


def test_early_stopping_false_ends_when_the_living_rank_no_better_as_they_are():
    assert steps_of(False, [(-1.0, -0.5)]) == (1, [1])
    [root] = Job(Request(PROMPT, Beam(2))).branches
    kept = [(-0.9, Fork(root, fact(1, -0.9))), (-0.6, Fork(root, fact(2, -0.6)))]
    for worst, over in ((-0.7, False), (-0.6, True), (-0.5, True)):
        assert Beam(2).done([(-0.1, root), (worst, root)], kept) is over
    assert not Beam(2).done([(-0.1, root)], kept)  # one of two has finished
    assert Beam(2).done([], [])  # nothing lives on


def test_early_stopping_never_goes_on_while_a_longer_text_could_win():
    """-0.5 has ended; the living one, -0.6 now, would be -0.06 at ten tokens."""
    count, tokens = steps_of("never", [(-0.6, -0.5), (-0.1, -2.4), (-0.1, -2.4)])
    assert count > 1 and len(tokens) > 1
    assert steps_of(False, [(-0.6, -0.5), (-0.1, -2.4), (-0.1, -2.4)]) == (1, [1])
    # a penalty that does not favour length: nothing can be gained
    assert steps_of("never", [(-0.6, -0.5)], penalty=0.0) == (1, [1])
    assert steps_of("never", [(-0.6, -0.5)], penalty=-1.0) == (1, [1])


def test_a_length_ends_every_text_at_once():
    job = search(table(0), Beam(4, n=4), longest=3)
    assert {len(b.tokens) for b in job.branches} == {3}
    assert {b.ended.which for b in job.branches} == {"max_new_tokens"}


def test_what_the_end_leaves_behind_is_named():
    job = search(table(2), Beam(2, early_stopping=True), (3, 2), longest=6)
    drops = {r.reason for r in job.trace if r.edit == "drop"}
    assert "" not in drops and None not in drops
    assert all(b.ended for b in job.branches)
    assert drops <= {"continued by its best tokens", "cannot outrank the finished",
                     "rank below 2 of the living", "rank below 2 of the finished"}


def test_living_texts_count_as_they_stand():
    """The answers of a search that is cancelled."""
    job = Job(Request(PROMPT, Beam(2, n=2)))
    [(branch, score)] = job.strategy.ranked(job)
    assert branch.tokens == [] and score == 0.0
    forward(job, table(0))
    job.decide()
    assert [len(b.tokens) for b, _ in job.strategy.ranked(job)] == [1, 1]
