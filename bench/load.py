"""How long `load()` takes in a fresh process, and where the time goes.

`python -m bench.load` is that process: imports done and the file read once, it loads the default
model and prints its seconds as JSON. The file's digest is computed, not remembered: that is the
slower of the two cases. The kernels were compiled before.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from bench.figure import Figure, at_most, seen
from unspool.core.folders import cache_folder

ROOT = Path(__file__).resolve().parent.parent
RUNS = 5
LIMIT_S = 0.8
WHOLE = "load()"


def figures() -> Iterator[Figure]:
    runs = [seconds() for _ in range(RUNS)]
    middle = {part: median(run[part] for run in runs) for part in runs[0]}
    yield at_most(WHOLE, middle.pop(WHOLE), LIMIT_S, "s", f"median of {RUNS}")
    for part, spent in middle.items():
        yield seen(f"  {part}", spent, "s")


def seconds() -> dict[str, float]:
    """One run's seconds, whole and by part, with an empty memory of digests."""
    from unspool.files import store

    known, path = store.models()[0]
    if path is None:
        store.find(known.name)  # says how to fetch it
    with tempfile.TemporaryDirectory() as cache:
        (Path(cache) / known.file).symlink_to(Path(str(path)).resolve())
        compiled = cache_folder() / "kernels"
        compiled.mkdir(parents=True, exist_ok=True)
        (Path(cache) / "kernels").symlink_to(compiled.resolve(), target_is_directory=True)
        done = subprocess.run([sys.executable, "-m", "bench.load"], cwd=ROOT, check=True,
                              env={**os.environ, "UNSPOOL_CACHE": cache}, timeout=300,
                              stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def timed(act: Callable[..., Any], spent: dict[str, float], part: str) -> Callable[..., Any]:
    def call(*args: Any, **more: Any) -> Any:
        begun = time.perf_counter()
        try:
            return act(*args, **more)
        finally:
            spent[part] = spent.get(part, 0.0) + time.perf_counter() - begun

    return call


def main() -> None:
    from unspool.files import folder, store
    from unspool.llm import load as top
    from unspool.models import native

    for _, path in store.models():
        if path is not None:
            path.read_bytes()
    spent: dict[str, float] = {}
    for part, where, name in (
        ("find the file, sha256", store, "find"),
        ("header", folder, "read_gguf"),
        ("pack the weights", native, "read"),
        ("fingerprint", native, "fingerprint"),
        ("kernels, buffers, threads", native, "Native"),
        ("tokenizer, meanwhile", top, "from_gguf"),
    ):
        setattr(where, name, timed(getattr(where, name), spent, part))
    lm = timed(top.load, spent, WHOLE)()
    lm.close()
    print(json.dumps({WHOLE: spent.pop(WHOLE), **spent}))


if __name__ == "__main__":
    main()
