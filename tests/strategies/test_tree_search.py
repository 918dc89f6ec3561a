"""Best-first search, against an enumeration of all texts of a small tree."""
import pytest
from searches_zoo import (
    END,
    VOCAB,
    Length,
    answers,
    decide,
    every_text,
    fact,
    greedy,
    job_of,
    program,
    reasons,
    run,
    slot,
    texts,
)

from unspool.core.branch import Ended
from unspool.core.errors import ParameterError
from unspool.strategies import Sample, TreeSearch


@pytest.mark.parametrize("weights", range(4))
@pytest.mark.parametrize("width", [1, 5])
def test_the_first_that_end_are_the_likeliest_of_all_texts(weights, width):
    strategy = TreeSearch(width, branching=VOCAB, budget=10_000, n=4)
    got = answers(run(strategy, weights=weights, new=4))
    want = sorted(every_text(weights), reverse=True)[:4]
    assert [t for t, _ in got] == [t for _, t in want]
    assert [s for _, s in got] == pytest.approx([s for s, _ in want])


def test_it_continues_far_fewer_texts_than_there_are():
    job = run(TreeSearch(branching=VOCAB, budget=10_000), new=4)
    assert 4 <= job.kept["expansions"] < sum(7**i for i in range(4)) / 4


@pytest.mark.parametrize("budget", [0, 1, 2, 3])
def test_after_the_budget_the_best_leaves_are_finished_greedily(budget):
    job = run(TreeSearch(budget=budget, n=2), ends=(), new=4)
    found = texts(job)
    assert job.kept.get("expansions", 0) == budget
    assert len(found) == (1 if budget == 0 else 2) and {len(t) for t in found} == {4}
    if budget == 0:
        assert found == [greedy(new=4)]
    dropped = f"the budget of {budget} continuations is spent"
    assert (dropped in reasons(job)) == (budget > 0)


def test_leaves_wait_and_the_best_is_continued_wherever_it_stands():
    job = job_of(TreeSearch(branching=2))
    [root] = job.branches
    decide(job, {root: [slot(fact(1, -0.1), fact(2, -0.5), fact(3, -9.0))]})
    one, two = job.live
    decide(job, {one: [slot(fact(3, -1.0), fact(4, -2.0))], two: [slot(fact(5, -0.1))]})
    assert [b.tokens for b in job.live] == [[2], [1, 3], [1, 4]]
    assert list(job.slots) == [two]  # its slot is still there
    decide(job, {b: [slot(fact(6, -3.0))] for b in job.live if b is not two})
    assert [b.tokens for b in job.live] == [[1, 3], [1, 4], [2, 5]]
    assert reasons(job) == ["continued by its likeliest tokens"] * 3


def test_a_leaf_that_cannot_outrank_the_finished_is_dropped():
    job = job_of(TreeSearch(branching=4))
    [root] = job.branches
    decide(job, {root: [slot(fact(1, -0.1), fact(END, -1.0), fact(2, -1.0), fact(3, -2.0))]})
    decide(job, {b: [slot(fact(4, -0.2), fact(5, -3.0))] for b in job.live})
    assert [b.tokens for b in job.branches] == [[END], [1, 4], [1, 5]]
    assert reasons(job).count("cannot outrank the finished") == 2
    decide(job, {b: [slot(fact(END, -0.1))] for b in job.live})
    assert [b.tokens for b in job.branches] == [[END], [1, 4, END]]
    decide(job, {})
    assert answers(job) == [([1, 4, END], pytest.approx(-0.4))]


def test_a_value_of_ones_own_guides_and_ranks_and_each_text_is_judged_once():
    value = Length(lambda tokens: tokens.count(4))
    job = run(TreeSearch(branching=VOCAB, budget=200, value=value), ends=())
    assert answers(job) == [([4] * 5, 5.0)]
    texts(job)
    assert sum(value.asked) == 1 + job.born and len(value.asked) == job.kept["expansions"] + 1


def test_a_leaf_of_low_value_may_rise_while_another_goes_on():
    value = Length(lambda tokens: {(): 0, (1,): 1, (2,): 3, (END,): 2}.get(tuple(tokens), 2))
    job = job_of(TreeSearch(branching=3, value=value))
    [root] = job.branches
    decide(job, {root: [slot(fact(1), fact(2), fact(END))]})
    decide(job, {b: [slot(fact(5))] for b in job.live})
    assert [b.tokens for b in job.live] == [[1], [2, 5]]
    decide(job, {job.live[1]: [slot(fact(5))]})  # none is above 2 now
    assert answers(job) == [([END], 2.0)] and not job.live


def test_it_begins_with_all_texts_of_the_stage_before():
    job = run(program(Sample(3), TreeSearch(branching=VOCAB, n=3), 1, takes=3))
    heads = {b.tokens[0] for b in run(Sample(3), new=1).branches}
    assert {t[0] for t in texts(job)} <= heads and len(texts(job)) == 3


def test_what_was_cancelled_comes_after_what_has_ended():
    job = job_of(TreeSearch(n=2))
    [root] = job.branches
    decide(job, {root: [slot(fact(1, -0.1), fact(END, -1.0))]})
    job.end(Ended("cancelled"))
    assert texts(job) == [[END], [1]]


@pytest.mark.parametrize("how", [{"width": 0}, {"branching": 0}, {"budget": -1}, {"n": 0}])
def test_impossible_numbers_are_refused_by_name(how):
    with pytest.raises(ParameterError, match=f"{next(iter(how))}="):
        TreeSearch(**how)
