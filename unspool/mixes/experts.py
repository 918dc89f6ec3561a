"""DExperts: the difference of two small models steers a large one."""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unspool.core.errors import ParameterError
from unspool.core.sockets import Heard, Voice
from unspool.mixes.numbers import Number, check, plain
from unspool.mixes.rows import Row, Rows, bounded, by_row, nucleus


@dataclass(frozen=True, slots=True)
class Experts:
    """l + alpha (l_expert - l_anti) over the smallest set of the own model's likeliest tokens with
    mass `top_p`, on raw logits (Liu et al. 2021, arXiv:2105.03023).

    The expert writes what is wanted, the anti-expert what is not. Defaults are those of the
    paper's program; it takes alpha 3.2 for sentiment. A negative alpha swaps the two.
    ParameterError without either of them.
    """

    expert: Voice | None
    anti: Voice | None
    alpha: Number = 2.0
    top_p: Number = 0.9
    layers: ClassVar[tuple[int, ...]] = ()
    reads_text: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check("experts_alpha", self.alpha, -1000, 1000)
        check("experts_top_p", self.top_p, 0, 1)
        for name, voice in (("expert_model", self.expert), ("anti_expert_model", self.anti)):
            if voice is None:
                raise ParameterError(f"{name} is missing: the difference of an expert and an "
                                     "anti-expert is added; give both models, or neither", name)

    @property
    def voices(self) -> tuple[Voice, ...]:
        return tuple(voice for voice in (self.expert, self.anti) if voice is not None)

    def blend(self, heard: Heard) -> Rows:
        alpha, mass = plain(self.alpha), plain(self.top_p)

        def steered(own: Row, expert: Row, anti: Row) -> Row:
            scores = bounded(own) + alpha * (bounded(expert) - bounded(anti))
            return np.where(nucleus(own, mass), scores, -np.inf)

        return by_row(steered, heard.own, *heard.others)
