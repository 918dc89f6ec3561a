"""Mirostat: cuts whose bound moves so that the surprise of the written tokens stays near a target.

What they remember is mu, the most surprise allowed, in bits. It starts at twice the target and
moves against what each written token had too much: mu - eta (surprise - tau). The surprise is that
among the tokens that were left (as llama.cpp has it; the paper's authors take it before the cut).
"""
from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, log
from typing import Any

import numpy as np

from unspool.core.prefix import Candidate
from unspool.kernels.shaping import mirostat
from unspool.kernels.shaping.cuts import NEAR
from unspool.kernels.shaping.mirostat import BEST_OF_MIROSTAT, LN2
from unspool.kernels.shaping.recipe import Operation
from unspool.kernels.shaping.row import CUT, NEEDS_MASS
from unspool.rules.rows import Rows
from unspool.rules.rule import RuleValue, rule


def start(rule: RuleValue, prompt: Sequence[int]) -> float:
    return float(2 * rule.numbers[0])


def after(rule: RuleValue, mu: float, token: int, fact: Candidate) -> float:
    """A token that was removed, and yet written by force, says nothing of the bound."""
    tau, eta = rule.numbers
    return mu - eta * (-fact.processed / LN2 - tau) if isfinite(fact.processed) else mu


def words(mu: float) -> tuple[float]:
    return (float(mu),)


def mus(rows: Rows) -> Any:
    """[R, 1]"""
    return rows.like(np.array(rows.states, np.float64)[:, None])


@rule(Operation(mirostat.mirostat_1, CUT), start=start, after=after, words=words)
def mirostat_1(rows: Rows, tau: Any, eta: Any) -> Any:
    """Keep the k likeliest tokens, k such that their surprise is about mu if probabilities fall by
    Zipf's law with the exponent of the 100 likeliest (Basu et al. 2021, arXiv:2007.14966;
    llama.cpp, `llama_sampler_mirostat`: k is rounded down, at least 1).

    mu starts at 2 tau; each written token takes eta (surprise - tau) off it.
    """
    xp, vocab = rows.xp, rows.values.shape[-1]
    best = rows.ordered(rows.values, -rows.values)[:, :BEST_OF_MIROSTAT]
    rank = np.arange(1, best.shape[-1])
    steps = rows.like(np.log((rank + 1) / rank))
    there = best[:, 1:] > -xp.inf
    falls = xp.where(there, best[:, :-1] - best[:, 1:], 0.0)
    with np.errstate(all="ignore"):  # one token, or equal ones: then k is 1 or all
        s = rows.sum(steps * falls) / rows.sum(xp.where(there, steps * steps, 0.0))
        excess = xp.where(s == 1, 1e-12, s - 1)  # next to the limit, which 0 / 0 is not
        full = -excess / xp.expm1(-excess * log(vocab))
        k = xp.exp((xp.log(full) + mus(rows) * LN2 + NEAR) / s)
    return rows.cut(rows.rank >= xp.floor(xp.where(k > 1, k, 1.0)))


@rule(Operation(mirostat.mirostat_2, CUT, NEEDS_MASS), start=start, after=after, words=words)
def mirostat_2(rows: Rows, tau: Any, eta: Any) -> Any:
    """Keep tokens whose surprise, -log2 p, is at most mu (Basu et al. 2021, arXiv:2007.14966;
    llama.cpp, `llama_sampler_mirostat_v2`).

    mu starts at 2 tau; each written token takes eta (surprise - tau) off it.
    """
    return rows.cut(rows.logprobs < -mus(rows) * LN2 - NEAR)
