"""Rules that hold a text's end off, or bring it on. Their data is the ids that end a text."""
from __future__ import annotations

from typing import Any

import numpy as np

from unspool.kernels.shaping import tokens
from unspool.kernels.shaping.recipe import Operation
from unspool.kernels.shaping.row import EDIT
from unspool.kernels.shaping.tokens import LARGEST
from unspool.rules.ids import pack_ids
from unspool.rules.rows import Rows
from unspool.rules.rule import rule


@rule(Operation(tokens.min_length, EDIT), recalls=True, pack=pack_ids)
def min_length(rows: Rows, total: Any) -> Any:
    """No end before the text has `total` tokens, its prompt counted."""
    return rows.drop(rows.marked(rows.data) & (rows.length < total))


@rule(Operation(tokens.min_new_tokens, EDIT), recalls=True, pack=pack_ids)
def min_new_tokens(rows: Rows, n: Any) -> Any:
    """No end before n tokens are written."""
    return rows.drop(rows.marked(rows.data) & (rows.written < n))


@rule(Operation(tokens.exponential_decay, EDIT), recalls=True, pack=pack_ids)
def exponential_decay(rows: Rows, start: Any, factor: Any) -> Any:
    """Behind `start` written tokens the end grows likelier: i tokens later
    l + |l| * (factor^i - 1) (transformers: ExponentialDecayLengthPenalty)."""
    xp, x, beyond = rows.xp, rows.values, rows.written - start
    with np.errstate(over="ignore"):
        growth = xp.clip(factor ** xp.clip(beyond, min=0), max=LARGEST)
    ends = rows.marked(rows.data) & (beyond > 0) & rows.kept
    return xp.where(ends, xp.clip(x + xp.abs(x) * (growth - 1), max=LARGEST), x)
