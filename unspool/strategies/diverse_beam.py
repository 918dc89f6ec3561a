"""Diverse beams: groups that search one after another, each kept off the tokens that those before
it chose at the same step. Vijayakumar and others, arXiv:1610.02424, with the Hamming penalty.
"""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from unspool.core.branch import Branch
from unspool.core.edits import Drop, Edit, Fork
from unspool.core.errors import ParameterError
from unspool.core.job import Job
from unspool.core.slot import Reading
from unspool.core.sockets import Slots
from unspool.strategies.beam import Beam, Grown, finished, left, plain, reading
from unspool.strategies.checks import whole, within


@dataclass(frozen=True, slots=True)
class DiverseBeam(Beam):
    """`groups` beam searches of `width` / `groups` branches each; a branch's choice is the number
    of its group. One group is `Beam`.

    A continuation is chosen by its score less `penalty` for each text of an earlier group that was
    given its token in this step; in transformers one that ends with it does not count. The scores
    stay true log-probabilities; transformers has the penalty in them. A text that ended belongs to
    its group, one that had ended before the search began to the first. Two groups may find the same
    text: it is one answer.
    """

    groups: int = field(kw_only=True)
    penalty: float = field(kw_only=True)

    def __post_init__(self) -> None:
        Beam.__post_init__(self)
        whole(1, groups=self.groups)
        within(0, math.inf, penalty=self.penalty)
        if self.width % self.groups:
            raise ParameterError(f"groups={self.groups} with width={self.width}: each group has as "
                                 "many branches; give a divisor of the width", "groups")

    @property
    def lane(self) -> Beam:
        """The search of one group."""
        return plain(self, width=self.width // self.groups, n=-(-self.n // self.groups))

    @property
    def reads(self) -> Reading:
        """Earlier groups rank down no more tokens than they have branches, besides ends of texts.
        """
        lane = self.lane
        return reading(lane, more=self.width - lane.width)

    def decide(self, job: Job, slots: Slots) -> Iterable[Edit]:
        lane, live, old = self.lane, job.live, finished(job)
        first = all(b.written == b.since for b in live)
        chosen: Counter[int] = Counter()
        forks: list[Fork] = []
        lost: list[Drop] = []
        whys: dict[Branch, str] = {}
        for group in range(self.groups):
            mine = [b for b in live if first or b.choice == group]
            grown = [g for b in mine for g in lane.children(b, slots[b][0])]
            kept, ended = lane.select(job, self.ordered(grown, chosen))
            found, given_up, why = lane.turn([b for b in old if group_of(b) == group], kept, ended)
            lost += given_up
            whys |= dict.fromkeys(mine, why)
            forks += [replace(fork, choice=group) for fork in found]
            chosen.update(f.candidate.token for f in found if f.candidate)
        return [*forks, *(drop for b in live for drop in left([b], forks, whys[b])), *lost]

    def ordered(self, grown: Iterable[Grown], chosen: Counter[int]) -> list[Grown]:
        return sorted(grown, key=lambda g: -(g.score - self.penalty * chosen[g.candidate.token]))

    def ranked(self, job: Job) -> list[tuple[Branch, float]]:
        texts: dict[tuple[int, ...], tuple[Branch, float]] = {}
        for branch, score in self.every(job):
            texts.setdefault(tuple(branch.settled.tokens()), (branch, score))
        return list(texts.values())[:self.n]


def group_of(branch: Branch) -> int:
    return branch.choice if branch.written > branch.since else 0
