"""Every law of the tests, on every strategy and memory of its matrix."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from bench.figure import Figure, exactly
from bench.trees import load_test


def figures() -> Iterator[Figure]:
    faults, laws = load_test("laws/faults"), load_test("laws/laws")
    for law in (*laws.MATRIX, *laws.SINGLE):
        runs = [(name,) for name in laws.EVERY] if law in laws.MATRIX else [()]
        verdicts = Counter(faults.verdict(law, *names) for names in runs)
        broken = ", ".join(verdict for verdict in verdicts if verdict != "ok")
        yield exactly(law.__name__, verdicts["ok"], len(runs), note=broken)
