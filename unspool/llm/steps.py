"""One step at a time: the caller sees each distribution and may choose the token."""
from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from unspool.core.errors import ParameterError
from unspool.core.prefix import Candidate
from unspool.engine.row import Row
from unspool.engine.stages import Stages, stages
from unspool.llm.distribution import Distribution, raw, shaped
from unspool.llm.facts import Facts
from unspool.llm.handle import Handle, begin
from unspool.llm.results import Output, Ranked
from unspool.llm.why import Why
from unspool.rules import greedy


@dataclass(eq=False)
class Step:
    """The place of one token, before it is written.

    `id` is the token that will be written: the engine's pick, or what `choose` said. `raw` and
    `shaped` are the distributions before and after the rules; `dist` is the one to look at: the
    shaped one when tokens are drawn, the raw one when the likeliest is taken.
    """

    index: int
    id: int
    row: Row = field(repr=False)
    facts: Facts = field(repr=False)
    greedy: bool = False
    prompt: Any = None
    text_so_far: str = ""
    forced: list[int] = field(default_factory=list)
    written: bool = False

    @cached_property
    def raw(self) -> Distribution:
        return raw(self.before, self.row, self.facts)

    @cached_property
    def shaped(self) -> Distribution:
        return shaped(self.before, self.row, self.facts)

    @property
    def dist(self) -> Distribution:
        return self.raw if self.greedy else self.shaped

    @property
    def before(self) -> Any:
        """The whole text that stands before, when the prompt is one."""
        return self.prompt + self.text_so_far if isinstance(self.prompt, str) else self.prompt

    @property
    def token(self) -> str:
        return self.facts.text(self.id)

    @property
    def prob(self) -> float:
        """Of the token in `dist`."""
        return self.dist.prob(self.id)

    @property
    def logprob(self) -> float:
        """Of the token, raw."""
        return self.raw.logprob(self.id)

    @property
    def entropy(self) -> float:
        """Of `dist`, in bits."""
        return self.dist.entropy_bits

    def top(self, k: int = 10) -> list[Ranked]:
        return self.dist.top(k)

    @cached_property
    def stages(self) -> Stages:
        """What each rule does here, by order and by name."""
        return stages(self.row)

    def why(self) -> Why:
        """The record of the token as it is now: the pick, or what `choose` said."""
        return Why(self.index, self.candidate(record=True), self.facts)

    def candidate(self, record: bool) -> Candidate:
        """The token with its facts, and the row for a record."""
        found = self.row.candidate(self.id)
        return found._replace(row=self.row) if record else found

    def choose(self, token: str | int) -> None:
        """Write this instead of the pick; a text of several tokens takes as many steps.

        Raises ParameterError for an empty text and when the step is over, PromptError for an id
        outside the vocabulary.
        """
        if self.written:
            raise ParameterError(f"choose({token!r}): step {self.index} is written; choose before "
                                 "asking for the next one")
        if isinstance(token, str):
            ids = self.facts.words(token, start=False)
        else:
            ids = self.facts.check([token])
        if not ids:
            raise ParameterError(f"choose({token!r}): an empty text is no token")
        self.id, *self.forced = ids


class Steps(Iterator[Step]):
    """The steps of one request. Leaving the loop early cancels it.

    `output`: the finished text with all its facts, None while steps are left.
    """

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.drive = drive(handle)

    def __next__(self) -> Step:
        return next(self.drive)

    def close(self) -> None:
        self.drive.close()

    @property
    def output(self) -> Output | None:
        return self.handle.result() if self.handle.done else None


def drive(handle: Handle) -> Generator[Step, None, None]:
    """Drive a held request, from its beginning."""
    forced: list[int] = []
    index, text = 0, ""
    try:
        begin([handle])
        for event in handle:
            if event.type == "commit":
                text += event.text
            if event.slot is None or handle.job is None:
                continue
            row: Any = event.slot.row
            pick = event.slot.pick.token
            likeliest = greedy() in row.seat.rules
            step = Step(index, pick, row, handle.facts, likeliest, handle.prompt, text)
            if forced:
                step.id, *step.forced = forced
            yield step
            step.written = True
            forced, index = step.forced, index + 1
            # The pick is left to the strategy, which may do more than write it.
            chosen = None if step.id == pick else step.candidate(handle.resolved.request.why)
            handle.worker.release(handle.job, chosen)
    finally:
        handle.cancel()
