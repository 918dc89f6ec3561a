"""What each rule did to a row. The row is shaped again, with one rule more each time.

`Row.upto` is the engine's own shaping, so a record cannot tell of anything else than what was done.
Tokens are ids here; it knows no text, and no clock.
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unspool.engine.row import Row
from unspool.kernels.reading.plain import Floats, Ids
from unspool.kernels.shaping.shaped import Left


@dataclass(frozen=True, slots=True, eq=False)
class Tokens(Sequence[tuple[int, float]]):
    """Ids [K] with a probability each, the likeliest first, equal ones by the lower id."""

    ids: Ids
    probs: Floats

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Tokens(self.ids[index], self.probs[index])
        return int(self.ids[index]), float(self.probs[index])

    def __contains__(self, token: object) -> bool:
        """Whether an id is among them."""
        return bool(np.any(self.ids == token))

    def __repr__(self) -> str:
        first = ", ".join(f"{token}: {prob:.4g}" for token, prob in self[:5])
        return f"Tokens({first}{', ...' if len(self) > 5 else ''}; {len(self)})"


class Cutoff(NamedTuple):
    """Between which probabilities a stage cut: of the least likely token that it kept and of the
    likeliest that it removed, in the distribution entering it."""

    kept: float
    removed: float


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One rule at work: the distribution that enters it, and the one that leaves.

    `removed`: tokens taken out, each with its probability on entering; `restored`: tokens that an
    earlier stage had removed and this one allows again, each with its probability on leaving.
    `mass`: the probability of the removed ones, on entering; `raw_mass`: in the model's own
    distribution, less that of the restored ones. `moved`: how far the rule shifted probability
    among the tokens it left: the total variation, in 0..1, between the entering distribution
    renormalised over those that stayed, and the leaving one. Entropies are in bits. `cutoff` is
    None where nothing was removed, or nothing stayed. `state`: what the rule remembered.
    """

    rule: str
    name: str
    before: int
    after: int
    removed: Tokens
    restored: Tokens
    mass: float
    raw_mass: float
    moved: float
    entropy_bits_before: float
    entropy_bits: float
    cutoff: Cutoff | None
    state: object


class Stages(Sequence[Stage]):
    """In the order in which they were applied; `stages["top_p"]` is the first one of that name.

    `raw_mass`: what the tokens that are left have in the model's own distribution. Added to the
    `raw_mass` of all stages it is 1.
    """

    def __init__(self, stages: Iterable[Stage], raw_mass: float) -> None:
        self.all, self.raw_mass = tuple(stages), raw_mass

    def __len__(self) -> int:
        return len(self.all)

    def __getitem__(self, key: Any) -> Any:
        """Raises KeyError for the name of a rule that was not at work."""
        if not isinstance(key, str):
            return self.all[key]
        for stage in self.all:
            if stage.name == key:
                return stage
        raise KeyError(f"no stage {key!r}: there are {', '.join(self.keys()) or 'none'}")

    def __contains__(self, key: object) -> bool:
        return key in self.keys() or key in self.all

    def keys(self) -> list[str]:
        return [stage.name for stage in self.all]

    def __repr__(self) -> str:
        steps = [f"{stage.rule}: {stage.before} -> {stage.after}" for stage in self.all]
        return f"Stages({', '.join(steps)})"


def stages(row: Row) -> Stages:
    """The stages of a row's rules."""
    probs = raw = probabilities(row.upto(0).shaped, row.vocab)
    made = []
    for place in range(len(row.seat.rules)):
        entering, probs = probs, probabilities(row.upto(place + 1).shaped, row.vocab)
        made.append(stage(row, place, (raw, entering, probs)))
    return Stages(made, float(raw[probs > 0].sum()))


def probabilities(left: Left, vocab: int) -> Floats:
    """[V]: what is left of a row, 0 where a token was removed.

    A token that is left and too unlikely for a float64 gets the smallest one, so that it counts.
    """
    out = np.zeros(vocab)
    out[left.ids] = np.maximum(np.exp(left.values - left.norm), np.nextafter(0.0, 1.0))
    return out


def stage(row: Row, place: int, probs: tuple[Floats, Floats, Floats]) -> Stage:
    """What the rule at `place` did. `probs`: raw, entering and leaving, [V] each."""
    rule, (raw, entering, leaving) = row.seat.rules[place], probs
    before, after = entering > 0, leaving > 0
    removed, restored, stayed = before & ~after, after & ~before, before & after
    cutoff = None
    if removed.any() and stayed.any():
        cutoff = Cutoff(float(entering[stayed].min()), float(entering[removed].max()))
    return Stage(
        str(rule), rule.name, int(before.sum()), int(after.sum()),
        ordered(removed, entering), ordered(restored, leaving),
        float(entering[removed].sum()), float(raw[removed].sum() - raw[restored].sum()),
        variation(np.where(stayed, entering, 0.0), leaving),
        entropy_bits(entering), entropy_bits(leaving), cutoff, row.seat.states[place])


def ordered(which: Any, probs: Floats) -> Tokens:
    ids = np.flatnonzero(which)
    ids = ids[np.argsort(-probs[ids], kind="stable")]
    return Tokens(ids, probs[ids])


def variation(one: Floats, other: Floats) -> float:
    """Total variation, 0..1, between what two rows of weights are as distributions.

    It is 1 where one of them has no weight at all, and 0 where neither has.
    """
    first, second = float(one.sum()), float(other.sum())
    if not first or not second:
        return float(first != second)
    return 0.5 * float(np.abs(one / first - other / second).sum())


def entropy_bits(probs: Floats) -> float:
    kept = probs[probs > 0]
    return abs(float((kept * np.log(kept)).sum() / math.log(2)))
