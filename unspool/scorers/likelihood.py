"""How likely the model itself finds a text. Knows neither texts nor rules."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unspool.core.branch import Branch


@dataclass(frozen=True, slots=True)
class Likelihood:
    """A reward: the sum of the written tokens' raw log-probabilities (natural logs), or with
    `mean` the sum over their number, which does not favour short texts.

    The ending token counts. Nothing written is 0.
    """

    mean: bool = False

    def rewards(self, branches: Sequence[Branch]) -> list[float]:
        return [b.logprob / max(b.written, 1) if self.mean else b.logprob for b in branches]
