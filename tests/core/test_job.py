"""`Job.apply`, the one place where a branch changes: sums, stops, drafts, states, trace, counts."""
import random
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool.core.branch import Ended
from unspool.core.edits import Draft, Drop, Extend, Fork, Replace
from unspool.core.job import Job
from unspool.core.prefix import Candidate
from unspool.core.records import Record
from unspool.core.request import Request
from unspool.core.slot import PICK, Slot
from unspool.stops.length import MaxNew
from unspool.stops.tokens import EndTokens

END = 9


class Quiet:
    """A strategy that only answers what the test gives it."""

    reads = PICK
    searching = False

    def __init__(self, first=(), then=()):
        self.first, self.then = first, list(then)

    def open(self, job):
        return self.first(job) if callable(self.first) else self.first

    def decide(self, job, slots):
        return self.then.pop(0)(job, slots)

    def ranked(self, job):
        return [(b, b.score) for b in job.branches]


@dataclass(frozen=True)
class Seen:
    """A rule that remembers every token it was told, with its facts; it may look at the text."""

    name: str = "seen"
    recalls: bool = False

    def start(self, prompt):
        return (tuple(prompt), ())

    def after(self, state, token, fact):
        assert fact.token == token
        return (state[0], (*state[1], fact))


@dataclass(frozen=True)
class Counted:
    """A stop whose state is the number of tokens it saw; ends at `at`."""

    at: int = 10**9
    reason: str = "stop"

    def start(self):
        return 0

    def after(self, state, branch):
        state += 1
        return state, Ended(self.reason, f"counted {self.at}") if state >= self.at else None


def fact(token, raw=-1.0, processed=-0.5):
    return Candidate(token, raw, processed, 1, -0.25)


STOPS = (EndTokens((END,)), Counted())


def job_of(prompt=(7, 8), stops=STOPS, rules=(Seen(),), strategy=None):
    job = Job(Request(prompt, strategy or Quiet(), rules, stops))
    return job, job.branches[0]


# ── opening ──────────────────────────────────────────────────────────────────────────────────────
def test_a_new_job_has_one_branch_at_its_prompt():
    job, root = job_of()
    assert (root.settled.tokens(), root.prompt, root.written, root.tokens) == ([7, 8], 2, 0, [])
    assert root.states == (((7, 8), ()),) and root.watch == (None, 0)
    assert job.usage.prompt == 2 and job.live == [root] and not job.ready


def test_the_strategy_opens_the_job():
    job, _ = job_of(strategy=Quiet(lambda job: [Fork(job.branches[0], choice=1)]))
    assert [(b.number, b.choice) for b in job.branches] == [(0, 0), (1, 1)]
    assert job.trace == [Record(0, "fork", 1, 0)]


def test_a_text_is_at_hand_only_where_a_rule_looks_at_it():
    _, root = job_of()
    assert root.history is None
    _, root = job_of(rules=(Seen(), Seen(recalls=True)))
    assert (root.history.everything, root.history.prompt) == ([7, 8], 2)


# ── extend and fork ──────────────────────────────────────────────────────────────────────────────
def test_extend_writes_the_token_and_all_that_follows_from_it():
    job, root = job_of()
    job.apply([Extend(root, fact(3, -1.5, -0.25)), Extend(root, fact(4, -2.0, -1.0))])
    assert root.tokens == [3, 4] and root.written == 2
    assert root.facts == [fact(3, -1.5, -0.25), fact(4, -2.0, -1.0)]
    assert (root.logprob, root.score) == (-3.5, -1.25)
    assert root.states[0] == ((7, 8), tuple(root.facts)) and root.watch == (None, 2)
    assert job.trace == [Record(1, "extend", 0, None, 3, -1.5, -0.25),
                         Record(1, "extend", 0, None, 4, -2.0, -1.0)]


