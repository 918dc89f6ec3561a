"""What a job shows: nothing final is taken back, and what is shown is always the leader's path."""
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool.core.branch import Branch, Ended
from unspool.core.edits import Drop, Extend, Fork, Replace
from unspool.core.events import Commit, Provisional, Revoke
from unspool.core.job import Job
from unspool.core.prefix import Candidate
from unspool.core.request import Request
from unspool.core.slot import PICK
from unspool.core.stage import REACHED, Stage


class Scripted:
    """A strategy whose edits the test applies itself."""

    reads = PICK

    def __init__(self, searching, n=1):
        self.searching, self.n = searching, n

    def open(self, job):
        return ()

    def ranked(self, job):
        return sorted(((b, b.score) for b in job.branches), key=lambda r: -r[1])[:self.n]


def candidate(token, score=-1.0):
    return Candidate(token, score, score, 1, 0.0)


class Listener:
    """Keeps the two lists that `Shown` says who listens keeps, per choice."""

    def __init__(self):
        self.final, self.lead = {}, {}

    def hear(self, events):
        for event in events:
            final = self.final.setdefault(event.choice, [])
            lead = self.lead.setdefault(event.choice, [])
            match event:
                case Commit(_, tokens):
                    assert tokens
                    assert tuple(lead[:len(tokens)]) == tokens[:len(lead)]
                    final.extend(tokens)
                    del lead[:len(tokens)]
                case Provisional(_, tokens):
                    assert tokens
                    lead.extend(tokens)
                case Revoke(_, count):
                    assert 0 < count <= len(lead)
                    del lead[-count:]

    def path(self, choice=0):
        return self.final.get(choice, []) + self.lead.get(choice, [])


def beam_step(job, draw, width):
    """Fork every live branch a few ways, keep the best `width`, some of them ended."""
    forks = [Fork(b, candidate(token, draw.choice([-0.5, -1.0, -2.0])))
             for b in job.live for token in draw.sample(range(4), draw.randint(1, 3))]
    forks.sort(key=lambda f: -(f.branch.score + f.candidate.processed))
    old = list(job.live)
    job.apply([*forks[:width], *(Drop(b, "continued") for b in old)])
    born = job.branches[-len(forks[:width]):]
    for branch in born[1:]:
        if draw.random() < 0.15:
            branch.ended = Ended("stop", 1)
    lost = [b for b in job.branches if b.ended is not None and draw.random() < 0.3]
    job.apply([Drop(b, "outranked") for b in lost])


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 5), st.integers(1, 3))
def test_a_search_never_takes_back_what_it_committed(seed, width, n):
    draw = random.Random(seed)
    job = Job(Request((9, 9), Scripted(True, n)))
    listener = Listener()
    listener.hear(job.events())
    for _ in range(draw.randint(1, 12)):
        if not job.live:
            break
        beam_step(job, draw, width)
        before = list(listener.final.get(0, []))
        listener.hear(job.events())
        assert listener.final.get(0, [])[:len(before)] == before
        if job.live:
            leader = max(job.live, key=lambda b: b.score)
            assert listener.path() == leader.facts
            for branch in job.branches:
                assert branch.facts[:len(listener.final[0])] == listener.final.get(0, [])
    job.end(Ended("cancelled"))
    listener.hear(job.events())
    for choice, (branch, _) in enumerate(job.strategy.ranked(job)):
        assert listener.final.get(choice, []) == branch.facts
        assert listener.lead.get(choice, []) == []
    assert job.events() == []  # nothing is said twice


def test_tokens_are_committed_once_all_that_can_win_share_them():
    job = Job(Request((9,), Scripted(True)))
    [root] = job.branches
    job.apply([Fork(root, candidate(1, -0.1)), Fork(root, candidate(2, -0.2)), Drop(root)])
    assert job.events() == [Provisional(0, (candidate(1, -0.1),))]
    one, two = job.branches
    job.apply([Fork(one, candidate(3, -5.0)), Fork(two, candidate(4, -0.1)), Drop(one), Drop(two)])
    two_four = (candidate(2, -0.2), candidate(4, -0.1))
    assert job.events() == [Revoke(0, 1), Provisional(0, two_four)]
    job.apply([Drop(job.branches[0])])
    assert job.events() == [Commit(0, two_four)]
    job.apply([Extend(job.branches[0], candidate(5))])
    assert job.events() == [Commit(0, (candidate(5),))]


def test_a_finished_text_that_may_still_win_holds_the_rest_back():
    job = Job(Request((9,), Scripted(True)))
    [root] = job.branches
    job.apply([Fork(root, candidate(1)), Fork(root, candidate(2, -3.0)), Drop(root)])
    first, second = job.branches
    second.ended = Ended("stop", 2)
    job.apply([Extend(first, candidate(3))])
    assert [type(e) for e in job.events()] == [Provisional]
    job.apply([Drop(second)])
    assert job.events() == [Commit(0, (candidate(1), candidate(3)))]


def test_samples_are_committed_by_choice_as_they_come():
    job = Job(Request((9, 9), Scripted(False)))
    [first] = job.branches
    job.apply([Fork(first, choice=1)])
    second = job.branches[1]
    job.apply([Extend(first, candidate(1)), Extend(second, candidate(2))])
    assert job.events() == [Commit(0, (candidate(1),)), Commit(1, (candidate(2),))]
    job.apply([Extend(second, candidate(3)), Extend(second, candidate(4))])
    assert job.events() == [Commit(1, (candidate(3), candidate(4)))]
    assert job.events() == []


