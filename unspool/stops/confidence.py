"""Ending when the model no longer knows how to go on. Knows one number of each step."""
from __future__ import annotations

import math
from dataclasses import dataclass

from unspool.core.branch import Branch, Ended


@dataclass(frozen=True, slots=True)
class Confidence:
    """Ends with the first token whose row has no raw probability of `threshold` (0 to 1) or more.

    Measured before the rules, so that it says the same under every temperature and truncation;
    whether the likeliest token was the one written does not matter. That token is still written.
    A threshold of 0 never ends anything.
    """

    threshold: float

    def start(self) -> None:
        return None

    def after(self, state: object, branch: Branch) -> tuple[None, Ended | None]:
        fact = branch.settled.fact
        assert fact is not None, "a written token has its facts"
        unsure = self.threshold > 0 and fact.peak < math.log(self.threshold)
        return None, Ended("stop", "confidence_stop") if unsure else None