def test_a_fork_leaves_its_parent_as_it_was():
    job, root = job_of()
    job.apply([Extend(root, fact(1))])
    before = replace(root)
    job.apply([Fork(root, fact(2)), Fork(root, fact(3), choice=5), Fork(root)])
    one, other, plain = job.branches[1:]
    assert (one.tokens, other.tokens, plain.tokens) == ([1, 2], [1, 3], [1])
    assert (one.choice, other.choice, plain.choice) == (0, 5, 0)
    assert [b.number for b in job.branches] == [0, 1, 2, 3]
    assert one.settled.parent is root.settled
    assert (root.settled, root.states, root.watch, root.score) == (
        before.settled, before.states, before.watch, before.score)
    assert (one.score, plain.score) == (-1.0, -0.5)
    assert [r.parent for r in job.trace[-3:]] == [0, 0, 0]


def test_a_fork_takes_no_draft_with_it():
    job, root = job_of()
    job.apply([Draft(root, (1, 2))])
    job.apply([Fork(root, fact(1))])
    assert job.branches[1].draft == () and root.draft == (1, 2)
    assert (job.usage.drafted, job.usage.accepted, job.usage.rejected) == (2, 0, 0)


def test_edits_are_decided_on_one_snapshot():
    """The strategy's generator runs to its end before anything is applied."""
    seen = []

    def decide(job, slots):
        for branch in job.live:
            yield Fork(branch, fact(1))
            seen.append(len(job.branches))
            yield Drop(branch, "continued")
            seen.append(len(job.branches))

    job, root = job_of(strategy=Quiet(then=[decide]))
    job.slots[root] = [Slot(fact(1))]
    assert job.ready
    job.decide()
    assert seen == [1, 1] and job.slots == {}
    assert [b.tokens for b in job.branches] == [[1]]


# ── stops ────────────────────────────────────────────────────────────────────────────────────────
def test_the_token_that_ends_a_text_is_part_of_it():
    job, root = job_of()
    job.apply([Extend(root, fact(END))])
    assert root.ended == Ended("stop", END) and root.tokens == [END]
    assert job.live == [] and job.trace[-1].reason == "stop"


def test_nothing_is_written_behind_a_stop():
    """A draft of five that was accepted whole, with the end in its middle."""
    job, root = job_of()
    job.apply([Draft(root, (1, 2, END, 4, 5))])
    job.apply([Extend(root, fact(t)) for t in (1, 2, END, 4, 5, 6)])
    assert root.tokens == [1, 2, END] and root.ended == Ended("stop", END)
    usage = job.usage
    assert (usage.drafted, usage.accepted, usage.rejected) == (5, 3, 2)
    assert root.draft == () and root.score == -1.5
    assert [r.token for r in job.trace] == [1, 2, END]
    job.apply([Draft(root, (1, 2))])
    assert root.draft == () and usage.drafted == 5


def test_a_text_that_ended_is_not_continued_by_a_fork():
    job, root = job_of()
    job.apply([Extend(root, fact(END)), Fork(root, fact(1)), Fork(root)])
    assert job.branches == [root] and root.tokens == [END]


@pytest.mark.parametrize("order", [0, 1])
def test_a_stop_outranks_a_length(order):
    stops = (EndTokens((END,)), MaxNew(1))
    job, root = job_of(stops=stops if order else stops[::-1])
    job.apply([Extend(root, fact(END))])
    assert root.ended == Ended("stop", END)


def test_of_several_stops_the_first_asked_names_the_reason():
    job, root = job_of(stops=(Counted(2), Counted(2, "stop"), EndTokens((END,))))
    job.apply([Extend(root, fact(1)), Extend(root, fact(END))])
    assert root.ended.which == "counted 2"


def test_every_stop_sees_every_token():
    """Also those asked after one that ends the text: their states stay in step."""
    job, root = job_of(stops=(Counted(1, "length"), Counted()))
    job.apply([Extend(root, fact(1))])
    assert root.watch == (1, 1) and root.ended.reason == "length"


