"""A slot: one open place of a branch, and the small facts that were read there."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from unspool.core.prefix import Candidate


@dataclass(slots=True)
class Slot:
    """What the engine read from one row of scores.

    `pick`: the token that the noise and the rules choose. `drafted`: the draft's own token here,
    with its facts, None past the draft's end. `top`: the likeliest tokens after the rules, best
    first, as many as the strategy's reading asks for (fewer when the rules left fewer).
    `row`: the scores before and after the rules, kept only when the request asks; opaque here.
    `entropy`: of the row before the rules, in bits, where a stage ends by it. The rest is there
    where the reading asks for it: see `Reading`.
    """

    pick: Candidate
    drafted: Candidate | None = None
    top: Sequence[Candidate] = ()
    row: object = None
    perturbed: Sequence[tuple[Candidate, float]] = ()
    named: Mapping[int, Candidate] = field(default_factory=dict)
    raw: Sequence[tuple[int, float]] = ()
    similarity: float = -1.0
    attention: Sequence[float] = ()
    entropy: float = 0.0


@dataclass(frozen=True, slots=True)
class Reading:
    """What a strategy wants from each row: the `top` likeliest tokens, and whether a `pick`.

    Without `pick` no noise is drawn, and the likeliest token stands in its place.
    `perturbed`: so many tokens with the largest sum of log-probability after the rules and Gumbel
    noise, best first, each with that sum: a draw without replacement. The noise of two branches
    with different texts is independent.
    `named`: these tokens, whatever their rank; one that the rules removed has `processed` -inf.
    `raw`: so many likeliest tokens before the rules, with their raw log-probabilities; fewer where
    fewer have a chance.
    `similarity`: the largest cosine between the model's last hidden state of the text's last token
    and those of all tokens before it (-1.0 where there is none).
    `hidden`: each candidate keeps the last hidden state of the token before it.
    `unscaled`: `processed` is the value that the rules leave, not divided by what all values add up
    to; on rows that were log-probabilities before the rules.
    `attention`: how the model's attention over its source is spread there (encoder-decoders only).
    """

    top: int = 0
    pick: bool = True
    perturbed: int = 0
    named: tuple[int, ...] = ()
    raw: int = 0
    similarity: bool = False
    hidden: bool = False
    attention: bool = False
    unscaled: bool = False

    @property
    def planes(self) -> str:
        """What a model must remember of a text besides keys and values."""
        return "hidden" if self.similarity or self.hidden else ""


PICK = Reading()
