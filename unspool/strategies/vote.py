"""Texts vote for the answer that they give. Knows no texts: an answer is what can be counted."""
from __future__ import annotations

from collections.abc import Hashable, Iterable
from math import exp, fsum, inf, log
from typing import NamedTuple

from unspool.core.branch import Branch


class Ballot(NamedTuple):
    """A text's vote. `answer`: None: it does not vote. `merit`: of texts with one answer the
    greatest stands for it."""

    branch: Branch
    answer: Hashable | None
    weight: float
    merit: float


def elected(ballots: Iterable[Ballot]) -> list[tuple[Branch, float]]:
    """The text that stands for each answer, with its share of all weights; the most first.

    Of answers with equal weight the one whose texts have the greater summed probability is first,
    then the one given first.
    """
    given: dict[Hashable, list[Ballot]] = {}
    for ballot in ballots:
        if ballot.answer is not None:
            given.setdefault(ballot.answer, []).append(ballot)
    weights = {answer: fsum(b.weight for b in same) for answer, same in given.items()}
    cast = fsum(weights.values())
    best = sorted(given, reverse=True, key=lambda answer: (
        weights[answer], log_sum([b.branch.logprob for b in given[answer]])))
    return [(max(given[answer], key=lambda b: b.merit).branch,
             weights[answer] / cast if cast else 0.0) for answer in best]


def log_sum(logs: list[float]) -> float:
    """The log of the summed exp, which texts of any length have."""
    most = max(logs)
    return most if most == -inf else most + log(fsum(exp(x - most) for x in logs))
