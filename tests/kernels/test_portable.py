"""Without AVX2 and FMA the kernels run, slower, and give the same bits."""
import hashlib
import os
import subprocess
import sys
from pathlib import Path

from kernels_zoo import Forward, Shape, noise, written

from unspool.kernels.layer import pages

SHAPES = [
    Shape(size=10, norms=(1 + noise(10, seed=1), 1 + noise(10, seed=2))),
    Shape(group=4, size=16, kind=pages.BF16),
    Shape(group=1, size=16, kind=pages.INT8, window=70),
]


def digest():
    """Of every bit of attention over texts of 290 tokens."""
    total = hashlib.sha256()
    for shape in SHAPES:
        text, rows = written(shape, 290)
        forward = Forward(shape, rows[-2:], [(text, 288), (text, 289)], split=True)
        total.update(forward.attend().tobytes())
        total.update(rows.tobytes())
    return total.hexdigest()


def test_a_plain_cpu_gives_the_same_bits():
    plain = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    paths = os.pathsep.join(map(str, (Path(__file__).parents[2], Path(__file__).parents[1])))
    done = subprocess.run(
        [sys.executable, __file__], env={**os.environ, **plain, "PYTHONPATH": paths},
        capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == digest()


if __name__ == "__main__":
    print(digest())