def test_ends_says_it_and_leaves_the_branch_untouched():
    job, root = job_of()
    job.apply([Draft(root, (1, 2))])
    trace, usage = list(job.trace), job.usage.json()
    before = {name: getattr(root, name) for name in root.__slots__}
    assert job.ends(root, fact(END)) == Ended("stop", END)
    assert job.ends(root, fact(1)) is None
    assert {name: getattr(root, name) for name in root.__slots__} == before
    assert (job.trace, job.usage.json(), job.branches) == (trace, usage, [root])


def test_end_ends_the_living_and_only_them():
    job, root = job_of()
    job.apply([Fork(root, fact(END)), Fork(root, fact(1))])
    done, other = job.branches[1:]
    job.apply([Draft(root, (1, 2))])
    job.slots[root] = [Slot(fact(1))]
    job.end(Ended("cancelled"))
    assert [b.ended.reason for b in (root, done, other)] == ["cancelled", "stop", "cancelled"]
    assert job.slots == {} and job.usage.rejected == 2
    assert [(r.edit, r.branch, r.reason) for r in job.trace[-2:]] == [
        ("end", 0, "cancelled"), ("end", 2, "cancelled")]


# ── drafts ───────────────────────────────────────────────────────────────────────────────────────
def test_a_draft_that_begins_with_the_token_moves_up():
    job, root = job_of()
    job.apply([Draft(root, (1, 2, 3))])
    assert root.parents == (-1, 0, 1) and root.path(2) == [1, 2]
    job.apply([Extend(root, fact(1))])
    assert (root.draft, root.parents) == ((2, 3), (-1, 0))
    job.apply([Extend(root, fact(7))])
    assert (root.draft, root.parents) == ((), ())
    assert (job.usage.drafted, job.usage.accepted, job.usage.rejected) == (3, 1, 2)


def test_a_second_draft_replaces_the_first():
    job, root = job_of()
    job.apply([Draft(root, (1, 2, 3)), Draft(root, (4,), (-1,), "block")])
    assert (root.draft, root.parents, root.tail) == ((4,), (-1,), "block")
    assert (job.usage.drafted, job.usage.rejected) == (4, 3)


def test_the_path_to_a_slot_follows_the_parents():
    job, root = job_of()
    job.apply([Draft(root, (1, 2, 3, 4), (-1, 0, 0, 2))])
    assert [root.path(i) for i in range(5)] == [[], [1], [1, 2], [1, 3], [1, 3, 4]]


def test_a_dropped_draft_counts_as_rejected():
    job, root = job_of()
    job.apply([Fork(root, fact(1)), Draft(root, (1, 2, 3))])
    job.apply([Drop(root, "outranked")])
    assert job.usage.rejected == 3 and job.branches[0].tokens == [1]


# ── drop ─────────────────────────────────────────────────────────────────────────────────────────
def test_the_trace_names_every_drop_s_reason():
    job, root = job_of()
    job.apply([Fork(root, fact(1)), Fork(root, fact(END))])
    job.apply([Drop(root, "continued by its best tokens")])
    job.apply([Drop(job.branches[1], "rank below 1 of the finished")])
    assert [(r.step, r.branch, r.reason) for r in job.trace if r.edit == "drop"] == [
        (2, 0, "continued by its best tokens"), (3, 2, "rank below 1 of the finished")]
    assert [b.tokens for b in job.branches] == [[1]]


# ── replace ──────────────────────────────────────────────────────────────────────────────────────
def test_replace_keeps_the_facts_and_folds_the_states_afresh():
    job, root = job_of()
    job.apply([Extend(root, fact(1, -2.0, -1.0)), Extend(root, fact(2))])
    written = tuple(root.facts)
    job.apply([Draft(root, (3,))])
    job.apply([Replace(root, (5, 5, 5), written)])
    assert root.settled.tokens() == [5, 5, 5, 1, 2] and root.prompt == 3
    assert root.facts == list(written) and root.tokens == [1, 2]
    assert (root.logprob, root.score) == (-3.0, -1.5)
    assert root.states == (((5, 5, 5), written),) and root.watch == (None, 2)
    assert root.replaced == 1 and root.draft == () and job.usage.rejected == 1
    assert job.trace[-1].edit == "replace"


