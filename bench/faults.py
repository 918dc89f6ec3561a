"""Faults planted in the engine and its kernels: each is caught by a law, none by an exception."""
from __future__ import annotations

from collections.abc import Iterator

from bench.figure import Figure, at_least, exactly
from bench.trees import load_test

ENOUGH = 5  # times that a fault is caught, then no other law is asked


def figures() -> Iterator[Figure]:
    faults = load_test("laws/faults")
    for fault in faults.FAULTS:
        caught, broken = faults.catchers(fault, ENOUGH)
        names = sorted({label.partition("[")[0] for label in caught})
        yield at_least(f"{fault.__name__}: caught", len(caught), 1, "times", ", ".join(names))
        if broken:
            yield exactly(f"{fault.__name__}: exceptions", len(broken), 0, note=broken[0])
