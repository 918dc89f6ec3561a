"""Locally typical tokens: by definition, by hand, where ties lie, and as transformers does it."""
from itertools import pairwise
from math import exp, log

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rules_zoo import KINDS_OF_ROWS, kept, rows_of

from unspool.rules import typical_p

LOGITS = st.one_of(st.floats(-9, 9, width=32), st.sampled_from([0.0, 1.0, -np.inf]))
ROW = st.one_of(*[arrays(dtype, st.integers(1, 150), elements=LOGITS)
                  for dtype in (np.float64, np.float32)]).filter(lambda x: np.isfinite(x).any())
WAYS = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def ordered(row):
    """The finite tokens by how near their surprise is to the entropy: distance, id, probability.
    Discards a row in which two of other values are equally near: rounding would decide."""
    finite = [float(x) for x in row if x > -np.inf]
    weights = [exp(x - max(finite)) for x in finite]
    logs = [x - max(finite) - log(sum(weights)) for x in finite]
    entropy = -sum(exp(y) * y for y in logs)
    ids = [i for i, x in enumerate(row) if x > -np.inf]
    found = sorted(zip([abs(-y - entropy) for y in logs], ids, map(exp, logs), strict=True))
    for (one, i, _), (other, j, _) in pairwise(found):
        assume(row[i] == row[j] or other - one > 1e-8)
    return found


@given(ROW, st.floats(0, 0.999))
def test_it_keeps_the_most_typical_tokens_until_they_hold_the_mass(row, mass):
    found = ordered(row)
    held = np.cumsum([p for _, _, p in found])
    assume(np.abs(held - (mass - 1e-6)).min() > 1e-9)
    last = next((n for n, m in enumerate(held) if m >= mass - 1e-6), len(found) - 1)
    with_ties = sorted(i for far, i, _ in found if far <= found[last][0] + 1e-10)
    assert kept(row, typical_p(mass, 1), dtype=row.dtype) == with_ties
    left = kept(row, typical_p(mass), dtype=row.dtype)
    assert sorted(row[left]) == sorted(row[[i for _, i, _ in found[:last + 1]]])


@given(ROW, st.floats(0, 1))
def test_what_stays_is_a_range_of_the_ranked_tokens(row, mass):
    order = sorted(range(len(row)), key=lambda i: (-row[i], i))
    places = sorted(order.index(i) for i in kept(row, typical_p(mass), dtype=row.dtype))
    assert places == list(range(places[0], places[-1] + 1))


@given(ROW, st.floats(0, 1), st.floats(0, 1))
def test_more_mass_keeps_no_less(row, x, y):
    for ties in (0, 1):
        less = kept(row, typical_p(min(x, y), ties), dtype=row.dtype)
        assert set(less) <= set(kept(row, typical_p(max(x, y), ties), dtype=row.dtype))


@WAYS
def test_by_hand(dtype):
    # surprise 0.357, 1.609, 2.996, 2.996; entropy 0.871: distance 0.514, 0.738, 2.125, 2.125
    row = np.log([0.7, 0.2, 0.05, 0.05])
    assert kept(row, typical_p(0.5), dtype=dtype) == [0]
    assert kept(row, typical_p(0.8), dtype=dtype) == [0, 1]
    assert kept(row, typical_p(0.92), dtype=dtype) == [0, 1, 2]
    assert kept(row, typical_p(0.92, 1), dtype=dtype) == [0, 1, 2, 3]
    # surprise 0.916 and five times 2.120; entropy 1.639: the likeliest goes
    flat = np.log([0.4, *[0.12] * 5])
    assert kept(flat, typical_p(0.3), dtype=dtype) == [1, 2, 3]
    assert kept(flat, typical_p(0.3, 1), dtype=dtype) == [1, 2, 3, 4, 5]
    assert kept(flat, typical_p(0.61), dtype=dtype) == [0, 1, 2, 3, 4, 5]


@WAYS
def test_ties_go_by_rank_and_rounding_decides_nothing(dtype):
    assert kept(np.zeros(1000), typical_p(0.25), dtype=dtype) == list(range(250))
    assert kept(np.full(1000, 0.7), typical_p(0.25), dtype=dtype) == list(range(250))
    # entropy 1.5 bits lies in the middle of 1 and 2 bits: the likelier one first
    row = np.array([1.0, 2.0, 1.0]) * log(2)
    assert kept(row, typical_p(0.5), dtype=np.float64) == [1]
    assert kept(row, typical_p(0.7), dtype=np.float64) == [0, 1]
    # equals on the likelier side join from the entropy outwards
    some = np.log([0.3, 0.3, 0.2, 0.05, 0.05, 0.05, 0.05])
    assert kept(some, typical_p(0.1), dtype=dtype) == [2]
    assert kept(some, typical_p(0.4), dtype=dtype) == [1, 2]


@WAYS
def test_at_the_ends(dtype):
    row = np.random.default_rng(0).normal(size=300) * 3
    assert kept(row, typical_p(1), dtype=dtype) == list(range(300))
    assert len(kept(row, typical_p(0), dtype=dtype)) == 1
    assert kept([-np.inf, 2.0, -np.inf], typical_p(0.2), dtype=dtype) == [1]
    assert kept([-np.inf, 2.0, -900.0], typical_p(0.2), dtype=dtype) == [1]
    assert kept([4.0], typical_p(0.5, 1), dtype=dtype) == [0]


def is_border(row, mass):
    """Whether the mass is reached so narrowly, or two are so equally near, that float32 decides."""
    y = row[row > -np.inf].astype(float)
    y = y - y.max() - log(np.exp(y - y.max()).sum())
    far = np.abs(-y + (np.exp(y) * y).sum())
    order = np.argsort(far, kind="stable")
    held = np.cumsum(np.exp(y)[order])
    last = min(int((held < mass).sum()), len(y) - 1)
    near = np.abs(far - far[order[last]]) < 1e-6
    return np.abs(held - mass).min() < 1e-6 or len(set(y[near])) > 1


@pytest.mark.parametrize("mass", [0.05, 0.2, 0.5, 0.95])
def test_with_ties_it_is_the_cut_of_transformers(mass):
    torch = pytest.importorskip("torch")
    processors = pytest.importorskip("transformers.generation.logits_process")
    theirs, differ = processors.TypicalLogitsWarper(mass), 0
    for kind in KINDS_OF_ROWS:
        rows = rows_of(kind, 20, 400)
        for row, left in zip(rows, theirs(None, torch.from_numpy(rows)).numpy(), strict=True):
            want = np.flatnonzero(left > -np.inf).tolist()
            if kept(row, typical_p(mass, 1), dtype=np.float32) != want:
                assert is_border(row, mass)
                differ += 1
    assert differ <= 1, "of 100 rows"
