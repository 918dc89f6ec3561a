"""How the rank of a text is made: its summed log-probability, its length, what it attended to.

A log-probability falls with every token, so that a plain sum favours short texts. A length is that
of the written tokens, the end token counted and the prompt not.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

Kind = Literal["plain", "gnmt", "average"]


def rank(score: float, length: int, kind: Kind = "plain", alpha: float = 1.0) -> float:
    """plain: S / length^alpha, as in transformers and vLLM; gnmt: S / ((5 + length) / 6)^alpha,
    arXiv:1609.08144, equation 14; average: S / length, whatever alpha is."""
    if kind == "average":
        return score / length
    base = length if kind == "plain" else (5 + length) / 6
    return float(score / base ** alpha)


def best_rank(score: float, lengths: tuple[int, int], kind: Kind = "plain", alpha: float = 1.0
              ) -> float:
    """No text with at most this sum, which is 0 or less, ranks higher at any of these lengths, from
    the first to the last. Every kind rises or falls with the length, so one end has the best."""
    return max(rank(score, length, kind, alpha) for length in lengths)


def coverage(attention: Sequence[Sequence[float]], beta: float) -> float:
    """beta * sum_i log min(sum_t a_ti, 1): 0 where every token of the source was attended to with a
    weight of 1 in all, less where some was passed over. arXiv:1609.08144, equation 14.

    `attention`: [written tokens][tokens of the source].
    """
    sums = [min(math.fsum(column), 1.0) for column in zip(*attention, strict=True)]
    return beta * math.fsum(math.log(s) if s > 0 else -math.inf for s in sums)


def coverage_excess(attention: Sequence[Sequence[float]]) -> float:
    """sum_i max(sum_t a_ti, 1) - (tokens of the source): 0 where no token of it was attended to
    with more than 1 in all. OpenNMT's "summary" form: a weight times it is taken off a rank."""
    sums = [math.fsum(column) for column in zip(*attention, strict=True)]
    return math.fsum(max(s, 1.0) - 1.0 for s in sums)
