"""Ensembles: several models of one vocabulary speak as one."""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unspool.core.errors import ParameterError
from unspool.core.schedule import Schedule, at
from unspool.core.sockets import Heard, Voice
from unspool.core.values import shown
from unspool.mixes.numbers import Number, check, plain
from unspool.mixes.rows import Row, Rows, by_row, log_softmax, logprobs

KINDS = ("linear", "log")
NAME = "ensemble_weights"


@dataclass(frozen=True, slots=True)
class Ensemble:
    """`kind` "linear": log of the sum of w_i p_i, a mixture: likely is what any model finds likely.
    "log": the sum of w_i log p_i, a product of experts, which the softmax renormalises: likely is
    what all find likely (Hinton 2002, Neural Computation 14:8).

    `weights`: the own model's first, then the voices'; none below 0, not all 0. They are divided by
    their sum, at each step where they are schedules. "linear" takes a reader at its word: what it
    rules out has no probability there; should that leave no token, the own row stays.
    """

    weights: tuple[Number, ...]
    voices: tuple[Voice, ...]
    kind: str = "linear"
    layers: ClassVar[tuple[int, ...]] = ()
    reads_text: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ParameterError(f"ensemble_kind={shown(self.kind)}: must be one of "
                                 f"{' | '.join(KINDS)}; give one of them", "ensemble_kind")
        if len(self.weights) != 1 + len(self.voices):
            raise ParameterError(f"{NAME}: {len(self.weights)} for {1 + len(self.voices)} models; "
                                 "give one for each, the own model's first", NAME)
        for weight in self.weights:
            check(NAME, weight, 0, 1e6)
        nothing = [step for step in turns(self.weights) if not any(at(self.weights, step))]
        if nothing:
            raise ParameterError(f"{NAME}={shown(self.weights)}: all are 0 at step {nothing[0]}; "
                                 "raise one", NAME)

    def blend(self, heard: Heard) -> Rows:
        weights = [plain(weight) for weight in self.weights]
        shares = [weight / sum(weights) for weight in weights]

        def joined(*rows: Row) -> Row:
            parts = [(share, row) for share, row in zip(shares, rows, strict=True) if share > 0]
            if self.kind == "log":
                return product(parts)
            mixed = mixture(parts)
            return rows[0] if (mixed[rows[0] > -np.inf] == -np.inf).all() else mixed

        return by_row(joined, heard.own, *heard.others)


def mixture(parts: list[tuple[float, Row]]) -> Row:
    total = np.full(len(parts[0][1]), -np.inf)
    for share, row in parts:
        total = np.logaddexp(total, np.log(share) + log_softmax(row))
    return total


def product(parts: list[tuple[float, Row]]) -> Row:
    total = np.zeros(len(parts[0][1]))
    for share, row in parts:
        total = total + share * logprobs(row)
    return total


def turns(weights: tuple[Number, ...]) -> list[int]:
    """The steps at which a schedule turns; between them no sum of weights falls below those there.
    """
    points = [w.points for w in weights if isinstance(w, Schedule)]
    return sorted({0}.union(step for found in points for step, _ in found))
