"""FUDGE: a classifier of unfinished texts steers towards an attribute. Knows no classifier."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from unspool.core.errors import ParameterError
from unspool.core.sockets import Heard, Voice
from unspool.core.values import shown
from unspool.mixes.numbers import Number, check, plain, real
from unspool.mixes.rows import Row, Rows, by_row, likeliest, log_softmax

LEAST = -87.0  # log P below it counts as it: what float32 hardly tells from 0
ROUNDING = 1e-6  # by which a log-probability may lie above 0


class Classifier(Protocol):
    def log_probability(self, ids: Sequence[int], candidates: Sequence[int]) -> Sequence[float]:
        """For each candidate log P(attribute | the text `ids` and then it), natural logs."""
        ...


@dataclass(frozen=True, slots=True)
class Attribute:
    """log p(v) + weight * log P(attribute | text, v) for the `top` likeliest tokens v; the others
    are removed (Yang and Klein 2021, arXiv:2104.05218).

    `weight` 0 leaves the model's own distribution over these tokens. Of equally likely tokens the
    lower ids are among the `top`. ParameterError while it blends: the classifier gives another
    count of numbers, NaN, or a log-probability above 0.
    """

    classifier: Classifier
    weight: Number = 1.0
    top: Number = 200
    voices: ClassVar[tuple[Voice, ...]] = ()
    layers: ClassVar[tuple[int, ...]] = ()
    reads_text: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check("attribute_weight", self.weight, -1000, 1000)
        check("attribute_top", self.top, 1, 2**31 - 1)

    def blend(self, heard: Heard) -> Rows:
        weight, top = plain(self.weight), int(plain(self.top))

        def steered(own: Row, text: Sequence[int]) -> Row:
            ids = likeliest(own)[:top]
            ids = ids[own[ids] != -np.inf]
            said = self.asked(text, ids.tolist())
            out = np.full(len(own), -np.inf)
            out[ids] = log_softmax(own)[ids] + weight * said
            return out

        return by_row(steered, heard.own, heard.texts)

    def asked(self, text: Sequence[int], candidates: list[int]) -> Row:
        """[candidates]: what the classifier says, checked."""
        answer = self.classifier.log_probability(text, candidates)
        found = [real(value) for value in answer]
        if len(found) != len(candidates):
            raise ParameterError(f"attribute: the classifier gave {len(found)} numbers for "
                                 f"{len(candidates)} candidates; it must give one for each",
                                 "attribute")
        wrong = [i for i, value in enumerate(found) if not value <= ROUNDING]
        if wrong:
            raise ParameterError(f"attribute: the classifier gave {shown(answer[wrong[0]])} for "
                                 f"token {candidates[wrong[0]]}; it must give the logarithm of a "
                                 "probability, 0 or less", "attribute")
        return np.maximum(np.array(found, np.float64), LEAST)
