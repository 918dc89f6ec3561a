"""Every law of the tests, on every strategy and memory of its matrix: for the float64 reference,
and bit for bit on the compiled path."""
from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from bench.figure import Figure, exactly
from bench.trees import load_test


def figures() -> Iterator[Figure]:
    faults, laws = load_test("laws/faults"), load_test("laws/laws")
    subjects = load_test("laws/subjects")
    for kind, make in subjects.SUBJECTS.items():
        subject = make()
        verdicts: dict[str, Counter[str]] = defaultdict(Counter)
        for law, names in laws.matrix(subject.exact):
            verdicts[law.__name__][faults.verdict(law, subject, *names)] += 1
        subject.close_all()
        for name, found in verdicts.items():
            broken = ", ".join(verdict for verdict in found if verdict != "ok")
            yield exactly(f"{kind}: {name}", found["ok"], found.total(), note=broken)
    inverse = faults.verdict(laws.company_changes_no_bit, subjects.on_blas())
    yield exactly("products through a BLAS: company_changes_no_bit", int(inverse == "ok"), 0,
                  note=inverse)
