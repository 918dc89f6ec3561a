"""How alike two texts are to the model that wrote them: its hidden states, token by token.

BERTScore (Zhang et al. 2020, arXiv:1904.09675) with the model's own last hidden states in place of
BERT's: each token is matched with the most similar one of the other text, by the cosine. Without
weights for rare words and without rescaling. Knows neither tokens' texts nor models.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unspool.core.branch import Branch
from unspool.core.errors import ParameterError, RowError

Floats = NDArray[np.float64]
# Directions are in units of 2**-24. Products and sums of such numbers, 1 at most, are exact in
# float64, so a cosine has the same bits in whatever order a matrix product adds.
UNIT = 2.0**24


def floats(state: Any) -> Floats:
    """A state as numbers of numpy; a tensor may be of a type or on a device that numpy lacks."""
    if hasattr(state, "detach"):
        state = state.detach().cpu().double()
    return np.asarray(state, np.float64)


def directions(branch: Branch) -> Floats:
    """[token, hidden size]: the direction of each written token's state but the last one's, of
    which there is none. A state of zeros has none either: it is like nothing.

    Raises ParameterError where the model gave no states, RowError for NaN and infinity.
    """
    # A candidate's state is that of the token before it.
    states = [fact.state for fact in branch.facts[1:]]
    if any(state is None for state in states):
        raise ParameterError("utility='states': this text was written without hidden states; "
                             "compare by 'chrf' or 'bleu'", "utility")
    if not states:
        return np.zeros((0, 0))
    rows = np.stack([floats(state) for state in states])
    if not np.isfinite(rows).all():
        raise RowError("the model's hidden states have a number that is NaN or infinite")
    largest = np.abs(rows).max(axis=1, keepdims=True)
    rows /= np.where(largest > 0, largest, 1)  # so that no square is too large or too small
    norms = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return np.rint(rows / np.where(norms > 0, norms, 1) * UNIT) / UNIT


def likeness(one: Floats, other: Floats) -> float:
    """F1 of two texts' directions, 0 to 1; a token that only has opposites counts 0."""
    cosines = np.clip(one @ other.T, 0, 1)
    precision = math.fsum(cosines.max(axis=1).tolist()) / len(one)
    recall = math.fsum(cosines.max(axis=0).tolist()) / len(other)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


@dataclass(frozen=True, slots=True)
class States:
    """A utility, 0 to 1: symmetric, and 1 (to within 1e-6) for a text against itself.

    All written tokens but the last take part, those that a stop cuts off too. A text of one token
    or none has no states: it scores 1 with a text of the same tokens, and 0 with any other.
    """

    states: ClassVar[bool] = True

    def table(self, branches: Sequence[Branch]) -> list[list[float]]:
        rows = [directions(branch) for branch in branches]
        tokens = [branch.tokens for branch in branches]
        out = [[0.0] * len(branches) for _ in branches]
        for i, one in enumerate(rows):
            for j in range(i + 1):
                if len(one) and len(rows[j]):
                    out[i][j] = likeness(one, rows[j])
                else:
                    out[i][j] = float(tokens[i] == tokens[j])
                out[j][i] = out[i][j]
        return out
