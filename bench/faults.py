"""Faults planted in the engine one at a time: each is caught by a law, none by an exception."""
from __future__ import annotations

from collections.abc import Iterator

from bench.figure import Figure, at_least, exactly
from bench.trees import load_test


def figures() -> Iterator[Figure]:
    faults = load_test("laws/faults")
    for fault in faults.FAULTS:
        caught, broken = faults.catchers(fault)
        names = sorted({label.partition("[")[0] for label in caught})
        yield at_least(f"{fault.__name__}: caught", len(caught), 1, "times", ", ".join(names))
        if broken:
            yield exactly(f"{fault.__name__}: exceptions", len(broken), 0, note=broken[0])
