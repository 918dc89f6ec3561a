"""The watermark that is no change of the distribution (Aaronson 2022, "My AI safety lecture for UT
Effective Altruism"; Kuditipudi et al. 2023, arXiv:2307.15593): a pick is the token whose logit plus
Gumbel noise is largest, and the noise comes from a key and the last tokens.

Who knows the key knows the noise, and finds it larger than chance where it chose the token. Over
keys the picks are draws from the distribution; for one key a context always makes the same noise,
so a text depends on no seed, only on the number of its choice.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.core.history import History
from unspool.kernels.reading.noise import Place
from unspool.kernels.reading.philox import draw, uniform
from unspool.kernels.shaping import marks
from unspool.kernels.shaping.recipe import Operation
from unspool.kernels.shaping.row import PLACE_OF_NOISE
from unspool.rules.rows import Rows
from unspool.rules.rule import RuleValue, moves_noise, rule
from unspool.rules.watermarks.detection import NOTHING, THRESHOLD, Detection, verdict


@dataclass(frozen=True, slots=True)
class Source:
    """Where noise comes from: a key of 64 bits, and the last `width` tokens."""

    key: int = field(repr=False)
    width: int = 4

    def seed(self, context: Sequence[int]) -> int:
        """BLAKE2b of the tokens (each a 32-bit number, low byte first) under the key (64 bits, low
        byte first): 64 bits, read in the same way."""
        tokens = np.array(context, "<i4").tobytes()
        digest = blake2b(tokens, digest_size=8, key=self.key.to_bytes(8, "little"))
        return int.from_bytes(digest.digest(), "little")


def place(rule: RuleValue, text: History, place: Place) -> Place:
    """The place of the noise behind a text. Where its last tokens came before, ordinary noise is
    used, since the text would repeat itself; so it is where there are too few."""
    source: Source = rule.data  # type: ignore[assignment]
    context = text.last(source.width)
    if len(context) < source.width or comes_before(text, source.width):
        return place
    _, choice, _, number = place
    return source.seed(context), choice, 0, number


def comes_before(text: History, width: int) -> bool:
    """Whether the last `width` tokens stand somewhere earlier, too."""
    tokens = np.frombuffer(text.tokens, np.int32, text.length)
    ends = np.flatnonzero(tokens[width - 1:-1] == tokens[-1])  # few, so their windows are looked at
    windows = np.lib.stride_tricks.sliding_window_view(tokens, width)
    return bool((windows[ends] == tokens[-width:]).all(-1).any())


@moves_noise(place)
@rule(Operation(marks.gumbel_watermark, PLACE_OF_NOISE), recalls=True)
def gumbel_watermark(rows: Rows) -> Any:
    """Leave the row as it is; the noise of its pick comes from the key and the last tokens.

    The data are the Source. What draws no noise writes no mark: greedy decoding and searches.
    """
    return rows.values


def detect(ids: Sequence[int], source: Source, context: Sequence[int] = (), choices: int = 1,
           threshold: float = THRESHOLD) -> Detection:
    """Look for the mark in token ids. The score is the sum of -log(1 - u) over the tokens, u being
    the uniform number behind a token's noise: Gamma(T, 1) for T unmarked tokens.

    `context`: the tokens before, which are not judged themselves. Each context is counted where it
    first comes. `choices`: how many answers were asked for; the likeliest is taken, and the p-value
    says by chance of any.
    """
    text, width = [*context, *ids], source.width
    places: dict[tuple[int, ...], int] = {}
    for i in range(width, len(text)):
        places.setdefault(tuple(text[i - width:i]), i)
    judged = [i for i in places.values() if i >= len(context)]
    if not judged:
        return NOTHING
    seeds = [source.seed(text[i - width:i]) for i in judged]
    scores = [sum(gain(seed, choice, text[i]) for seed, i in zip(seeds, judged, strict=True))
              for choice in range(choices)]
    counted, best = len(judged), max(scores)
    p_value = min(1.0, choices * above_gamma(best, counted))
    return verdict(best, (best - counted) / sqrt(counted), p_value, counted, threshold)


def gain(seed: int, choice: int, token: int) -> float:
    """-log(1 - u)."""
    return float(-np.log1p(-uniform(seed, choice, 0, draw("pick"), np.array([token]))[0]))


def above_gamma(x: float, count: int) -> float:
    """How likely Gamma(count, 1) is above x > 0: a Poisson number of mean x is below `count`."""
    steps: NDArray[np.float64] = np.log(x / np.arange(1, count))
    logs = np.concatenate([[0.0], np.cumsum(steps)]) - x
    return float(np.exp(np.logaddexp.reduce(logs)))
