"""Rows in compiled code against the plain ones: the same tokens, sums within 1e-12."""
import os
import platform
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unspool.kernels.reading.facts import FAULT, RowFacts, facts_of
from unspool.kernels.reading.logits import Compiled, logits_of
from unspool.kernels.reading.plain import Plain

LOGITS = st.sampled_from([-np.inf, -3.0, -1.0, -0.0, 0.0, 0.5, 1.0, 4.0])


def rows_of(kind, size, count=4):
    draw = np.random.default_rng(size)
    rows = draw.normal(0, {"flat": 0.2, "peaked": 9.0}.get(kind, 3.0), (count, size))
    if kind == "ties":
        rows = np.round(rows)
    if kind == "removed":
        rows[draw.random(rows.shape) < 0.7] = -np.inf
        rows[:, size // 2] = 1.0
    return rows.astype(np.float32)


def both(rows):
    return Compiled(rows), Plain(rows.astype(np.float64))


EVERY = pytest.mark.parametrize("rows", [
    rows_of(kind, size) for kind in ("normal", "flat", "peaked", "ties", "removed")
    for size in (1, 6, 24, 65, 1030, 6000)], ids=lambda rows: str(rows.shape))


@EVERY
def test_the_likeliest_are_the_same(rows):
    fast, plain = both(rows)
    for count in (1, 3, 64, 512, 513, 6000, 9000):
        (ids, values), (same, logits) = (x.top([2, 0], count) for x in (fast, plain))
        assert ids.tolist() == same.tolist() and values.tolist() == logits.tolist()


@EVERY
def test_ranks_are_the_same(rows):
    fast, plain = both(rows)
    size = rows.shape[1]
    tokens = [0, size - 1, size // 2, int(rows[3].argmax())]
    assert fast.look(range(4), tokens) == plain.look(range(4), tokens)


@given(arrays(np.float32, st.tuples(st.just(2), st.integers(1, 80)), elements=LOGITS),
       st.integers(1, 90))
def test_any_row_of_few_values(rows, count):
    rows[:, 0] = 0.5
    fast, plain = both(rows)
    (ids, values), (same, logits) = (x.top([0, 1], count) for x in (fast, plain))
    assert ids.tolist() == same.tolist() and values.tolist() == logits.tolist()
    for token in range(rows.shape[1]):
        assert fast.look([0, 1], [token] * 2) == plain.look([0, 1], [token] * 2)


def test_one_row_alone_outlives_the_others():
    values = rows_of("normal", 1030)
    for rows in both(values.copy()):
        alone = rows.alone(2)
        want, top = rows.facts[2][:FAULT], rows.top([2], 5)[0].tolist()
        rows.values[:] = 0
        assert alone.facts[0][:FAULT] == want and alone.top([0], 5)[0].tolist() == top
        assert alone.wide([0]).tolist() == [values[2].tolist()]


BITS = """
import hashlib
import numpy as np
from unspool.core.history import history
from unspool.engine.shape import shape
from unspool.kernels.reading.logits import logits_of
from unspool.kernels.reading.noise import gumbel
from unspool.rules import min_p, repetition_penalty, temperature, top_k, top_p
from unspool.rules.plain import Seat

draw, total = np.random.default_rng(0), hashlib.sha256()
values = (draw.standard_normal((2, 5003)) * 4).astype(np.float32)
values[1, ::3] = -np.inf
rows, places = logits_of(values), [(7, 1, 5, 0), (2**63, 2, 9, 6)]
found = [rows.table[:, :5], rows.known.parts, *rows.top([0, 1], 64), *rows.top([1], 2000),
         rows.look([0, 1], [5, 5000]), gumbel(3, 1, 4, 1, np.arange(3001))]
for rules in ((), (temperature(0.01),), (temperature(7.0),), (temperature(0.7), top_p(0.999)),
              (repetition_penalty(1.3), top_k(900), temperature(2.0), min_p(1e-3))):
    seats = [Seat(rules, (None,) * len(rules), history([1, 2, 2, 5000]), p, True) for p in places]
    for group, i in shape(rows, [0, 1], seats):
        left = group.left(i)
        found += [left.ids, left.values, np.array([left.norm, *group.pick(i)])]
for array in found:
    total.update(np.ascontiguousarray(array).tobytes())
print(total.hexdigest())
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="names x86 CPUs")
def test_every_cpu_gives_the_same_bits(tmp_path):
    """This one, one with AVX2, and one with neither AVX2 nor fused multiplication."""
    said = []
    for name, features in ((None, ""), ("haswell", "+avx2,+fma"), ("generic", "")):
        kind = {} if name is None else {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features}
        ran = subprocess.run([sys.executable, "-c", BITS], capture_output=True, text=True,
                             check=True, env={**os.environ, **kind, "UNSPOOL_CACHE": str(tmp_path)})
        said.append(ran.stdout)
    assert said[0] and set(said) == {said[0]}


def test_the_type_of_the_rows_says_which():
    assert isinstance(logits_of(np.zeros((1, 3), np.float32)), Compiled)
    for kind in (np.float64, np.float16):
        rows = logits_of(np.zeros((1, 3), kind))
        assert isinstance(rows, Plain) and rows.values.dtype == np.float64


def test_facts_that_the_model_knows_are_taken():
    rows = rows_of("normal", 50)
    facts = facts_of(rows)
    told = RowFacts(facts.table + 1, facts.records)
    assert logits_of(rows, told).facts == (facts.table + 1).tolist()


def test_rows_may_lie_apart_and_need_not_be_contiguous():
    wide = rows_of("normal", 200)
    for rows in (wide[:, :150], wide[:, ::2], wide[::2]):
        fast, plain = both(rows)
        assert fast.top([1], 7)[0].tolist() == plain.top([1], 7)[0].tolist()
        assert [f[:2] for f in fast.facts] == [f[:2] for f in plain.facts]
