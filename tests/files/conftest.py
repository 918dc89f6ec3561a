"""A process with limits, in which hostile files are read: any crash, hang or greed shows."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Reads every file named on stdin with one reader. CPU time, not wall-clock time, is what is
# limited for each file, so that a busy machine changes nothing.
WORKER = r"""
import json, re, resource, signal, sys
from pathlib import Path
import numpy
from unspool.core.errors import FormatError
from unspool.files.gguf import read_gguf
from unspool.files.safetensors import read_safetensors

def late(*_):
    raise TimeoutError

def peak():
    # most memory resident since the last call, and memory resident now, in MB
    status = Path("/proc/self/status").read_text()
    found = [int(re.search(name + r":\s*(\d+)", status)[1]) / 1024 for name in ("VmHWM", "VmRSS")]
    Path("/proc/self/clear_refs").write_text("5")
    return found

kind, cpu_s = sys.argv[1], float(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))
signal.signal(signal.SIGPROF, late)
for line in sys.stdin:
    path = Path(line.rstrip("\n"))
    _, before = peak()
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    try:
        tensors = read_gguf(path).tensors if kind == "gguf" else read_safetensors(path)
        for tensor in tensors.values():
            assert tensor.numpy().shape == tensor.shape
        outcome = "loaded"
    except FormatError as error:
        outcome = "refused: " + str(error)
    except BaseException as error:
        outcome = "WRONG: " + repr(error)
    signal.setitimer(signal.ITIMER_PROF, 0)
    print(json.dumps([path.name, outcome, peak()[0] - before]), flush=True)
"""


@pytest.fixture
def read_limited():
    """read_limited("gguf" | "safetensors", paths) -> {name: (outcome, MB grown at most)}."""

    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("peak memory is measured through Linux's /proc")

    def run(kind, paths, cpu_s=2.0):
        done = subprocess.run(
            [sys.executable, "-c", WORKER, kind, str(cpu_s)],
            input="\n".join(map(str, paths)), capture_output=True, text=True, timeout=250,
            cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert done.returncode == 0, (done.returncode, done.stderr[-500:], rows[-1:])
        assert len(rows) == len(paths)
        wrong = [row for row in rows if row[1].startswith("WRONG")]
        assert not wrong, wrong
        assert max(row[2] for row in rows) <= 100, max(rows, key=lambda row: row[2])
        return {name: (outcome, grown) for name, outcome, grown in rows}

    return run
