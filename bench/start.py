"""How long the import and `--help` take, each in fresh processes, and what they bring along."""
from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.figure import Figure, at_most, exactly, seen

ROOT = Path(__file__).resolve().parent.parent
RUNS = 7
LIMIT_MS = 200
HEAVY = ("torch", "transformers", "numpy")
CODE = {
    "import unspool": "import unspool",
    "unspool --help": "from unspool.cli import main; main(['--help'])",
}
PROBE = (
    "import atexit, sys\n"
    f"atexit.register(lambda: print(*[m for m in {HEAVY} if m in sys.modules], file=sys.stderr))\n"
)


def figures() -> Iterator[Figure]:
    """Wall-clock time from the start of the interpreter to its end, in milliseconds."""
    yield seen("an interpreter that does nothing", milliseconds("pass"), "ms")
    for what, code in CODE.items():
        yield at_most(what, milliseconds(code), LIMIT_MS, "ms", f"median of {RUNS}")
        heavy = fresh(PROBE + code).split()
        yield exactly(f"{what}: heavy modules", len(heavy), 0, note=" ".join(heavy))


def milliseconds(code: str) -> float:
    """The median; one run before it fills the page cache and the compiled files."""
    fresh(code)
    times = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        fresh(code)
        times.append(1000 * (time.perf_counter() - begun))
    return median(times)


def fresh(code: str) -> str:
    """What a new interpreter says on stderr."""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True,
                          timeout=120, check=True)
    return done.stderr
