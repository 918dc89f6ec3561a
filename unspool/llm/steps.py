"""One step at a time: the caller sees each distribution and may choose the token."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from unspool.core.edits import Extend
from unspool.core.errors import ParameterError
from unspool.core.job import Job
from unspool.engine.read import Row
from unspool.llm.distribution import Distribution, raw, shaped
from unspool.llm.facts import Facts
from unspool.llm.handle import Handle
from unspool.llm.results import Ranked


@dataclass(eq=False)
class Step:
    """The place of one token, before it is written.

    `id` is the token that will be written: the engine's pick, or what `choose` said. `prob` is
    its probability after the rules; `raw` and `dist` are the distributions before and after them.
    """

    index: int
    id: int
    row: Row = field(repr=False)
    facts: Facts = field(repr=False)
    text_so_far: str = ""
    forced: list[int] = field(default_factory=list)

    @cached_property
    def raw(self) -> Distribution:
        return Distribution(self.text_so_far, raw(self.row), self.facts)

    @cached_property
    def dist(self) -> Distribution:
        return Distribution(self.text_so_far, shaped(self.row), self.facts)

    @property
    def token(self) -> str:
        return self.facts.label(self.id)

    @property
    def prob(self) -> float:
        return self.dist.prob(self.id)

    @property
    def logprob(self) -> float:
        return self.raw.logprob(self.id)

    @property
    def entropy(self) -> float:
        """Bits, of the distribution after the rules."""
        return self.dist.entropy_bits

    def top(self, k: int = 10) -> list[Ranked]:
        return self.dist.top(k)

    def choose(self, token: str | int) -> None:
        """Write this instead of the pick; a text of several tokens takes as many steps."""
        if isinstance(token, str):
            ids = self.facts.needs_text("choosing by text").encode(
                token, specials=True, start=False)
        else:
            ids = self.facts.check([token])
        if not ids:
            raise ParameterError(f"choose({token!r}): an empty text is no token")
        self.id, *self.forced = ids


def steps(handle: Handle) -> Iterator[Step]:
    """Drive a held request. Leaving the loop early cancels it."""
    forced: list[int] = []
    index, text = 0, ""
    try:
        for event in handle:
            if event.type == "commit":
                text += event.text
            if event.type != "pause":
                continue
            job = handle.job
            assert job is not None, "a paused request has begun"
            step = at(job, index, handle.facts, text)
            pick = step.id
            if forced:
                step.choose(forced[0])
                step.forced = forced[1:]
            yield step
            forced, index = step.forced, index + 1
            let_go(handle, job, step, pick)
    finally:
        if not handle.done:
            handle.cancel()


def at(job: Job, index: int, facts: Facts, text: str) -> Step:
    slot = job.slots[job.live[0]][0]
    row: Any = slot.row
    return Step(index, slot.pick.token, row, facts, text)


def let_go(handle: Handle, job: Job, step: Step, pick: int) -> None:
    """The strategy's own decision when the pick stands, else the caller's token."""
    if step.id == pick:
        handle.worker.release(job)
    else:
        handle.worker.release(job, [Extend(job.live[0], step.row.candidate(step.id))])
