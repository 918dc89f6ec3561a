"""Beam search on the default model: what `unspool bench beam` measures, with its bounds."""
from __future__ import annotations

import sys
from collections.abc import Iterator

from bench.figure import Figure, at_least, at_most, seen
from unspool.bench.beams import PEER, main
from unspool.bench.session import Plan, Session

ROUNDS, WIDTH, NEW = 3, 5, 128


def figures() -> Iterator[Figure]:
    plan = Plan(numerics=("default",), peers=(PEER,), python=sys.executable, rounds=ROUNDS)
    report = Session(plan, lambda text: None).beam(WIDTH, NEW)
    ours, note = report["ours"], f"median of {ROUNDS}"
    yield seen(f"{main(WIDTH)}, {NEW} tokens", ours["seconds"], "s", note)
    yield at_most(f"time by that of {WIDTH} samples", report["times_samples"]["default"], 1.3, "",
                  "median of the rounds' ratios")
    if PEER not in report["peers"]:
        raise RuntimeError(f"{PEER}: {report['missing'].get(PEER)}")
    yield at_least(f"times faster than {PEER}", report["ratios"][PEER], 5, "x", "goal: 7")
    yield seen(f"best text's tokens that are {PEER}'s", ours["equal_tokens"], "",
               f"of {NEW}, in 16-bit activations")
