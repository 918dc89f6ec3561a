"""Cuts at a bound of the row's own: by definition, by hand, at borders, and as transformers cuts.

Rows in float64 are shaped by definition, in float32 by kernels.
"""
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rules_zoo import KINDS_OF_ROWS, kept, rows_of

from unspool.rules import (
    epsilon_cutoff,
    eta_cutoff,
    temperature,
    tfs_z,
    top_a,
    top_h,
    top_k,
    top_n_sigma,
)

LOGITS = st.one_of(st.floats(-9, 9, width=32), st.sampled_from([0.0, 1.0, -np.inf]))
ROW = st.one_of(*[arrays(dtype, st.integers(1, 150), elements=LOGITS)
                  for dtype in (np.float64, np.float32)]).filter(lambda x: np.isfinite(x).any())
WAYS = pytest.mark.parametrize("dtype", [np.float64, np.float32])
ALL_OFF = (epsilon_cutoff(0), eta_cutoff(0), top_a(0), top_n_sigma(0), top_h(0), tfs_z(1))


def best_first(row):
    return sorted((i for i in range(len(row)) if row[i] > -np.inf), key=lambda i: (-row[i], i))


def probs_of(row):
    """By id, of the tokens that are left."""
    order = best_first(row)
    weights = [exp(float(row[i]) - float(row[order[0]])) for i in order]
    return {i: w / sum(weights) for i, w in zip(order, weights, strict=True)}


def entropy(probs):
    return -sum(p * log(p) for p in probs if p > 0)


def at_least(row, bound):
    """Ids that reach a bound; not one that is so near that rounding decides."""
    probs = probs_of(row)
    assume(all(abs(p - bound) > 1e-8 * bound for p in probs.values()))
    return sorted(i for i, p in probs.items() if p >= bound or row[i] == max(row))


# ── a bound of probability ───────────────────────────────────────────────────────────────────────
@given(ROW, st.floats(1e-6, 1))
def test_epsilon_keeps_what_is_that_likely(row, epsilon):
    assert kept(row, epsilon_cutoff(epsilon), dtype=row.dtype) == at_least(row, epsilon)


@given(ROW, st.floats(1e-6, 1))
def test_eta_is_lower_where_the_row_knows_little(row, epsilon):
    h = entropy(probs_of(row).values())
    want = at_least(row, min(epsilon, sqrt(epsilon) * exp(-h)))
    assert kept(row, eta_cutoff(epsilon), dtype=row.dtype) == want


@given(ROW, st.floats(1e-6, 1))
def test_top_a_keeps_what_is_so_likely_beside_the_square_of_the_best(row, a):
    want = at_least(row, a * max(probs_of(row).values()) ** 2)
    assert kept(row, top_a(a), dtype=row.dtype) == want


@WAYS
def test_bounds_by_hand(dtype):
    row = np.log([0.5, 0.25, 0.15, 0.06, 0.04])
    assert kept(row, epsilon_cutoff(0.05), dtype=dtype) == [0, 1, 2, 3]
    assert kept(row, epsilon_cutoff(0.3), dtype=dtype) == [0]
    # entropy 1.2753: sqrt(0.04) exp(-1.2753) = 0.0559 is above epsilon itself, of 0.1 it is 0.0883
    assert kept(row, eta_cutoff(0.04 - 1e-6), dtype=dtype) == [0, 1, 2, 3, 4]
    assert kept(row, eta_cutoff(0.1), dtype=dtype) == [0, 1, 2]
    assert kept(row, top_a(0.2), dtype=dtype) == [0, 1, 2, 3]  # 0.2 * 0.25 = 0.05
    assert kept(row, top_a(0.99), dtype=dtype) == [0, 1]  # 0.2475
    assert kept(np.zeros(4), epsilon_cutoff(0.25), dtype=dtype) == [0, 1, 2, 3]  # on the border
    for rule in (epsilon_cutoff(0.9), eta_cutoff(0.99), top_a(1)):
        assert kept([1.0, 2.0, 2.0], rule, dtype=dtype) == [1, 2]  # equals of the likeliest stay


