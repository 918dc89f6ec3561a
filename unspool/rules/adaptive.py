"""Adaptive-p: prefers tokens whose probability is near a target, which moves against the past."""
from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Any

import numpy as np

from unspool.core.prefix import Candidate
from unspool.kernels.shaping import adaptive
from unspool.kernels.shaping.adaptive import HIGHEST, SHARPNESS, WIDTH
from unspool.kernels.shaping.recipe import Operation
from unspool.kernels.shaping.row import MAP, NEEDS_MASS
from unspool.rules.rows import Rows
from unspool.rules.rule import RuleValue, rule

State = tuple[float, float]
MOST_DECAY = 0.99


def start(rule: RuleValue, prompt: Sequence[int]) -> State:
    """As if the target had been met for ever."""
    target, decay = rule.numbers[0], min(rule.numbers[1], MOST_DECAY)
    return target / (1 - decay), 1 / (1 - decay)


def after(rule: RuleValue, state: State, token: int, fact: Candidate) -> State:
    decay = min(rule.numbers[1], MOST_DECAY)
    return exp(fact.entry) + decay * state[0], 1 + decay * state[1]


def words(state: State) -> State:
    return float(state[0]), float(state[1])


@rule(Operation(adaptive.adaptive_p, MAP, NEEDS_MASS), start=start, after=after, words=words,
      entry=True)
def adaptive_p(rows: Rows, target: Any, decay: Any) -> Any:
    """Give tokens new logits by how far their probability p lies from what is wanted now: with
    d = |p - wanted| / 0.3, 5 - 10 d^2 / (1 + d) (llama.cpp pull request 17927).

    Wanted is 2 target - mean, from 0 to 1, where mean is that of the probabilities of the written
    tokens, each `decay` (at most 0.99) as heavy as the next. It must be the last rule. A negative
    target changes nothing.
    """
    xp = rows.xp
    held, weight = rows.like(np.array(rows.states, np.float64).reshape(-1, 2).T[..., None])
    wanted = xp.clip(2 * target - held / weight, 0.0, 1.0)
    d = xp.abs(rows.probs - wanted) / WIDTH
    shaped = HIGHEST - SHARPNESS * d * d / (1 + d)
    return xp.where(rows.kept & (target >= 0), shaped, rows.values)
