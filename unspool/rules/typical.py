"""The rule that keeps tokens whose surprise is near the one to be expected."""
from __future__ import annotations

from typing import Any

import numpy as np

from unspool.kernels.shaping import typical
from unspool.kernels.shaping.cuts import EDGE
from unspool.kernels.shaping.recipe import Operation
from unspool.kernels.shaping.row import CUT, NEEDS_ENTROPY, NEEDS_MASS
from unspool.kernels.shaping.typical import GRAIN
from unspool.rules.rows import Rows
from unspool.rules.rule import rule


@rule(Operation(typical.typical_p, CUT, NEEDS_MASS | NEEDS_ENTROPY))
def typical_p(rows: Rows, mass: Any, ties: Any = 0) -> Any:
    """Keep the smallest set of tokens with this mass whose surprise, -log p, is nearest to the
    entropy (Meister et al. 2022, arXiv:2202.00666); 1 keeps all. The likeliest may go.

    What stays is a range of the tokens as they are ranked, so of two that are equally near the
    likelier comes first. `ties` 1 keeps all that are as near as the last, as transformers does.
    """
    xp = rows.xp
    with np.errstate(over="ignore"):
        surplus = xp.round((-rows.logprobs - rows.entropy) / GRAIN)
    outwards = xp.where(surplus < 0, -rows.rank, rows.rank)
    order = rows.order_by(outwards)
    nearest_first = xp.argsort(xp.take_along_axis(xp.abs(surplus), order, axis=-1), axis=-1,
                               stable=True)
    order = xp.take_along_axis(order, nearest_first, axis=-1)
    place = rows.order_by(order)
    held = xp.cumulative_sum(xp.take_along_axis(rows.probs, order, axis=-1), axis=-1)
    short = xp.astype(held < mass - EDGE, xp.int64)
    last = xp.clip(rows.sum(short), None, held.shape[-1] - 1)
    far = xp.take_along_axis(xp.abs(surplus), xp.take_along_axis(order, last, axis=-1), axis=-1)
    beyond = xp.where(ties > 0, xp.abs(surplus) > far, place > last)
    return rows.drop(beyond & (mass < 1))
