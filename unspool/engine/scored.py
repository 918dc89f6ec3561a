"""What a forward gave: its rows of logits, and the turns they belong to, in order."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.core.sockets import Scores
from unspool.engine.runner import Turn
from unspool.kernels.reading.facts import FAULT
from unspool.kernels.reading.logits import Logits, logits_of


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Each turn has as many of the rows as it asked for."""

    logits: Logits
    turns: Sequence[Turn]

    def placed(self) -> Iterator[tuple[Turn, int]]:
        """Each turn and the number of its first row."""
        first = 0
        for turn in self.turns:
            yield turn, first
            first += turn.rows


def scored(scores: Scores, turns: Sequence[Turn]) -> Scored:
    """Wait for the rows. They belong to the model and are valid until its next forward; what a turn
    wanted besides is copied into it.

    A model that knows the facts of its rows (`kernels/reading/facts.py: RowFacts`) offers them in a
    method `facts` of its scores.
    """
    rows, facts = host(scores.rows()), getattr(scores, "facts", None)
    planes: Any = scores
    for number, turn in enumerate(turns):
        reading = turn.job.strategy.reads
        if turn.hidden and turn.rows:
            turn.similarity = planes.similarity(number) if reading.similarity else ()
            turn.states = planes.hidden(number) if reading.hidden else None
        if turn.rows:
            turn.inner = {layer: host(planes.inner(number, layer)) for layer in turn.layers}
    return Scored(logits_of(rows, facts and facts()), turns)


def together(parts: Iterable[Scored]) -> Scored | None:
    """The rows of several forwards as if they were of one. Each part is copied before the next is
    asked for, since that is another forward. None when there is no part."""
    turns: list[Turn] = []
    rows: list[NDArray[Any]] = []
    for part in parts:
        turns += part.turns
        rows.append(part.logits.values.copy())
    return Scored(logits_of(np.concatenate(rows)), turns) if rows else None


def repaired(logits: Logits, rows: Sequence[int]) -> Logits:
    """Rows that are damaged, made readable: NaN counts as 0 and infinity as the largest number, as
    in transformers' InfNanRemoveLogitsProcessor. Of these rows those that are sound stay."""
    bad = [row for row in rows if logits.facts[row][FAULT]]
    if not bad:
        return logits
    values = logits.values.copy()
    values[bad] = np.nan_to_num(values[bad], nan=0.0, neginf=-np.inf)
    return logits_of(values)


def host(rows: Any) -> NDArray[Any]:
    """Rows as a numpy array; those of a GPU are copied, since the rules run on the CPU so far."""
    return rows if isinstance(rows, np.ndarray) else rows.cpu().numpy()
