"""Contrastive decoding: what an expert finds likely and an amateur does not."""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unspool.core.errors import ParameterError
from unspool.core.sockets import Heard, Voice
from unspool.core.values import shown
from unspool.mixes.numbers import Number, check, plain
from unspool.mixes.rows import Row, Rows, bounded, by_row, logprobs, plausible

FORMS = ("log", "logits")


@dataclass(frozen=True, slots=True)
class Contrast:
    """log p_expert - weight * log softmax(amateur / temperature) over the tokens with
    p_expert >= cut * max p_expert, the plausible ones (Li et al. 2022, arXiv:2210.15097). The
    expert is the own model, the amateur the voice.

    `form` "logits": (1 + weight) l_expert - weight l_amateur / temperature over the same tokens
    (O'Brien and Lewis 2023, arXiv:2309.09117, beta is the weight). The first paper takes an amateur
    temperature of 0.5. Without the cut the score favours what the amateur cannot say over what is
    right; with it two equal models find all plausible tokens equal.
    """

    voice: Voice
    cut: Number = 0.1
    weight: Number = 1.0
    temperature: Number = 1.0
    form: str = "log"
    layers: ClassVar[tuple[int, ...]] = ()
    reads_text: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check("contrast_alpha", self.cut, 0, 1)
        check("contrast_weight", self.weight, 0, 1000)
        check("amateur_temperature", self.temperature, 0, 1000, strict=True)
        if self.form not in FORMS:
            raise ParameterError(f"contrast_form={shown(self.form)}: must be one of "
                                 f"{' | '.join(FORMS)}; give one of them", "contrast_form")

    @property
    def voices(self) -> tuple[Voice, ...]:
        return (self.voice,)

    def blend(self, heard: Heard) -> Rows:
        cut, weight = plain(self.cut), plain(self.weight)
        heat = plain(self.temperature)

        def contrasted(own: Row, amateur: Row) -> Row:
            amateur = np.asarray(amateur, np.float64) / heat
            if self.form == "log":
                scores = logprobs(own) - weight * logprobs(amateur)
            else:
                scores = (1 + weight) * bounded(own) - weight * bounded(amateur)
            return np.where(plausible(own, cut), scores, -np.inf)

        return by_row(contrasted, heard.own, *heard.others)
