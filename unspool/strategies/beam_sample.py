"""Beams that are drawn: the continuations are a draw without replacement, then a beam as usual.

As `num_beams` with `do_sample` in transformers: from the softmax of the summed log-probabilities
of all continuations of all branches so many are drawn as a beam search looks at, and the best
`width` of those live on. To draw k without replacement is to take the k largest sums of
log-probability and Gumbel noise (arXiv:1903.06059).
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unspool.core.branch import Branch
from unspool.core.slot import Reading
from unspool.core.sockets import Slots
from unspool.strategies.beam import Beam, Grown, best_first


@dataclass(frozen=True, slots=True)
class BeamSample(Beam):
    """The fields are those of `Beam`. A width of 1 is sampling, as it is there: one draw decides,
    and no second one is compared with it."""

    @property
    def draws(self) -> int:
        """Those of every branch might end at each of the end tokens."""
        return 1 if self.width == 1 else self.width * max(2, 1 + self.ends)

    @property
    def reads(self) -> Reading:
        return Reading(perturbed=self.draws, pick=False, attention=self.coverage > 0)

    def grown(self, live: Sequence[Branch], slots: Slots) -> list[Grown]:
        drawn: list[tuple[float, Grown]] = []
        for branch in live:
            slot = slots[branch][0]
            kept = self.attended(branch, slot)
            drawn += [(branch.score + noisy, Grown(branch.score + c.processed, branch, c, kept))
                      for c, noisy in slot.perturbed]
        drawn.sort(key=lambda d: -d[0])
        return best_first(g for _, g in drawn[:self.draws])
