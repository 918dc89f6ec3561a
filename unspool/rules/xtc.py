"""The rule that now and then excludes the top choices."""
from __future__ import annotations

from typing import Any

import numpy as np

from unspool.kernels.reading.noise import Place
from unspool.kernels.reading.philox import uniform
from unspool.kernels.shaping import xtc as kernels
from unspool.kernels.shaping.cuts import NEAR
from unspool.kernels.shaping.recipe import Operation
from unspool.kernels.shaping.row import CUT, NEEDS_MASS
from unspool.kernels.shaping.xtc import OWN_DRAW
from unspool.rules.rows import Rows
from unspool.rules.rule import Packed, RuleValue, rule


def with_ids(rule: RuleValue) -> Packed:
    """The numbers, then where the protected ids lie and how many there are."""
    ids = np.array(rule.data, np.int64)
    return (*rule.numbers, ids.ctypes.data, len(ids)), ids


def chance(place: Place | None) -> float:
    """A uniform number of this row and step alone."""
    assert place is not None, "a rule that draws needs to know its place"
    seed, choice, position, draw = place
    return float(uniform(seed, choice, position, draw + OWN_DRAW, np.zeros(1, np.int64))[0])


@rule(Operation(kernels.xtc, CUT, NEEDS_MASS), pack=with_ids)
def xtc(rows: Rows, probability: Any, threshold: Any) -> Any:
    """With this probability, drawn once for a row, exclude the top choices: remove all tokens with
    a probability of at least `threshold` except the least likely of them.

    Nothing is removed where fewer than two are so likely, or where one of the protected tokens, the
    ids in `data`, would be (p-e-w 2024, text-generation-webui pull request 6335, `XTCLogitsWarper`;
    llama.cpp, `llama_sampler_xtc`). Probability 0 keeps all.
    """
    xp = rows.xp
    drawn = rows.like(np.array([[chance(place)] for place in rows.places]))
    tokens = np.arange(rows.values.shape[-1])
    safe = rows.like(np.stack([np.isin(tokens, ids) for ids in rows.data]))
    with np.errstate(divide="ignore"):
        likely = rows.kept & (rows.logprobs >= xp.log(threshold) - NEAR)
    removed = likely & (rows.rank < rows.sum(xp.astype(likely, xp.int64)) - 1)
    spoilt = xp.any(removed & (safe > 0), axis=-1, keepdims=True)
    return rows.drop(removed & ~spoilt & (drawn <= probability) & (probability > 0))
