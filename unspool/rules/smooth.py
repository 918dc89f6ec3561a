"""Rules that sharpen or flatten a distribution by what it is like."""
from __future__ import annotations

from typing import Any

import numpy as np

from unspool.kernels.shaping import smooth
from unspool.kernels.shaping.recipe import Operation
from unspool.kernels.shaping.row import LEAST_DIVISOR, MAP, NEEDS_ENTROPY, SCALE
from unspool.rules.rows import Rows
from unspool.rules.rule import rule


@rule(Operation(smooth.dynamic_temperature, SCALE, NEEDS_ENTROPY))
def dynamic_temperature(rows: Rows, t_min: Any, t_max: Any, exponent: Any = 1) -> Any:
    """Divide by a temperature between t_min, for a row that is sure, and t_max, for one that knows
    nothing: t_min + (t_max - t_min) (H / log n) ** exponent.

    H is the entropy of the n tokens that are left, of each row alone; one token alone is left as it
    is (llama.cpp, `llama_sampler_temp_ext`). The temperature is at least 1e-300.
    """
    xp = rows.xp
    most = xp.log(xp.where(rows.count > 1, rows.count, 2.0))
    share = xp.clip(rows.entropy / most, 0.0, 1.0)
    t = xp.where(rows.count > 1, t_min + (t_max - t_min) * share ** exponent, 1.0)
    with np.errstate(over="ignore"):
        divided = (rows.values - rows.maximum) / xp.clip(t, LEAST_DIVISOR, None)
    return xp.where(t == 1, rows.values, divided)


@rule(Operation(smooth.smoothing, MAP))
def smoothing(rows: Rows, factor: Any, curve: Any = 1) -> Any:
    """Let logits fall off as a curve of their distance d to the largest: largest -
    (3 - curve) / 2 factor d^2 + (curve - 1) / 2 factor d^3 (text-generation-webui,
    `QuadraticSamplingLogitsWarper`; d is negative). Factor 0 changes nothing."""
    xp = rows.xp
    d = xp.where(rows.kept, rows.values - rows.maximum, 0.0)
    square, cube = (curve - 3) / 2 * factor, (curve - 1) / 2 * factor
    with np.errstate(over="ignore"):
        curved = rows.maximum + d * d * (square + cube * d)
    return xp.where(rows.kept & (factor > 0), curved, rows.values)
