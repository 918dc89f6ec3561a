"""Votes are weighed, and sums of tiny probabilities compared."""
from math import exp, inf, log

import pytest
from searches_zoo import job_of

from unspool.strategies import Sample
from unspool.strategies.vote import Ballot, elected, log_sum


def ballots(*votes):
    job = job_of(Sample(len(votes)))
    return [Ballot(b, *vote) for b, vote in zip(job.branches, votes, strict=True)]


def test_weights_are_summed_for_each_answer_and_the_greatest_merit_stands_for_it():
    votes = ballots(("a", 1.0, 0.5), ("b", 1.5, 0.0), ("a", 1.0, 0.7), (None, 9.0, 9.0))
    assert [(b.choice, share) for b, share in elected(votes)] == [(2, 2 / 3.5), (1, 1.5 / 3.5)]


def test_an_answer_may_be_anything_that_can_be_hashed():
    votes = ballots((0, 1.0, 0.0), ((), 1.0, 0.0), ("", 1.0, 0.0))
    assert [b.choice for b, _ in elected(votes)] == [0, 1, 2]


def test_nobody_votes():
    assert elected(ballots((None, 1.0, 1.0))) == []
    assert [share for _, share in elected(ballots(("a", 0.0, 1.0)))] == [0.0]


def test_log_sum():
    assert log_sum([log(0.25), log(0.5)]) == pytest.approx(log(0.75))
    assert log_sum([-1000.0, -1000.0]) == pytest.approx(-1000 + log(2))
    assert log_sum([-inf]) == -inf and exp(log_sum([-inf, -inf])) == 0
