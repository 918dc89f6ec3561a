"""Rules that sharpen or flatten a distribution without removing a token."""
from __future__ import annotations

from typing import Any

import numpy as np

from unspool.kernels.shaping import scales
from unspool.kernels.shaping.recipe import Operation
from unspool.kernels.shaping.row import SCALE
from unspool.rules.rows import Rows
from unspool.rules.rule import rule


@rule(Operation(scales.temperature, SCALE))
def temperature(rows: Rows, t: Any) -> Any:
    """Divide the logits by t > 0: above 1 flatter, below 1 sharper. The largest is moved to 0
    first, so that nothing overflows. 1 changes no bit."""
    with np.errstate(over="ignore"):
        divided = (rows.values - rows.maximum) / t
    return rows.xp.where(t == 1, rows.values, divided)
