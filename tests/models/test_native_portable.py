"""A processor without AVX2 and FMA computes whole models, slower, and to the same bits."""
import hashlib
import os
import subprocess
import sys
from pathlib import Path

from models_zoo import WIDE, rand_ids, span, tiny
from packed_zoo import compiled

TESTS = Path(__file__).parents[1]
PLAIN = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
MODELS = (("llama", "F32"), ("qwen3", "Q4_1"))


def digest():
    """Of every logit of prompts of several lengths, read together and one by one, and of hidden
    states, how alike they are, and an inner layer."""
    total = hashlib.sha256()
    for family, type in MODELS:
        decoder = tiny(family, dtype="float32", hidden_size=96, std=0.2, **WIDE[family])
        model = compiled(decoder, type=type, threads=2)
        texts = rand_ids(1, 20, 1, 7, 2)
        total.update(model.score([span(text) for text in texts]).rows().tobytes())
        for text in texts:
            total.update(model.score([span(text)]).rows().tobytes())
            deep = span(text)
            deep.hidden, deep.layers = True, (1,)
            scores = model.score([deep])
            total.update(scores.hidden(0).tobytes() + scores.inner(0, 1).tobytes())
            total.update(repr(scores.similarity(0)).encode())
        model.close()
    return total.hexdigest()


def test_a_plain_cpu_gives_the_same_bits():
    paths = os.pathsep.join(map(str, (TESTS.parent, TESTS)))
    done = subprocess.run(
        [sys.executable, __file__], env={**os.environ, **PLAIN, "PYTHONPATH": paths},
        capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stderr
    features, found = done.stdout.split()
    assert features == "0" and found == digest()


if __name__ == "__main__":
    from unspool.kernels.machine.cpu import features

    print(len(features()), digest())
