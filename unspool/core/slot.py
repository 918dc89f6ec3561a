"""A slot: one open place of a branch, and the small facts that were read there."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unspool.core.prefix import Candidate


@dataclass(slots=True)
class Slot:
    """What the engine read from one row of scores.

    `pick`: the token that the noise and the rules choose. `drafted`: the draft's own token here,
    with its facts, None past the draft's end. `top`: the likeliest tokens after the rules, best
    first, as many as the strategy's reading asks for (fewer when the rules left fewer).
    `row`: the scores before and after the rules, kept only when the request asks; opaque here.
    """

    pick: Candidate
    drafted: Candidate | None = None
    top: Sequence[Candidate] = ()
    row: object = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What a strategy wants from each row: the `top` likeliest tokens, and whether a `pick`.

    Without `pick` no noise is drawn, and the likeliest token stands in its place.
    """

    top: int = 0
    pick: bool = True


PICK = Reading()
