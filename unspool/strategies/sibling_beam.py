"""Diverse siblings: the children of one branch are ranked down one by one, so that more parents
have children. Li, Monroe, Jurafsky, arXiv:1611.08562.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from unspool.core.branch import Branch
from unspool.core.sockets import Slots
from unspool.strategies.beam import Beam, Grown
from unspool.strategies.checks import within


@dataclass(frozen=True, slots=True)
class SiblingBeam(Beam):
    """`rate` times its place among its siblings is taken off what a continuation is chosen by; its
    score stays true. The likeliest has place 1; it could as well be 0, since what is taken off all
    alike changes no order. 0 is `Beam`.
    """

    rate: float = field(kw_only=True)

    def __post_init__(self) -> None:
        Beam.__post_init__(self)
        within(0, math.inf, rate=self.rate)

    def grown(self, live: Sequence[Branch], slots: Slots) -> list[Grown]:
        placed = [(g.score - self.rate * place, g) for branch in live
                  for place, g in enumerate(self.children(branch, slots[branch][0]), 1)]
        return [g for _, g in sorted(placed, key=lambda p: -p[0])]