def test_replace_is_the_same_as_having_written_it():
    job, root = job_of()
    job.apply([Replace(root, (1,), (fact(2, -3.0), fact(3)))])
    plain, straight = job_of(prompt=(1,))
    plain.apply([Extend(straight, fact(2, -3.0)), Extend(straight, fact(3))])
    for name in ("prompt", "logprob", "score", "states", "watch", "ended", "tokens", "facts"):
        assert getattr(root, name) == getattr(straight, name), name


def test_replace_cuts_at_a_stop_and_can_bring_a_text_back_to_life():
    job, root = job_of()
    job.apply([Extend(root, fact(END))])
    job.apply([Replace(root, (7,), (fact(1),))])
    assert root.ended is None and job.live == [root]
    job.apply([Replace(root, (7,), (fact(1), fact(END), fact(2)))])
    assert root.tokens == [1, END] and root.ended == Ended("stop", END)
    assert root.replaced == 2


def test_a_fork_may_have_a_draft_that_it_does_not_write_yet():
    job, root = job_of()
    job.apply([Fork(root, fact(3), draft=(4, 5)), Fork(root, draft=(6,)),
               Fork(root, fact(END), draft=(4,))])
    _, one, two, over = job.branches
    assert (one.tokens, one.draft, one.parents) == ([3], (4, 5), (-1, 0))
    assert (two.tokens, two.draft) == ([], (6,)) and root.draft == ()
    assert over.ended is not None and over.draft == ()
    job.apply([Extend(two, fact(6)), Drop(one)])
    assert (job.usage.drafted, job.usage.accepted, job.usage.rejected) == (3, 1, 2)


# ── invariants over random edits ─────────────────────────────────────────────────────────────────
def random_edit(draw, job):
    branch = draw.choice(job.branches)
    token = draw.choice([0, 1, 2, 3, END])
    kind = draw.choice("eeeeddfxr")
    if kind == "e":
        pick = branch.draft[0] if branch.draft and draw.random() < 0.7 else token
        return Extend(branch, fact(pick, -draw.random(), -draw.random()))
    if kind == "d":
        return Draft(branch, tuple(draw.randrange(4) for _ in range(draw.randint(0, 5))))
    if kind == "f":
        return Fork(branch, fact(token) if draw.random() < 0.7 else None)
    if kind == "r":
        return Replace(branch, (1, 2), tuple(branch.facts[:draw.randint(0, 3)]))
    return Drop(branch, "by chance") if len(job.branches) > 1 else Fork(branch, choice=1)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9))
def test_counts_and_sums_hold_after_any_edits(seed):
    draw = random.Random(seed)
    job, _ = job_of(rules=(Seen(recalls=True),))
    for _ in range(draw.randint(1, 40)):
        job.apply([random_edit(draw, job)])
        usage = job.usage
        pending = sum(len(b.draft) for b in job.branches)
        assert usage.drafted == usage.accepted + usage.rejected + pending
        assert len({b.number for b in job.branches}) == len(job.branches)
        for b in job.branches:
            assert b.settled.length == b.prompt + b.written
            assert b.history.everything == b.settled.tokens() and b.history.prompt == b.prompt
            assert b.logprob == pytest.approx(sum(f.logprob for f in b.facts))
            assert b.score == pytest.approx(sum(f.processed for f in b.facts))
            assert b.states[0][1] == tuple(b.facts) and b.watch[1] == b.written
            assert END not in b.tokens[:-1]
    reasons = [r.reason for r in job.trace if r.edit == "drop"]
    assert reasons == ["by chance"] * len(reasons)