# ── standard deviations of the logits ────────────────────────────────────────────────────────────
@given(ROW, st.floats(0.05, 5))
def test_top_n_sigma_measures_the_finite_logits(row, n):
    finite = [float(x) for x in row if x > -np.inf]
    mean = sum(finite) / len(finite)
    sigma = sqrt(sum((x - mean) ** 2 for x in finite) / len(finite))
    bound = max(finite) - n * sigma
    assume(all(abs(x - bound) > 1e-7 for x in finite) or sigma == 0)
    want = [i for i, x in enumerate(row) if x >= (bound if sigma else max(finite))]
    assert kept(row, top_n_sigma(n), dtype=row.dtype) == want


@WAYS
def test_top_n_sigma_by_hand(dtype):
    row = [3.0, 1.0, -1.0, -3.0, -np.inf]  # mean 0, sigma sqrt(5) = 2.236
    assert kept(row, top_n_sigma(1), dtype=dtype) == [0, 1]
    assert kept(row, top_n_sigma(0.5), dtype=dtype) == [0]
    assert kept(row, top_n_sigma(2), dtype=dtype) == [0, 1, 2]
    assert kept([1.0, -1.0], top_n_sigma(2), dtype=dtype) == [0, 1]  # on the border
    assert kept([7.0] * 5, top_n_sigma(1e-3), dtype=dtype) == [0, 1, 2, 3, 4]


@given(ROW, st.floats(0.2, 3), st.floats(0.2, 5))
def test_a_temperature_changes_nothing_for_top_n_sigma_and_a_cut_does(row, n, t):
    finite = row[row > -np.inf].astype(float)
    bound = finite.max() - n * finite.std()
    assume(np.abs(finite - bound).min() > 1e-6)
    assert (kept(row, temperature(t), top_n_sigma(n), dtype=row.dtype)
            == kept(row, top_n_sigma(n), dtype=row.dtype))
    some = [5.0, 4.9, 4.8, 4.7, -5.0, -5.0, -5.0, -5.0]
    assert len(kept(some, top_n_sigma(1))) == 4 and len(kept(some, top_k(4), top_n_sigma(1))) == 2


# ── a share of the entropy ───────────────────────────────────────────────────────────────────────
@given(ROW, st.floats(0.01, 1))
def test_top_h_spends_a_share_of_the_entropy_of_the_best_hundred(row, share):
    order = best_first(row)[:100]
    probs = probs_of(row[order])
    parts = [-p * log(p) if p > 0 else 0.0 for p in probs.values()]
    spent = np.cumsum(parts)
    assume(np.abs(spent - share * spent[-1]).min() > 1e-7 or share == 1)
    fits = [share == 1 or s <= share * spent[-1] for s in spent]
    want = sorted(order[:max(1, sum(fits))])
    assert kept(row, top_h(share), dtype=row.dtype) == want


@WAYS
def test_top_h_by_hand(dtype):
    assert kept(np.zeros(8), top_h(0.5), dtype=dtype) == [0, 1, 2, 3]
    assert kept(np.zeros(8), top_h(0.49), dtype=dtype) == [0, 1, 2]
    assert kept(np.zeros(300), top_h(1.0), dtype=dtype) == list(range(100))
    # parts of the entropy: 0.3466, 0.3466, 0.2599, 0.2599 of 1.2130
    row = np.log([0.5, 0.25, 0.125, 0.125])
    assert kept(row, top_h(0.28), dtype=dtype) == [0]  # the best stays, though it spends more
    assert kept(row, top_h(0.58), dtype=dtype) == [0, 1]
    assert kept(row, top_h(0.8), dtype=dtype) == [0, 1, 2]


# ── the bends of the sorted curve ────────────────────────────────────────────────────────────────
@given(ROW, st.floats(0, 0.999))
def test_tfs_keeps_until_the_curve_has_done_its_bends(row, z):
    order = best_first(row)
    p = list(probs_of(row).values()) + [0.0] * (len(row) - len(order))
    bends = [abs(p[i + 2] - 2 * p[i + 1] + p[i]) for i in range(len(p) - 2)]
    assume(sum(bends) > 1e-6)  # else rounding decides which
    passed = np.cumsum(bends) / sum(bends)
    assume(np.abs(passed - z).min() > 1e-7)
    size = next((i + 1 for i, share in enumerate(passed) if share > z), len(row) - 1)
    assert kept(row, tfs_z(z), dtype=row.dtype) == sorted(order[:max(size, 1)])


