"""Stochastic beam search: `width` different texts, a sample without replacement of all texts that
the model can write. Kool, van Hoof, Welling, arXiv:1903.06059.

Every text has its log-probability plus Gumbel noise of its own, and the largest such sums are the
sample. They are found from the root down: the value of a branch is the largest below it, so the
values of its children are drawn under the condition that theirs is just that.
"""
from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from unspool.core.branch import Branch
from unspool.core.edits import Drop, Edit, Fork
from unspool.core.job import Job
from unspool.core.prefix import Candidate
from unspool.core.slot import Reading
from unspool.core.sockets import Slots
from unspool.strategies.beam import finished, left, repeated
from unspool.strategies.checks import answers, whole


class Kept(NamedTuple):
    """`value`: log-probability plus noise. `dropped`: the largest value given up so far."""

    value: float
    dropped: float


@dataclass(frozen=True, slots=True)
class StochasticBeam:
    """`n`: so many of the texts are answers, those of the largest values (0: all). A text is ranked
    by its value; its log-probability is the true one. See `weights`.

    The first step's values are free, so that the root's is a Gumbel number too: with the paper's 0
    the sample is the same, but the weights would not be. Several texts at the start are one tree.
    One that had ended before the search began stands there with its log-probability, without noise.
    """

    width: int = 5
    n: int = 0
    searching: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole(1, width=self.width)
        answers(self.n or self.width, self.width)

    @property
    def reads(self) -> Reading:
        return Reading(perturbed=self.width + 1, pick=False)  # one more is the largest given up

    def open(self, job: Job) -> Iterable[Edit]:
        return repeated(job)

    def decide(self, job: Job, slots: Slots) -> Iterable[Edit]:
        live = job.live
        every: list[tuple[float, Branch, Candidate | None]] = [
            (value_of(b), b, None) for b in finished(job)]
        for branch in live:
            found = children(branch, slots[branch][0].perturbed)
            every += [(value, branch, c) for c, value in found]
        every.sort(key=lambda e: -e[0])
        best, rest = every[:self.width], every[self.width:]
        dropped = max([dropped_of(job), *(value for value, _, _ in rest[:1])])
        forks = [Fork(b, c, kept=Kept(value, dropped)) for value, b, c in best if c is not None]
        why = f"value below {self.width} others"
        return [*forks, *left(live, forks, why), *(Drop(b, why) for _, b, c in rest if c is None)]

    def ranked(self, job: Job) -> list[tuple[Branch, float]]:
        every = [(b, value_of(b)) for b in job.branches]
        return sorted(every, key=lambda e: -e[1])[:self.n or self.width]


def children(branch: Branch, perturbed: Iterable[tuple[Candidate, float]]
             ) -> list[tuple[Candidate, float]]:
    """The largest values of a branch's children, largest first."""
    free = [(c, branch.score + noisy) for c, noisy in perturbed]
    if branch.kept is None or not free:
        return free
    return [(c, under(value_of(branch), value, free[0][1])) for c, value in free]


def under(parent: float, value: float, largest: float) -> float:
    """A child's free value, given that the largest of its siblings' is the parent's: appendix B.3
    of the paper, in the form that loses no digits."""
    v = parent - value + log1mexp(value - largest)
    return parent - max(0.0, v) - math.log1p(math.exp(-abs(v)))


def log1mexp(x: float) -> float:
    """log(1 - exp(x)) for x <= 0."""
    if x == 0:
        return -math.inf
    return math.log(-math.expm1(x)) if x > -math.log(2) else math.log1p(-math.exp(x))


def value_of(branch: Branch) -> float:
    kept: Any = branch.kept
    return branch.score if kept is None else kept.value


def dropped_of(job: Job) -> float:
    """The largest value given up so far. Each live branch has a child of its own value, which
    lives on or ends; so the last step leaves a branch that knows."""
    notes: list[Any] = [b.kept for b in job.branches if b.kept is not None]
    return max((kept.dropped for kept in notes), default=-math.inf)


def weights(job: Job) -> list[tuple[float, float]]:
    """For each answer log p and log(p / q), where q is how likely it was to be in the sample:
    1 - exp(-exp(log p - k)), k the largest value that is not in it (equation 12 of the paper).

    The sum of f p / q over the answers of a finished search has the expectation sum of f p over all
    texts. p is the probability after the rules.
    """
    given = [b for b, _ in job.strategy.ranked(job)]
    rest = [value_of(b) for b in job.branches if b not in given]
    threshold = max([dropped_of(job), *rest])
    return [(b.score, b.score - log_chance(b.score - threshold)) for b in given]


def log_chance(gap: float) -> float:
    """log(1 - exp(-exp(gap)))"""
    return math.log(-math.expm1(-math.exp(gap))) if gap < 50 else 0.0
