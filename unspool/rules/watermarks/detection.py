"""What a detector says of a text. It knows no kind of mark."""
from __future__ import annotations

from dataclasses import asdict, dataclass
from math import erfc, isnan, nan, sqrt
from typing import Any

THRESHOLD = 4.0  # standard deviations; by chance 3 unmarked texts in 100,000 are beyond


@dataclass(frozen=True, slots=True)
class Detection:
    """`score`: what the mark raises, in its own units (NaN where nothing was counted); `z`: how
    many standard deviations it lies above that of unmarked text; `p_value`: how likely an unmarked
    text has such a score; `counted`: tokens that were judged; `marked`: the verdict."""

    score: float
    z: float
    p_value: float
    counted: int
    marked: bool

    def json(self) -> dict[str, Any]:
        """JSON has no NaN: a score of nothing is null."""
        return {**asdict(self), "score": None if isnan(self.score) else self.score}


NOTHING = Detection(nan, 0.0, 1.0, 0, False)


def above(z: float) -> float:
    """How likely a normal number is above z."""
    return 0.5 * erfc(z / sqrt(2))


def verdict(score: float, z: float, p_value: float, counted: int, threshold: float) -> Detection:
    """Marked, if it is less likely by chance than a normal number above the threshold."""
    return Detection(score, z, p_value, counted, p_value < above(threshold))