@WAYS
def test_tfs_by_hand(dtype):
    # slopes -0.2, -0.15, -0.05, -0.05; bends 0.05, 0.1, 0: shares 1/3, 1, 1
    row = np.log([0.5, 0.3, 0.15, 0.1, 0.05])
    assert kept(row, tfs_z(0.3), dtype=dtype) == [0]
    assert kept(row, tfs_z(0.5), dtype=dtype) == [0, 1]
    assert kept(row, tfs_z(0.99), dtype=dtype) == [0, 1]
    assert kept(np.zeros(6), tfs_z(0.5), dtype=dtype) == [0, 1, 2, 3, 4]  # no bend at all
    assert kept([0.0, 1.0], tfs_z(0.0), dtype=dtype) == [0, 1]  # too few for a bend
    assert kept([0.0, -np.inf, -np.inf, -np.inf], tfs_z(0.9), dtype=dtype) == [0]


# ── all of them ──────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("rule", ALL_OFF, ids=str)
@WAYS
def test_a_neutral_value_keeps_all(rule, dtype):
    row = np.random.default_rng(0).normal(size=300)
    row[3] = 100
    assert kept(row, rule, dtype=dtype) == list(range(300))


@pytest.mark.parametrize("rule", [epsilon_cutoff(1), eta_cutoff(1), top_a(1), top_n_sigma(1e-9),
                                  top_h(1e-9), tfs_z(0)], ids=str)
@WAYS
def test_the_likeliest_always_stays(rule, dtype):
    assert kept([1.0, 3.0, 2.0, -np.inf, -2.0], rule, dtype=dtype) == [1]
    assert kept([-np.inf, -np.inf, -700.0, -np.inf], rule, dtype=dtype) == [2]
    assert kept([5.0], rule, dtype=dtype) == [0]


@pytest.mark.parametrize("make", [
    epsilon_cutoff, eta_cutoff, top_a, lambda x: top_n_sigma(4 - 4 * x), lambda x: top_h(1 - x),
    lambda x: tfs_z(0.999 - x)])
@given(ROW, st.floats(0.01, 0.98), st.floats(0.01, 0.98))
def test_a_stronger_value_keeps_no_more(make, row, x, y):
    weak, strong = make(min(x, y)), make(max(x, y))
    assert set(kept(row, strong, dtype=row.dtype)) <= set(kept(row, weak, dtype=row.dtype))


# ── as transformers cuts ─────────────────────────────────────────────────────────────────────────
def is_near(numbers, bound):
    return np.abs(numbers - bound).min() < 1e-6


def is_border(name, number, row):
    """Whether something lies so near to the bound that float32 may decide otherwise."""
    p = np.sort(np.exp(row.astype(float) - row.max()))[::-1]
    p /= p.sum()
    if name == "EpsilonLogitsWarper":
        return is_near(p, number)
    if name == "EtaLogitsWarper":
        return is_near(p, min(number, sqrt(number) * exp(-entropy(p))))
    best = p[:100] / p[:100].sum()
    spent = np.cumsum([-x * log(x) if x > 0 else 0.0 for x in best])
    return is_near(spent, number * spent[-1])


@pytest.mark.parametrize(("name", "make", "numbers"), [
    ("EpsilonLogitsWarper", epsilon_cutoff, (3e-4, 9e-4, 0.02, 0.3)),
    ("EtaLogitsWarper", eta_cutoff, (3e-4, 4e-3, 0.1, 0.9)),
    ("TopHLogitsWarper", top_h, (0.1, 0.4, 0.9))])  # at 1 it drops the last by rounding
def test_it_is_the_cut_of_transformers(name, make, numbers):
    torch = pytest.importorskip("torch")
    processors = pytest.importorskip("transformers.generation.logits_process")
    differ = 0
    for number in numbers:
        theirs = getattr(processors, name)(number)
        for kind in KINDS_OF_ROWS:
            rows = rows_of(kind, 10, 400)
            for row, left in zip(rows, theirs(None, torch.from_numpy(rows)).numpy(), strict=True):
                ours = kept(row, make(number), dtype=np.float32)
                # torch says nothing of the order of equal tokens, so values are compared
                if sorted(row[ours]) != sorted(left[left > -np.inf]):
                    assert is_border(name, number, row)
                    differ += 1
    assert differ <= 1, "of 150 or 200 rows"
