"""One row of a forward, before and after its rules, and how to shape it again."""
from __future__ import annotations

from dataclasses import replace
from functools import cached_property, lru_cache
from math import nan

import numpy as np

from unspool.core.prefix import Candidate
from unspool.engine.shape import Placed, shaped
from unspool.kernels.reading.facts import NORM, PEAK
from unspool.kernels.reading.logits import Logits
from unspool.kernels.reading.noise import Place, gumbel
from unspool.kernels.reading.plain import Floats
from unspool.kernels.shaping.shaped import Left
from unspool.rules.plain import Seat
from unspool.rules.rule import KINDS, names_of

Pairs = tuple[tuple[int, float], ...]


@lru_cache(maxsize=1024)
def entrance(names: tuple[str, ...]) -> int | None:
    """The place of the rule that wants to know what a token was before it."""
    return next((place for place, name in enumerate(names) if KINDS[name].entry), None)


class Row:
    """Row `number` of a forward. What its rules made of it is computed once and can be computed
    again, from any of its rules: the same row and seat give the same bits."""

    def __init__(self, logits: Logits, number: int, seat: Seat, placed: Placed | None = None
                 ) -> None:
        self.logits, self.number, self.seat = logits, number, seat
        if placed is not None:
            self.placed = placed
        self.perturbed: list[tuple[int, float]] = []

    @cached_property
    def placed(self) -> Placed:
        return shaped(self.logits, self.number, self.seat)

    # ── before the rules ─────────────────────────────────────────────────────────────────────────
    @property
    def vocab(self) -> int:
        return int(self.logits.values.shape[1])

    @property
    def raw(self) -> Floats:
        """[V]: the model's logits."""
        [row] = self.logits.wide([self.number])
        return np.asarray(row)

    @property
    def norm(self) -> float:
        """Log of the raw row's summed exp."""
        return self.logits.facts[self.number][NORM]

    def likeliest(self, count: int) -> Pairs:
        """The first `count` tokens before the rules, with their raw log-probabilities."""
        ids, values = self.logits.top([self.number], count)
        logprobs = values[0] - self.norm
        return tuple(zip(ids[0].tolist(), logprobs.tolist(), strict=True))

    def expect(self, token: int) -> None:
        """Raises IndexError for an id outside the vocabulary."""
        if not 0 <= token < self.vocab:
            raise IndexError(f"token {token} is outside the vocabulary")

    # ── after them ───────────────────────────────────────────────────────────────────────────────
    @property
    def empty(self) -> bool:
        group, place = self.placed
        return group.empty(place)

    @property
    def pick(self) -> tuple[int, float]:
        group, place = self.placed
        return group.pick(place)

    @property
    def shaped(self) -> Left:
        group, place = self.placed
        return group.left(place)

    def processed(self, token: int) -> float:
        group, place = self.placed
        return group.processed(place, token)

    @property
    def mass(self) -> float:
        """Log of the summed exp of what the rules left."""
        return self.shaped.norm

    def top(self, count: int) -> list[tuple[int, float]]:
        group, place = self.placed
        return group.top(place, count)

    def perturb(self, place: Place, count: int) -> None:
        """Find the `perturbed` tokens: (token, log-probability plus Gumbel noise of this place),
        the `count` largest, best first. Fewer where the rules left fewer."""
        left = self.shaped
        values = left.values - left.norm + gumbel(*place, left.ids)
        count = min(count, len(values))
        best = np.argpartition(-values, count - 1)[:count] if count < len(values) else (
            np.arange(count))
        best = best[np.lexsort((left.ids[best], -values[best]))]
        self.perturbed = list(zip(left.ids[best].tolist(), values[best].tolist(), strict=True))

    def candidate(self, token: int) -> Candidate:
        self.expect(token)
        facts = self.logits.facts[self.number]
        [[logit, rank]] = self.logits.look([self.number], [token])
        norm = facts[NORM]
        return Candidate(token, logit - norm, self.processed(token), int(rank), facts[PEAK] - norm,
                         entry=self.entry.processed(token) if self.entry else nan)

    # ── and between ──────────────────────────────────────────────────────────────────────────────
    def upto(self, count: int) -> Row:
        """The same row with the first `count` of its rules only."""
        seat = self.seat
        return Row(self.logits, self.number, Seat(
            seat.rules[:count], seat.states[:count], seat.history, seat.place, seat.wanted))

    @property
    def entry(self) -> Row | None:
        """The row before the rule that wants to know of it what it was."""
        place = entrance(names_of(self.seat.rules))
        return None if place is None else self.upto(place)

    def why_empty(self) -> str:
        """Which rules removed every token."""
        counts = [len(self.upto(i).shaped.ids) for i in range(len(self.seat.rules) + 1)]
        names = [str(rule) for rule, before, after in zip(
            self.seat.rules, counts, counts[1:], strict=False) if after < before]
        return (f"no token is left: {' and '.join(names)} removed every one; loosen "
                f"{'it' if len(names) == 1 else 'one of them'}")

    def alone(self) -> Row:
        """A copy that outlives the forward, and may be read while the text goes on."""
        seat = self.seat
        if seat.history is not None:
            seat = replace(seat, history=seat.history.alone())
        return Row(self.logits.alone(self.number), 0, seat)