@pytest.mark.parametrize("prompt", [(1,), (9, 9), tuple(range(20))])
def test_another_prompt_under_the_text_shows_no_token_twice(prompt):
    """Replace puts the written tokens behind a prompt of another length."""
    job = Job(Request((9, 9), Scripted(False)))
    [branch] = job.branches
    job.apply([Extend(branch, candidate(1)), Extend(branch, candidate(2))])
    assert job.events() == [Commit(0, (candidate(1), candidate(2)))]
    job.apply([Replace(branch, prompt, (candidate(1), candidate(2), candidate(3)))])
    assert job.events() == [Commit(0, (candidate(3),))]
    job.apply([Extend(branch, candidate(4))])
    assert job.events() == [Commit(0, (candidate(4),))]


def test_a_search_that_loses_every_branch_takes_its_promise_back():
    job = Job(Request((9,), Scripted(True)))
    [root] = job.branches
    job.apply([Fork(root, candidate(1)), Fork(root, candidate(2)), Drop(root)])
    assert [type(e) for e in job.events()] == [Provisional]
    job.apply([Drop(b) for b in job.branches])
    assert job.events() == [Revoke(0, 1)]
    assert not job.live and isinstance(root, Branch)


def test_what_a_token_carries_besides_does_not_count():
    """A hidden state is an array, which cannot be told equal by `==`."""
    class Array:
        def __eq__(self, other):
            raise ValueError("ambiguous")

        __hash__ = None

    job = Job(Request((1,), Scripted(True)))
    [root] = job.branches
    for token, score in ((3, -1.0), (3, -1.0), (4, -2.0)):
        job.apply([Fork(root, candidate(token, score)._replace(state=Array()))])
    job.apply([Drop(root)])
    one, other, _ = job.branches
    assert [type(event) for event in job.events()] == [Provisional]
    job.apply([Drop(one)])
    assert job.events() == [] and job.shown.leader is other


class Rows:
    """What an array does when it is compared."""

    def __eq__(self, other):
        raise ValueError("the truth value of an array is ambiguous")

    __hash__ = object.__hash__


def test_facts_that_cannot_be_compared_do_no_harm():
    """Two texts that begin alike, each with its own hidden states; the one that leads is dropped.
    """
    job = Job(Request((9,), Scripted(True)))
    [root] = job.branches
    kept = [candidate(1)._replace(state=Rows(), row=Rows()) for _ in range(2)]
    job.apply([*(Fork(root, fact) for fact in kept), Drop(root)])
    one, other = job.branches
    job.apply([Extend(one, candidate(2)), Extend(other, candidate(3))])
    assert [type(e) for e in job.events()] == [Commit, Provisional]
    job.apply([Drop(one)])
    assert job.events() == [Revoke(0, 1), Commit(0, (candidate(3),))]


# ── programs ─────────────────────────────────────────────────────────────────────────────────────
def staged(takes, first=False, count=3):
    """A request of two stages: several texts, of which the next takes some."""
    stages = (Stage(Scripted(first, count)), Stage(Scripted(False, takes), takes=takes))
    job = Job(Request((9,), stages[0].strategy, program=stages))
    [root] = job.branches
    job.apply([Fork(root, candidate(1), choice=i) for i in range(count)] + [Drop(root)])
    return job


@pytest.mark.parametrize("searching", [False, True])
def test_texts_that_the_next_stage_chooses_among_commit_what_all_share(searching):
    job, listener = staged(1, searching), Listener()
    listener.hear(job.events())
    assert listener.final == {0: [candidate(1)]}
    job.apply([Extend(b, candidate(2 + b.choice, -1.0 - b.choice)) for b in job.branches])
    listener.hear(job.events())
    assert listener.final == {0: [candidate(1)]} and listener.lead[0] == [candidate(2)]
    for branch in job.branches:
        branch.ended = Ended(REACHED)
    job.branches[0].score = -50.0  # the second is the best now
    job.hand_over()
    [best] = job.branches
    listener.hear(job.events())
    assert [c.token for c in listener.final[0]] == [1, 3] and listener.lead[0] == []
    job.apply([Extend(best, candidate(7))])
    assert job.events() == [Commit(0, (candidate(7),))]


def test_texts_that_all_go_on_are_committed_by_choice_in_the_last_stage():
    job, listener = staged(3), Listener()
    job.apply([Extend(b, candidate(2 + b.choice, -1.0 - b.choice)) for b in job.branches])
    listener.hear(job.events())
    assert listener.final == {0: [candidate(1)]}
    for branch in job.branches:
        branch.ended = Ended(REACHED)
    job.hand_over()
    listener.hear(job.events())
    assert {i: [c.token for c in facts] for i, facts in listener.final.items()} == {
        0: [1, 2], 1: [1, 3], 2: [1, 4]}


def test_a_single_text_commits_at_once_in_every_stage():
    job = staged(1, count=1)
    assert job.events() == [Commit(0, (candidate(1),))]
    job.apply([Extend(job.branches[0], candidate(2))])
    assert job.events() == [Commit(0, (candidate(2),))]
    job.branches[0].ended = Ended(REACHED)
    job.hand_over()
    assert job.events() == [] and job.live
