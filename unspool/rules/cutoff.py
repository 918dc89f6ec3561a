"""Rules that keep tokens above a bound which the row itself sets. The likeliest always stays; where
the bound is one of probability, so do those that are as likely, as in transformers."""
from __future__ import annotations

from typing import Any

import numpy as np

from unspool.kernels.shaping import cutoff
from unspool.kernels.shaping.cutoff import BEST_OF_TOP_H
from unspool.kernels.shaping.cuts import NEAR
from unspool.kernels.shaping.recipe import Operation
from unspool.kernels.shaping.row import CUT, NEEDS_ENTROPY, NEEDS_MASS
from unspool.rules.rows import Rows
from unspool.rules.rule import rule


def reaching(rows: Rows, bound: Any) -> Any:
    """Tokens with this log-probability, or that of the likeliest."""
    return rows.drop((rows.logprobs < bound - NEAR) & (rows.values < rows.maximum))


@rule(Operation(cutoff.epsilon_cutoff, CUT, NEEDS_MASS))
def epsilon_cutoff(rows: Rows, epsilon: Any) -> Any:
    """Keep tokens with a probability of at least epsilon (Hewitt et al. 2022, arXiv:2210.15191);
    0 keeps all."""
    with np.errstate(divide="ignore"):
        return reaching(rows, rows.xp.log(epsilon))


@rule(Operation(cutoff.eta_cutoff, CUT, NEEDS_MASS | NEEDS_ENTROPY))
def eta_cutoff(rows: Rows, epsilon: Any) -> Any:
    """Keep tokens with a probability of at least min(epsilon, sqrt(epsilon) exp(-H)), H being the
    row's entropy in nats (Hewitt et al. 2022, arXiv:2210.15191); 0 keeps all."""
    xp = rows.xp
    with np.errstate(divide="ignore"):
        return reaching(rows, xp.minimum(xp.log(epsilon), xp.log(epsilon) / 2 - rows.entropy))


@rule(Operation(cutoff.top_a, CUT, NEEDS_MASS))
def top_a(rows: Rows, a: Any) -> Any:
    """Keep tokens with a probability of at least a times the square of the largest one
    (text-generation-webui, `TopALogitsWarper`); 0 keeps all."""
    xp = rows.xp
    with np.errstate(divide="ignore"):
        return reaching(rows, xp.log(a) + 2 * xp.max(rows.logprobs, axis=-1, keepdims=True))


@rule(Operation(cutoff.top_n_sigma, CUT))
def top_n_sigma(rows: Rows, n: Any) -> Any:
    """Keep tokens whose logit is at most n standard deviations below the largest; 0 keeps all.

    The deviation is that of the population of all logits that are finite (Tang et al. 2024,
    arXiv:2411.07641; llama.cpp, `llama_sampler_top_n_sigma`). So a temperature before it changes
    nothing, a cut before it does.
    """
    xp, kept = rows.xp, rows.kept
    gaps = xp.where(kept, rows.values - rows.maximum, 0.0)
    far = xp.where(kept, gaps - rows.sum(gaps) / rows.count, 0.0)
    with np.errstate(over="ignore"):
        sigma = xp.sqrt(rows.sum(far * far) / rows.count)
    return rows.cut((rows.values < rows.maximum - n * sigma - NEAR) & (n > 0))


@rule(Operation(cutoff.top_h, CUT))
def top_h(rows: Rows, share: Any) -> Any:
    """Of the 100 likeliest tokens, renormalised, keep the first as long as their part of the
    entropy, the sum of -p log p, is at most this share of it (Potraghloo et al. 2025,
    arXiv:2509.02510; transformers, `TopHLogitsWarper`); 0 keeps all."""
    beyond = rows.rank >= BEST_OF_TOP_H
    best = Rows(rows.drop(beyond), xp=rows.xp)
    spent = best.before(best.surprise, -best.values) + best.surprise
    return rows.cut((beyond | (spent > share * best.entropy + NEAR)) & (share > 0))


@rule(Operation(cutoff.tfs_z, CUT, NEEDS_MASS))
def tfs_z(rows: Rows, z: Any) -> Any:
    """Tail-free sampling: sort the probabilities, take the size of their second differences, and
    behind the likeliest token keep others as long as the sum of these is at most z of the whole
    (Bricken 2019, trentonbricken.com/Tail-Free-Sampling; text-generation-webui,
    `TailFreeLogitsWarper`, which always drops the last of the vocabulary); 1 keeps all.
    """
    xp, key = rows.xp, -rows.values
    p = rows.ordered(rows.probs, key)
    if p.shape[-1] < 3:  # there is no second difference
        return rows.values
    slope = p[:, 1:] - p[:, :-1]
    bend = xp.abs(slope[:, 1:] - slope[:, :-1])
    passed = xp.cumulative_sum(bend, axis=-1) > (z + NEAR) * rows.sum(bend)
    ends = xp.zeros_like(passed[:, :1])
    gone = xp.concat([ends, passed, ~ends], axis=-1)
    return rows.cut(rows.unordered(gone, key) & (z < 1))
