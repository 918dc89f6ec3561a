"""Best-first search in the tree of texts: the most promising leaf is continued, wherever it stands.

By log-probability this is uniform-cost search (Dijkstra 1959): no text can become likelier as it
grows, so what ends first is the likeliest of all that the branching reaches.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from unspool.core.branch import Branch
from unspool.core.edits import Drop, Edit, Extend, Fork
from unspool.core.job import Job
from unspool.core.slot import Reading
from unspool.core.sockets import Reward, Slots
from unspool.strategies import checks
from unspool.strategies.memo import each

SPENT = "expansions"  # how many were made, of a job


@dataclass(frozen=True, slots=True)
class TreeSearch:
    """At each step the `width` best leaves are continued by their `branching` likeliest tokens;
    the other leaves wait.

    `value`: what texts are ranked by, while they grow and at their end, and their score; None: the
    summed log-probability after the rules. It ends when `n` finished texts rank no lower than any
    leaf. After `budget` continuations as many of the best leaves as finished texts are missing
    are written to their ends, each by its likeliest token, and what is finished stays. Of equal
    texts the earlier one is first.
    """

    width: int = 1
    branching: int = 4
    budget: int = 256
    value: Reward | None = None
    n: int = 1
    searching: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.whole(1, width=self.width, branching=self.branching, n=self.n)
        checks.whole(0, budget=self.budget)

    @property
    def reads(self) -> Reading:
        return Reading(top=self.branching, pick=False)

    def open(self, job: Job) -> Iterable[Edit]:
        return ()

    def decide(self, job: Job, slots: Slots) -> Iterable[Edit]:
        values = self.values(job)
        order = sorted(values, key=lambda b: -values[b])
        leaves, found = [b for b in order if b.ended is None], [b for b in order if b.ended]
        over = self.over(leaves, found, values)
        yield from (Drop(b, f"rank below {self.n} of the finished") for b in found[self.n:])
        yield from (Drop(b, "cannot outrank the finished") for b in leaves if b in over)
        leaves = [b for b in leaves if b not in over]
        room = min(self.width, self.budget - job.kept.get(SPENT, 0))
        if room > 0:
            yield from self.expand(job, leaves[:room], slots)
        else:
            missing = max(self.n - len(found), 0)
            yield from (Extend(b, slots[b][0].top[0]) for b in leaves[:missing])
            yield from (Drop(b, f"the budget of {self.budget} continuations is spent")
                        for b in leaves[missing:])

    def over(self, leaves: list[Branch], found: list[Branch], values: dict[Branch, float]
             ) -> set[Branch]:
        """The leaves that need not be continued any more."""
        if len(found) < self.n:
            return set()
        least = values[found[self.n - 1]]
        lower = {b for b in leaves if values[b] <= least}
        # A value of one's own may rise again, so while one leaf goes on all may.
        return lower if self.value is None or len(lower) == len(leaves) else set()

    def expand(self, job: Job, leaves: list[Branch], slots: Slots) -> Iterable[Edit]:
        job.kept[SPENT] = job.kept.get(SPENT, 0) + len(leaves)
        for leaf in leaves:
            yield from (Fork(leaf, c) for c in slots[leaf][0].top[:self.branching])
            yield Drop(leaf, "continued by its likeliest tokens")

    def values(self, job: Job) -> dict[Branch, float]:
        texts = job.branches
        ranks = [b.score for b in texts] if self.value is None else each(
            job, "values", texts, self.value.rewards)
        return dict(zip(texts, ranks, strict=True))

    def ranked(self, job: Job) -> list[tuple[Branch, float]]:
        """What was not finished comes last."""
        values = self.values(job)
        return sorted(values.items(), key=lambda v: (not finished(v[0]), -v[1]))[:self.n]


def finished(branch: Branch) -> bool:
    return branch.ended is not None and branch.ended.reason not in ("cancelled", "error")
