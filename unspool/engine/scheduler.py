"""The scheduler: who takes part in the next forward, within a number of rows and tokens.

Branches that go on come before prompts that begin, so a long prompt never stops a text in mid
flow for longer than one chunk. It admits branches, not jobs; finished slots wait in the job.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from unspool.core.branch import Branch
from unspool.core.job import Job
from unspool.engine.runner import Runner, Turn
from unspool.engine.voices import turns_of


@dataclass(frozen=True, slots=True)
class Scheduler:
    """`rows`: most texts in one forward; `chunk`: most prompt tokens in one forward."""

    rows: int = 64
    chunk: int = 512

    def admit(self, jobs: Sequence[Job], runner: Runner) -> list[Turn]:
        waiting = [(job, group) for job in jobs for group in groups(job)]
        waiting.sort(key=lambda w: (w[1][0].written == 0, w[1][0] not in runner.held))
        turns: list[Turn] = []
        room = self.chunk
        for job, group in waiting:
            if len(turns) >= self.rows or (room <= 0 and group[0].written == 0):
                break
            try:
                more = turns_of(runner, job, group, max(room, len(group[0].draft) + 1))
            except Exception as error:  # a job's fault is its own
                job.error = error
                continue
            room -= sum(turn.upto - turn.start for turn in more)
            turns += more
        return turns


def groups(job: Job) -> Iterator[list[Branch]]:
    """Live branches without slots, those at the same place with the same draft together."""
    places: dict[tuple[int, tuple[int, ...]], list[Branch]] = {}
    if job.error is None:
        for branch in job.live:
            if branch not in job.slots:
                places.setdefault((id(branch.settled), branch.draft), []).append(branch)
    yield from places.values()
