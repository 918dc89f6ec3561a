"""What files that lie cost: the worst time and memory, each read in a process with limits.

`python -m bench.hostile gguf` is that process: it reads the files named on its standard input
and prints for each its outcome, seconds and megabytes. Memory is measured through Linux's /proc.
"""
from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.figure import Figure, at_most, exactly
from bench.trees import load_test

ROOT = Path(__file__).resolve().parent.parent
STATUS, REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
LIMIT_S, LIMIT_MB = 2.0, 100.0
ADDRESS_SPACE = 3 * 2**30
Named = Iterable[tuple[str, bytes]]


def figures() -> Iterator[Figure]:
    if not REFS.exists():
        raise OSError("peak memory is measured through Linux's /proc: run this section there")
    gguf, tensors = load_test("files/test_gguf"), load_test("files/test_safetensors")
    yield from costs("gguf", small(gguf.HOSTILE), (
        (name, gguf.file(keys, infos)) for name, keys, infos in gguf.greedy_files()))
    yield from costs("safetensors", small(tensors.HOSTILE), (
        (name, tensors.file(header, bytes(7))) for name, header in tensors.greedy_headers()))


def small(corpus: dict[str, tuple[bytes, str]]) -> Named:
    return ((name, content) for name, (content, _) in corpus.items())


def costs(kind: str, lies: Named, greedy: Named) -> Iterator[Figure]:
    """`lies` share a process; each of the `greedy`, large files whose counts are true, has one."""
    with tempfile.TemporaryDirectory() as folder:
        found = read(kind, Path(folder), lies)
        few = len(found)
        for one in greedy:
            found += read(kind, Path(folder), [one])
    yield exactly(f"{kind}: files refused", sum(row[1] == "refused" for row in found), len(found),
                  note=f"{few} that lie, {len(found) - few} that are greedy")
    slowest, largest = max(found, key=lambda row: row[2]), max(found, key=lambda row: row[3])
    yield at_most(f"{kind}: slowest", slowest[2], LIMIT_S, "s", slowest[0])
    yield at_most(f"{kind}: memory beyond imports", largest[3], LIMIT_MB, "MB", largest[0])


def read(kind: str, folder: Path, files: Named) -> list[tuple[str, str, float, float]]:
    """Name, outcome, seconds and megabytes of every file."""
    names = []
    for i, (name, content) in enumerate(files):
        (folder / str(i)).write_bytes(content)
        names.append(name)
    done = subprocess.run([sys.executable, "-m", "bench.hostile", kind], cwd=ROOT, text=True,
                          input="\n".join(str(folder / str(i)) for i in range(len(names))),
                          stdout=subprocess.PIPE, timeout=300, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [(name, *row) for name, row in zip(names, rows, strict=True)]


def resident() -> tuple[float, float]:
    """Megabytes resident at most since the last call, and now."""
    most, now = (re.search(rf"{name}:\s*(\d+)", STATUS.read_text()) for name in ("VmHWM", "VmRSS"))
    REFS.write_text("5")
    return (int(most[1]) / 1024, int(now[1]) / 1024) if most and now else (0.0, 0.0)


def cost(reader: Callable[[Path], Any], path: Path) -> tuple[str, float, float]:
    from unspool.core.errors import FormatError

    _, before = resident()
    begun = time.perf_counter()
    try:
        found = reader(path)
        for tensor in getattr(found, "tensors", found).values():
            tensor.numpy()
        outcome = "read"
    except FormatError:
        outcome = "refused"
    except BaseException as error:
        outcome = repr(error)
    return outcome, time.perf_counter() - begun, resident()[0] - before


def main() -> None:
    import resource

    from unspool.files.gguf import read_gguf
    from unspool.files.safetensors import read_safetensors

    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    reader = read_gguf if sys.argv[1] == "gguf" else read_safetensors
    for line in sys.stdin:
        print(json.dumps(cost(reader, Path(line.rstrip("\n")))), flush=True)


if __name__ == "__main__":
    main()
