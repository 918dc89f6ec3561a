"""Sampling by hand-written slots: one token a step, more while a draft agrees, n by choice."""
from unspool.core.edits import Draft, Extend, Fork
from unspool.core.job import Job
from unspool.core.prefix import Candidate
from unspool.core.request import Request
from unspool.core.slot import Slot
from unspool.stops.tokens import EndTokens
from unspool.strategies import Sample

END = 9


def fact(token, raw=-1.0, processed=-0.5):
    return Candidate(token, raw, processed, 1, -0.25)


def slot(pick, drafted=None):
    return Slot(fact(pick), None if drafted is None else fact(drafted))


def job_of(strategy=None, draft=()):
    job = Job(Request((7,), strategy or Sample(), stops=(EndTokens({END}),)))
    if draft:
        job.apply([Draft(job.branches[0], draft)])
    return job


def test_a_step_writes_the_pick():
    job = job_of()
    [branch] = job.branches
    assert list(Sample().decide(job, {branch: [slot(3)]})) == [Extend(branch, fact(3))]


def test_a_draft_is_followed_while_the_picks_agree():
    job = job_of(draft=(1, 2, 3))
    [branch] = job.branches
    slots = {branch: [slot(1, 1), slot(2, 2), slot(5, 3), slot(8)]}
    edits = list(job.strategy.decide(job, slots))
    assert [e.candidate.token for e in edits] == [1, 2, 5]  # 8 stands behind a wrong guess
    job.apply(edits)
    assert branch.tokens == [1, 2, 5] and branch.draft == ()
    assert (job.usage.accepted, job.usage.rejected) == (2, 1)


def test_a_draft_that_is_right_throughout_gives_one_token_more():
    job = job_of(draft=(1, 2))
    [branch] = job.branches
    job.slots[branch] = [slot(1, 1), slot(2, 2), slot(8)]
    job.decide()
    assert branch.tokens == [1, 2, 8]


def test_an_end_inside_the_draft_ends_the_text_there():
    job = job_of(draft=(1, END, 3))
    [branch] = job.branches
    job.slots[branch] = [slot(1, 1), slot(END, END), slot(3, 3), slot(4)]
    job.decide()
    assert branch.tokens == [1, END] and branch.ended.which == END and job.usage.rejected == 1


def test_fewer_slots_than_the_draft_has_tokens_are_used_as_far_as_they_go():
    job = job_of(draft=(1, 2, 3))
    [branch] = job.branches
    job.slots[branch] = [slot(1, 1), slot(2, 2)]
    job.decide()
    assert branch.tokens == [1, 2] and branch.draft == (3,)


def test_n_texts_are_forked_at_the_start_by_choice():
    job = job_of(Sample(3))
    assert [(b.choice, b.tokens) for b in job.branches] == [(0, []), (1, []), (2, [])]
    job = job_of(Sample(1))
    assert list(Sample(1).open(job)) == []
    assert list(Sample(2).open(job)) == [Fork(job.branches[0], choice=1)]


def test_each_text_follows_its_own_slots_and_the_finished_are_left_alone():
    job = job_of(Sample(2))
    one, two = job.branches
    job.slots = {one: [slot(END)], two: [slot(1)]}
    job.decide()
    assert job.live == [two]
    job.slots = {two: [slot(2)]}
    job.decide()
    assert (one.tokens, two.tokens) == ([END], [1, 2])


def test_answers_come_by_choice_with_their_sums():
    job = job_of(Sample(3))
    job.branches.reverse()
    job.apply([Extend(b, fact(1, -3.0, -float(b.choice))) for b in job.branches])
    ranked = job.strategy.ranked(job)
    assert [(b.choice, score) for b, score in ranked] == [(0, 0.0), (1, -1.0), (2, -2.0)]
    assert not job.strategy.searching


def test_in_the_middle_of_a_program_only_those_that_are_missing_fork_from_the_living():
    job = job_of(Sample(3))
    for branch in job.branches[:2]:
        job.apply([Extend(branch, fact(END if branch.choice else 1))])
    forks = list(Sample(7).open(job))
    assert [(f.branch.choice, f.choice) for f in forks] == [(2, 3), (0, 4), (2, 5), (0, 6)]
    assert list(Sample(2).open(job)) == []
    job.apply([Extend(b, fact(END)) for b in job.live])
    assert list(Sample(7).open(job)) == []  # nothing lives that could go on
