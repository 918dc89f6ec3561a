"""Prints every figure of the project with its bound, and exits 1 if one is missed.

`python -m bench.figures` runs all sections, `python -m bench.figures parity work` some of them,
`--json FILE` also writes them down. Run it on a machine that does nothing else: three figures are
times.
"""
from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.figure import Figure

# What a section shows, and the module that measures it, imported when it is run.
SECTIONS = {
    "start": ("the import and --help, in fresh processes", "bench.start"),
    "load": ("load() of the default model, in fresh processes", "bench.load"),
    "next": ('the ten likeliest tokens after "The color of sky is"', "bench.top"),
    "logits": ("reference logits against transformers in float32", "bench.logits"),
    "parity": ("greedy choices on the peer's own texts", "bench.parity"),
    "quality": ("default, fast and llama.cpp against float64", "bench.quality"),
    "work": ("what was computed, by the counters", "bench.work"),
    "laws": ("every law on every strategy and memory", "bench.laws"),
    "faults": ("planted faults, and the laws that catch them", "bench.faults"),
    "hostile": ("files that lie, read in processes of their own", "bench.hostile"),
    "decode": ("speed of the reference path", "bench.decode"),
    "shape": ("the rules, beside transformers' processors", "bench.shape"),
    "beam": ("beam search, beside transformers and beside sampling", "bench.beam"),
    "hybrid": ("beams that hand over to sampling, beside each alone", "bench.hybrid"),
    "fork": ("what a fork takes, and the first write after it", "bench.fork"),
    "host": ("what a step costs beside the model", "bench.host"),
}
Section = Callable[[], Iterator[Figure]]


def section(name: str) -> Iterator[Figure]:
    figures: Section = import_module(SECTIONS[name][1]).figures
    yield from figures()


def machine() -> dict[str, Any]:
    """What the figures depend on: the processor's kind, not its name or its owner."""
    versions = {}
    for package in ("torch", "transformers", "numpy", "tokenizers"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "missing"
    return {"system": platform.system(), "processor": platform.machine(),
            "cores": os.cpu_count(), "python": platform.python_version(),
            "load": load_average(), **versions}


def load_average() -> float | None:
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def show(names: Sequence[str], measure: Callable[[str], Iterator[Figure]]) -> list[dict[str, Any]]:
    """Print the sections as they are measured; their figures as plain data."""
    found = []
    for name in names:
        begun = time.perf_counter()
        print(f"\n{name}: {SECTIONS[name][0]}", flush=True)
        for figure in measure(name):
            print(figure.line(), flush=True)
            found.append(figure.json(name))
        print(f"{name}: {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    return found


def main(args: Sequence[str] | None = None,
         measure: Callable[[str], Iterator[Figure]] = section) -> int:
    """Exit status: 0 if every bound is kept, else 1."""
    parser = argparse.ArgumentParser(prog="python -m bench.figures", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION",
                        help=f"{', '.join(SECTIONS)} (default: all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write them to FILE")
    asked = parser.parse_args(args)
    if unknown := [name for name in asked.sections if name not in SECTIONS]:
        parser.error(f"no section {unknown[0]!r}: there are {', '.join(SECTIONS)}")
    facts = machine()
    print("  ".join(f"{key} {value}" for key, value in facts.items()))
    found = show(asked.sections or list(SECTIONS), measure)
    missed = [figure for figure in found if not figure["ok"]]
    print(f"\n{len(found)} figures, {len(missed)} missed")
    for figure in missed:
        print(f"  {figure['section']}: {figure['what']}")
    if asked.json:
        asked.json.write_text(json.dumps({"machine": facts, "figures": found}, indent=1) + "\n")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
