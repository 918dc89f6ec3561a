"""Who takes part: going on before beginning, within rows and tokens; nobody waits for ever."""
import pytest
from models_zoo import tiny

from unspool.core.edits import Draft, Extend, Replace
from unspool.core.job import Job
from unspool.core.prefix import Candidate
from unspool.core.request import Request
from unspool.core.slot import Slot
from unspool.engine.runner import Runner
from unspool.engine.scheduler import Scheduler, groups
from unspool.memories import Dense
from unspool.strategies import Sample

MODEL = tiny(vocab_size=24)


def fact(token):
    return Candidate(token, -1.0, -1.0, 1, -1.0)


def job_of(length, n=1, first=0, **fields):
    return Job(Request(tuple((first + i) % 24 for i in range(length)), Sample(n), **fields))


def step(scheduler, jobs, runner):
    """Admit and read; branches whose slots came write one token each. The turns, by job."""
    turns = scheduler.admit(jobs, runner)
    if turns:
        runner.score(turns)
    for turn in turns:
        if turn.scored:
            turn.job.apply([Extend(b, fact(b.written % 5)) for b in turn.branches])
    return [(jobs.index(t.job), t.start, t.upto) for t in turns]


def test_branches_at_one_place_share_a_row_until_they_part():
    job = job_of(4, n=3)
    assert [len(g) for g in groups(job)] == [3]
    job.apply([Extend(job.branches[1], fact(1))])
    assert sorted(len(g) for g in groups(job)) == [1, 2]
    job.apply([Draft(job.branches[0], (1,))])
    assert sorted(len(g) for g in groups(job)) == [1, 1, 1]


def test_those_that_have_their_slots_wait():
    job = job_of(4, n=2)
    job.apply([Extend(job.branches[1], fact(1))])
    one, two = job.branches
    job.slots[one] = [Slot(fact(1))]
    assert list(groups(job)) == [[two]]
    job.error = ValueError()
    assert list(groups(job)) == []


def test_a_long_prompt_is_read_chunk_by_chunk_beside_those_that_go_on():
    runner, scheduler = Runner(MODEL, Dense()), Scheduler(chunk=8)
    short, long = job_of(3), job_of(20, first=5)
    jobs = [short]
    step(scheduler, jobs, runner)
    jobs.append(long)
    seen = [step(scheduler, jobs, runner) for _ in range(4)]
    assert seen == [
        [(0, 3, 4), (1, 0, 7)],
        [(0, 4, 5), (1, 7, 14)],
        [(0, 5, 6), (1, 14, 20)],
        [(0, 6, 7), (1, 20, 21)],
    ]


def test_a_forward_has_at_most_chunk_tokens_of_prompts():
    runner, scheduler = Runner(MODEL, Dense()), Scheduler(chunk=10)
    jobs = [job_of(n, first=n) for n in (7, 9, 25, 1)]
    while any(job.branches[0].written < 2 for job in jobs):
        turns = step(scheduler, jobs, runner)
        assert turns and sum(upto - start for _, start, upto in turns) <= 10
    assert all(job.error is None for job in jobs)


def test_prompts_begin_in_the_order_they_came():
    runner, scheduler = Runner(MODEL, Dense()), Scheduler(chunk=10)
    jobs = [job_of(8, first=i) for i in range(4)]
    began = []
    for _ in range(5):
        began += [j for j, start, _ in step(scheduler, jobs, runner) if start == 0]
    assert began == [0, 1, 2, 3]


def test_texts_that_go_on_are_admitted_with_no_room_left():
    """A draft and the chunk together use it up; the others still get their one token."""
    runner, scheduler = Runner(MODEL, Dense()), Scheduler(chunk=8)
    jobs = [job_of(3, first=i) for i in range(6)]
    for _ in range(4):
        step(scheduler, jobs, runner)
    assert all(job.branches[0].written for job in jobs)
    jobs[0].apply([Draft(jobs[0].branches[0], (1, 2, 3, 4, 5, 6))])
    turns = step(scheduler, jobs, runner)
    assert sorted(j for j, _, _ in turns) == list(range(6))
    assert [upto - start for j, start, upto in turns if j == 0] == [7]


def test_a_prompt_that_begins_anew_stops_no_other():
    """Of two long texts half read, one used the chunk up: the text behind them still goes on."""
    runner, scheduler = Runner(MODEL, Dense()), Scheduler(chunk=8)
    jobs = [job_of(3, first=i) for i in range(3)]
    step(scheduler, jobs, runner)
    step(scheduler, jobs, runner)
    for job in jobs[:2]:
        job.apply([Replace(job.branches[0], tuple(range(9, 24)) * 3, ())])
    assert sorted(j for j, _, _ in step(scheduler, jobs, runner)) in ([0, 2], [1, 2])


def test_rows_are_limited_and_everybody_has_a_turn():
    runner, scheduler = Runner(MODEL, Dense()), Scheduler(rows=2)
    jobs = [job_of(3, n=5)]
    branches = jobs[0].branches
    jobs[0].apply([Extend(b, fact(b.choice)) for b in branches])
    served = []
    for _ in range(3):
        turns = scheduler.admit(jobs, runner)
        assert 0 < len(turns) <= 2
        for turn in turns:
            served += turn.branches
            jobs[0].slots.update({b: [Slot(fact(1))] for b in turn.branches})
    assert served == branches and jobs[0].ready
    assert scheduler.admit(jobs, runner) == []


@pytest.mark.parametrize("bad", [((1, 2), (-1, -1)), ((1,), None, "block")])
def test_a_branch_that_cannot_be_read_is_its_own_job_s_error(bad):
    runner, scheduler = Runner(MODEL, Dense()), Scheduler()
    jobs = [job_of(3), job_of(4)]
    jobs[0].apply([Draft(jobs[0].branches[0], *bad)])
    assert [t.job for t in scheduler.admit(jobs, runner)] == [jobs[1]]
    assert "not in this version" in str(jobs[0].error) and jobs[1].error is None
