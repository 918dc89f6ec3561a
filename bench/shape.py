"""Shaping: what `unspool bench shape` measures, with its bounds, and how exactly the records of a
real text account for what its rules removed."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.figure import Figure, at_least, at_most, seen
from bench.pair import ours
from unspool.bench.session import Plan, Session
from unspool.bench.shaping import MIXED, ONE, PEER

ROUNDS = 5
PROMPT = "The color of sky is"
RULES: dict[str, Any] = {
    "repetition_penalty": 1.1, "dry_multiplier": 0.8, "temperature": 0.9, "top_k": 200,
    "top_p": 0.95, "min_p": 0.02, "xtc_probability": 0.5, "seed": 1, "max_new_tokens": 40}


def figures() -> Iterator[Figure]:
    report = Session(Plan(peers=(PEER,), rounds=ROUNDS), lambda text: None).shape()
    points = report["ours"]["points"]
    note = f"median of {ROUNDS}, kernels and Python, picks included"
    yield at_most(f"{ONE}, five rules", points[ONE]["median"], 0.2, "ms", note)
    yield at_most(MIXED, points[MIXED]["median"], 8, "ms", note)
    if PEER in report["peers"]:
        yield at_least(f"{ONE}: times faster than {PEER}", report["ratios"][PEER], 10, "x")
        yield seen(f"{MIXED}: times faster", report["ratios_at"][MIXED][PEER], "x")
    yield at_most("removed mass not accounted for", unaccounted(), 1e-6, "",
                  "the worst of 40 tokens")


def unaccounted() -> float:
    """How far the masses that the stages removed, and what is left, are from 1."""
    out, worst = ours("default").generate(PROMPT, why=True, **RULES), 0.0
    for position in range(len(out.tokens)):
        why = out.why(position)
        row, removed = why.row, sum(stage.raw_mass for stage in why.stages)
        left = float(np.exp(row.raw[row.shaped.ids] - row.norm).sum())
        worst = max(worst, abs(removed + left - 1))
    return worst
