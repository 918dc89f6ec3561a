"""What is written down of a job: a line for each edit, and counts of the work."""
from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import NamedTuple


class Record(NamedTuple):
    """One line of the trace: at `step`, `edit` was applied to `branch` (made from `parent`)."""

    step: int
    edit: str
    branch: int
    parent: int | None = None
    token: int | None = None
    logprob: float | None = None
    processed: float | None = None
    reason: str | None = None


@dataclass(slots=True)
class Usage:
    """Counts of one job, in tokens unless said. `cached`: prompt tokens that memory knew;
    `computed`: tokens that went through the model; `forwards`: passes it took part in."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    computed: int = 0
    forwards: int = 0
    drafted: int = 0
    accepted: int = 0
    rejected: int = 0
    preempted: int = 0
    evicted: int = 0

    def json(self) -> dict[str, int]:
        return asdict(self)
