"""Rules that keep the likeliest tokens. Exactly as many as asked; ties go to the lowest id."""
from __future__ import annotations

from typing import Any

import numpy as np

from unspool.kernels.shaping import cuts
from unspool.kernels.shaping.cuts import EDGE
from unspool.kernels.shaping.recipe import Operation
from unspool.kernels.shaping.row import CUT, NEEDS_MASS
from unspool.rules.rows import Rows
from unspool.rules.rule import rule


@rule(Operation(cuts.greedy, CUT))
def greedy(rows: Rows) -> Any:
    """Keep the likeliest token."""
    return rows.cut(rows.rank >= 1)


@rule(Operation(cuts.top_k, CUT))
def top_k(rows: Rows, k: Any, ties: Any = 0) -> Any:
    """Keep the k likeliest tokens (Fan et al. 2018, arXiv:1805.04833); 0 and -1 keep all.

    `ties` 1 keeps also those that are as likely as the last of them, as transformers does.
    """
    xp, last = rows.xp, kth(rows, k)
    least = xp.take_along_axis(rows.ordered(rows.values, -rows.values), last, axis=-1)
    beyond = xp.where(ties > 0, rows.values < least, rows.rank >= k)
    return rows.cut(beyond & (k > 0))


def kth(rows: Rows, k: Any) -> Any:
    """The place of the k-th token as an index [R, 1]."""
    most = rows.values.shape[-1] - 1
    return rows.xp.astype(rows.xp.clip(k - 1, 0, most), rows.xp.int64)


@rule(Operation(cuts.top_p, CUT, NEEDS_MASS))
def top_p(rows: Rows, p: Any) -> Any:
    """Keep the smallest set of likeliest tokens with mass p (Holtzman et al., arXiv:1904.09751)."""
    return rows.cut((rows.above >= p - EDGE) & (p < 1))


@rule(Operation(cuts.min_p, CUT))
def min_p(rows: Rows, p: Any) -> Any:
    """Keep tokens at least p times as likely as the likeliest (arXiv:2407.01082)."""
    with np.errstate(divide="ignore"):  # p = 0 keeps all
        return rows.cut(rows.values < rows.maximum + rows.xp.log(p))
