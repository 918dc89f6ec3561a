"""A judgment is asked for again only when a text has changed."""
from searches_zoo import fact, job_of

from unspool.core.branch import Ended
from unspool.core.edits import Extend
from unspool.strategies import Sample
from unspool.strategies.memo import each, together


class Judge:
    def __init__(self):
        self.calls = []

    def __call__(self, branches):
        self.calls.append([b.choice for b in branches])
        return [len(b.tokens) for b in branches]


def test_all_texts_are_judged_again_when_one_has_changed():
    job, judge = job_of(Sample(3)), Judge()
    assert [list(together(job, "x", job.branches, judge)) for _ in range(2)] == [[0, 0, 0]] * 2
    job.apply([Extend(job.branches[1], fact(3))])
    assert list(together(job, "x", job.branches, judge)) == [0, 1, 0]
    assert list(together(job, "y", job.branches, judge)) == [0, 1, 0]
    assert judge.calls == [[0, 1, 2]] * 3


def test_each_text_alone_is_judged_once_and_forgotten_with_it():
    job, judge = job_of(Sample(3)), Judge()
    job.apply([Extend(b, fact(b.choice)) for b in job.branches])
    assert each(job, "x", job.branches, judge) == [1, 1, 1]
    job.apply([Extend(job.branches[2], fact(3))])
    assert each(job, "x", job.branches[1:], judge) == [1, 2]
    assert judge.calls == [[0, 1, 2], [2]] and len(job.kept["x"]) == 2


def test_a_text_that_has_ended_is_another_one():
    job, judge = job_of(Sample(1)), Judge()
    each(job, "x", job.branches, judge)
    together(job, "y", job.branches, judge)
    job.end(Ended("cancelled"))
    each(job, "x", job.branches, judge)
    together(job, "y", job.branches, judge)
    assert judge.calls == [[0]] * 4
