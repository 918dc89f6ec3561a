"""Decides what a job may show: which tokens are final, which only lead for now."""
from __future__ import annotations

from typing import TYPE_CHECKING

from unspool.core.branch import Branch
from unspool.core.events import Commit, Event, Provisional, Revoke
from unspool.core.prefix import Candidate, shared

if TYPE_CHECKING:
    from unspool.core.job import Job


class Shown:
    """What was shown so far: how many tokens of each choice are final, and the provisional ones."""

    def __init__(self) -> None:
        self.final: dict[int, int] = {}
        self.lead: tuple[Candidate, ...] = ()
        self.leader: Branch | None = None  # it stays the one as long as it lives

    def update(self, job: Job) -> list[Event]:
        if not job.competing:
            return [e for b in job.branches for e in (
                self.commit(b.choice, b, b.written) if b.choice else self.follow(b, b.written))]
        if job.live:
            leader = self.leader if self.leader in job.live else max(
                job.live, key=lambda b: b.score)
            self.leader = leader
            final = min(shared(leader.settled, b.settled) for b in job.branches)
            return self.follow(leader, final - leader.prompt)
        answers = [branch for branch, _ in job.strategy.ranked(job)]
        out = self.follow(answers[0], answers[0].written) if answers else self.take_back(0)
        return out + [e for i, b in enumerate(answers[1:], 1)
                      for e in self.commit(i, b, b.written)]

    def follow(self, leader: Branch, final: int) -> list[Event]:
        """Show the path that leads: take back what left it, commit its first `final` written
        tokens, show the rest.

        Who listens keeps two lists: a commit moves the first provisional tokens over, if there
        are any; a revoke shortens the provisional ones from their end.
        """
        start = self.final.get(0, 0)
        path = tuple(leader.settled.facts(leader.written - start))
        # By what a listener sees of a token; what else it carries may be arrays.
        same = next((i for i, (a, b) in enumerate(zip(self.lead, path, strict=False))
                     if a[:5] != b[:5]), min(len(self.lead), len(path)))
        events = self.take_back(same)
        moved = max(final - start, 0)
        events += self.commit(0, leader, start + moved)
        fresh = path[max(moved, same):]
        self.lead = path[moved:]
        return [*events, Provisional(0, fresh)] if fresh else events

    def commit(self, choice: int, branch: Branch, upto: int) -> list[Event]:
        fresh = upto - self.final.get(choice, 0)
        if fresh <= 0:
            return []
        self.final[choice] = upto
        return [Commit(choice, tuple(branch.settled.at(branch.prompt + upto).facts(fresh)))]

    def take_back(self, keep: int) -> list[Event]:
        lost, self.lead = len(self.lead) - keep, self.lead[:keep]
        return [Revoke(0, lost)] if lost > 0 else []
