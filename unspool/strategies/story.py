"""A strategy told as a story: a generator that yields edits and is sent slots.

For research: a search of several phases reads like the paper that it is from. Its state is in the
generator, so such a request cannot be saved and resumed; the strategies of this room keep theirs in
the branches.
"""
from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass

from unspool.core.branch import Branch
from unspool.core.edits import Drop, Edit
from unspool.core.errors import ParameterError
from unspool.core.job import Job
from unspool.core.slot import PICK, Reading
from unspool.core.sockets import Slots

Telling = Generator[Iterable[Edit], Slots, None]
Ranks = list[tuple[Branch, float]]
TOLD = "story"


def by_score(job: Job) -> Ranks:
    """All texts by their summed log-probability after the rules, the likeliest first."""
    return sorted(((b, b.score) for b in job.branches), key=lambda r: -r[1])


@dataclass(frozen=True, slots=True)
class Story:
    """`tell(job)` is a generator: it yields the opening edits first (perhaps none), and is then
    sent the slots of the living texts again and again, each time for the edits that answer them.

    When it returns, the search is over: texts that still live are dropped, those that have ended
    are the answers. Raises ParameterError where none has. `reads`, `searching` and `ranks` are as
    in a strategy.
    """

    tell: Callable[[Job], Telling]
    reads: Reading = PICK
    searching: bool = True
    ranks: Callable[[Job], Ranks] = by_score

    def open(self, job: Job) -> Iterable[Edit]:
        telling = job.kept[TOLD] = self.tell(job)
        return next(telling, None) or ()

    def decide(self, job: Job, slots: Slots) -> Iterable[Edit]:
        try:
            edits: Iterable[Edit] = job.kept[TOLD].send(slots)
        except StopIteration:
            if len(job.live) == len(job.branches):
                raise ParameterError("the story is over before a text has ended: let it yield "
                                     "until a stop ends one", "strategy") from None
            return [Drop(b, "the story is over") for b in job.live]
        return edits

    def ranked(self, job: Job) -> Ranks:
        return self.ranks(job)
