"""What mixes do with one row of logits. Knows no mix.

Each row is computed by itself, as one array of V numbers: so it has the same bits whatever other
rows there are. Logarithms are natural, numbers float64.

Three rules hold for every mix, and finite numbers and -inf never become NaN:

- what is computed from NaN is NaN, without a warning: the engine refuses such a row;
- a token that the model's own row rules out (-inf) is ruled out;
- to any other reader a token that it rules out is as likely as the least likely token that it
  knows, and never likelier than one in V (`bounded`). So a reader with fewer tokens has an opinion
  of the others, but never an infinite one.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float64]  # [V]
Rows = NDArray[np.float64]  # [S, V]
EDGE = 1e-6  # mass by which a sum of rounded probabilities may miss the bound it should reach


def by_row(blend: Callable[..., Row], own: Any, *others: Sequence[Any]) -> Rows:
    """[S, V]: `blend` of each row of `own` and of what the others have at its place.

    A token that `own` rules out stays out, whatever is blended; a row of nothing stays as it is.
    """
    rows = np.ascontiguousarray(own, np.float64)
    out = np.array(rows)
    with np.errstate(invalid="ignore"):
        for i, row in enumerate(rows):
            gone = row == -np.inf
            if not gone.all():
                out[i] = np.where(gone, -np.inf, blend(row, *[other[i] for other in others]))
    return out


def log_softmax(row: Any) -> Row:
    """Log-probabilities; -inf stays, and so does a row of nothing else."""
    logits: Row = np.ascontiguousarray(row, np.float64)
    highest = logits.max()
    if highest == -np.inf:
        return logits
    moved: Row = logits - highest
    logprobs: Row = moved - np.log(np.exp(moved).sum())
    return logprobs


def bounded(row: Any) -> Row:
    """The row, logits or log-probabilities, with a finite number for each token that it rules out;
    a row of nothing finds all tokens equal."""
    numbers: Row = np.ascontiguousarray(row, np.float64)
    out = numbers == -np.inf
    if not out.any():
        return numbers
    if out.all():
        return np.zeros_like(numbers)
    known = numbers[~out]
    highest = known.max()
    even = highest + np.log(np.exp(known - highest).sum()) - np.log(len(numbers))
    return np.where(out, np.minimum(known.min(), even), numbers)


def logprobs(row: Any) -> Row:
    """Log-probabilities, bounded."""
    return bounded(log_softmax(row))


def plausible(own: Row, cut: float) -> NDArray[np.bool_]:
    """[V]: the tokens at least `cut` times as likely as the likeliest; that one is among them."""
    least = np.log(cut) if cut > 0 else -np.inf
    return np.asarray(~(own < own.max() + least))  # NaN is kept, for the engine to see


def nucleus(own: Row, mass: float) -> NDArray[np.bool_]:
    """[V]: the smallest set of likeliest tokens with this mass, the likeliest always; of equal ones
    the lower id goes in first. 1 keeps all."""
    order = likeliest(own)
    p = np.exp(log_softmax(own))[order]
    kept = np.zeros(len(own), bool)
    kept[order] = ~(np.cumsum(p) - p >= mass - EDGE) | (mass >= 1)
    kept[order[0]] = True
    return kept


def likeliest(own: Row) -> NDArray[np.int64]:
    """[V]: the ids, the likeliest first, equal ones by id."""
    return np.argsort(-own, kind="stable")
