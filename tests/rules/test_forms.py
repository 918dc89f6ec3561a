"""What every rule must be: its operation is its definition, on arrays of any library, alone or not,
and what is picked is distributed as the definition says."""
from dataclasses import replace
from math import erfc

import array_api_compat.torch as xp_of_torch
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rules_zoo import EVERY, KINDS_OF_ROWS, NEUTRAL, SAMPLES, lefts, logs, placed, rows_of, seat_of

import unspool.rules
from unspool.core.history import history
from unspool.engine.shape import shape
from unspool.kernels.reading.logits import logits_of
from unspool.kernels.reading.plain import log_sum_exp
from unspool.rules import KINDS, columns, temperature, top_p
from unspool.rules.plain import Seat, define
from unspool.rules.rows import Rows

SIZES = (1, 2, 7, 40, 300, 1100, 3000)
COMPILED = [sample for sample in EVERY if sample.kind.operation is not None]
NEAR = 1e-5  # so near its border a decision may be another after rounding
OFF = 2e-5  # log-probabilities of rows whose logits were rounded to float32 may be so far off
FLOAT32 = 16 * 2.0**-24  # and of tokens that are hardly possible, more
SEEN, MIXED = {"rows": 0, "border": 0}, {"rows": 0, "border": 0}
EACH = pytest.mark.parametrize("sample", EVERY, ids=str)


def test_every_rule_has_samples():
    ours = {name for name, kind in KINDS.items() if kind.define.__module__.startswith("unspool.")}
    assert ours == SAMPLES.keys() and NEUTRAL.keys() <= ours
    for name in ours:
        assert {sample.name for sample in SAMPLES[name]} == {name}
        assert hasattr(unspool.rules, name) and hash(SAMPLES[name])


# ── an operation is its definition ───────────────────────────────────────────────────────────────
def nudged(rows, seed):
    """Values a little higher or lower, or as float32 keeps them; equal ones stay equal."""
    if seed == 0:
        return rows.astype(np.float32).astype(np.float64)
    values, where = np.unique(rows, return_inverse=True)
    near = NEAR + FLOAT32 * np.where(values > -np.inf, np.abs(values), 0)
    draw = np.random.default_rng(seed)
    return (values + near * draw.uniform(-1, 1, len(values)))[where].reshape(rows.shape)


def nearby(row, seat):
    """Log-probabilities [N, V] by the definitions, of rows that are nudged before each rule."""
    found = []
    with np.errstate(over="ignore", invalid="ignore"):
        for seed in range(24):
            values = row[None]
            for place in range(len(seat.rules)):
                values = define(nudged(values, seed), place, [seat])
            found.append((values - log_sum_exp(values))[0])
    return np.nan_to_num(found, nan=-np.inf)  # what is left of nothing


def is_at_a_border(row, seat, got, off):
    """Whether rounding may explain these log-probabilities: each lies between those of rows next to
    this one, and so does what is kept."""
    close = nearby(row, seat)
    kept, low, high = np.isfinite(got), close.min(0), close.max(0)
    if (kept != np.isfinite(close[0])).any():  # then all others are other numbers too
        return bool((kept | ~np.isfinite(low)).all() and (~kept | np.isfinite(high)).all())
    spare = off + FLOAT32 * np.abs(got[kept])
    return bool(((got[kept] > low[kept] - spare) & (got[kept] < high[kept] + spare)).all())


def compare(rows, seats, off=OFF):
    """Rows shaped by kernels and by the definitions; how many were decided at a border."""
    size, borders = rows.shape[1], 0
    fast, plain = lefts(rows, seats), lefts(rows.astype(np.float64), seats)
    for row, seat, one, other in zip(rows.astype(np.float64), seats, fast, plain, strict=True):
        got, want = logs(one, size), logs(other, size)
        kept = np.isfinite(want)
        same = (np.isfinite(got) == kept).all() and (
            np.abs(got[kept] - want[kept]) <= off + FLOAT32 * np.abs(want[kept])).all()
        assert same or is_at_a_border(row, seat, got, off), (one, other)
        borders += not same
        for left in (one, other):
            assert len(left.ids) == 0 or abs(np.exp(left.values - left.norm).sum() - 1) < 1e-9
    return borders


def count(seen, rows, seats, off=OFF):
    """Compare them; few may be at a border among all that were seen so far."""
    seen["border"] += compare(rows, seats, off)
    seen["rows"] += len(rows)
    assert seen["border"] <= 2 + 0.005 * seen["rows"]


@pytest.mark.parametrize("sample", COMPILED, ids=str)
def test_an_operation_is_its_definition(sample):
    for size in SIZES:
        rows = np.concatenate([rows_of(kind, 1, size) for kind in KINDS_OF_ROWS])
        seats = [seat_of((sample,), size, seed, tokens=seed) for seed in range(len(rows))]
        count(SEEN, rows, seats)


# What wants to know of a token what it was before it comes last. (And `adaptive_p` makes unlikely
# tokens all but equal, so that rounding says which of them a cut behind it would take; so does
# `smoothing`, again and again. No rule comes twice among the others.)
OTHERS = [sample for sample in COMPILED if not sample.kind.entry]


@settings(max_examples=200, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(OTHERS), min_size=1, max_size=5, unique_by=lambda r: r.name),
       st.sampled_from(COMPILED),
       st.sampled_from(SIZES), st.sampled_from(KINDS_OF_ROWS), st.integers(0, 9))
def test_operations_in_any_order_are_their_definitions(rules, last, size, kind, seed):
    rules.append(last)
    seats = [seat_of(tuple(rules), size, i + seed) for i in (0, 1)]
    count(MIXED, rows_of(kind, 2, size, seed), seats, off=5 * OFF)


# ── on arrays of any library ─────────────────────────────────────────────────────────────────────
def by_torch(values, seats):
    """One rule's definition on torch tensors in float64."""
    rules = [seat.rules[0] for seat in seats]
    rows = Rows(torch.asarray(values), [s.history for s in seats], [s.states[0] for s in seats],
                [r.data for r in rules], [s.place for s in seats], xp_of_torch)
    return rules[0].kind.define(rows, *map(torch.asarray, columns(rules)))


@EACH
def test_a_definition_is_the_same_in_numpy_and_torch(sample):
    for size in (2, 40, 1100):
        rows = np.concatenate([rows_of(kind, 1, size) for kind in KINDS_OF_ROWS]).astype(np.float64)
        seats = [seat_of((sample,), size, seed, tokens=seed) for seed in range(len(rows))]
        want, got = define(rows, 0, seats), by_torch(rows, seats)
        assert isinstance(got, torch.Tensor) and got.dtype == torch.float64
        assert got.numpy() == pytest.approx(want, abs=1e-12, rel=1e-12, nan_ok=True)


# ── what changes nothing, and alone or not ───────────────────────────────────────────────────────
def answers(group, i):
    left = group.left(i)
    return (left.ids.tolist(), left.values.tolist(), left.norm, group.top(i, 9), group.pick(i))


def with_first(rule, seat, seed):
    """The seat with one rule more, before the others."""
    states = (rule.start(seat.history.everything), *seat.states)
    return placed(Seat((rule, *seat.rules), states, seat.history, wanted=True), seed)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("neutral", NEUTRAL.values(), ids=str)
def test_a_neutral_value_changes_no_bit(neutral, dtype):
    """Before other rules, and before none."""
    for size in (1, 40, 1100):
        rows = np.concatenate([rows_of(kind, 1, size) for kind in KINDS_OF_ROWS]).astype(dtype)
        for after in ((), (temperature(0.7), top_p(0.9))):
            alone = [seat_of(after, size, seed) for seed in range(len(rows))]
            seats = [with_first(neutral, seat, seed) for seed, seat in enumerate(alone)]
            if neutral.kind.place:  # it changes nothing but where the noise comes from
                alone = [replace(seat, place=other.place)
                         for seat, other in zip(alone, seats, strict=True)]
            for one, other in zip(shaped(rows, alone), shaped(rows, seats), strict=True):
                assert answers(*one) == answers(*other)


def shaped(rows, seats):
    return shape(logits_of(rows), range(len(rows)), seats)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_values_of_all_rules_in_one_call_are_as_each_alone(dtype):
    """In every bit, and in any order."""
    size = 300
    rows = rows_of("normal", len(EVERY), size).astype(dtype)
    logits, seats = logits_of(rows), [seat_of((s,), size, i) for i, s in enumerate(EVERY)]
    order = np.random.default_rng(0).permutation(len(EVERY)).tolist()
    together = shape(logits, order, [seats[i] for i in order])
    for i, found in zip(order, together, strict=True):
        [alone] = shape(logits, [i], [seats[i]])
        assert found[0].empty(found[1]) == alone[0].empty(alone[1])
        if not alone[0].empty(alone[1]):
            assert answers(*found) == answers(*alone)


# ── the law of the pick ──────────────────────────────────────────────────────────────────────────
def digits(number, base, count):
    return [number // base**place % base for place in range(count)]


def chance_of(statistic, freedom):
    """Of a larger chi-square, by Wilson and Hilferty (PNAS 17, 1931)."""
    third = 2 / (9 * freedom)
    return 0.5 * erfc(((statistic / freedom) ** (1 / 3) - 1 + third) / (2 * third) ** 0.5)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_picks_follow_what_the_definition_leaves(name):
    """20,000 texts, and as many picks; chi-square with p = 0.001."""
    draws, size, sample = 20_000, 12, SAMPLES[name][(len(SAMPLES[name]) - 1) // 2]
    row = np.array([2.0, 1.0, 0.5, 0.0, -0.3, -1.5, 1.4, 0.7, -0.2, 0.3, -4.0, 0.1], np.float32)
    seat = seat_of((sample,), size)
    seats = [placed(Seat(seat.rules, seat.states, history([9, *digits(i, size, 4)]), wanted=True),
                    i) for i in range(draws)]
    rows = row[None].astype(np.float32 if sample.kind.operation else np.float64)
    picks = [group.pick(i)[0] for group, i in shape(logits_of(rows), [0] * draws, seats)]
    left = lefts(np.tile(row.astype(np.float64), (draws, 1)), seats)
    expected = sum(np.exp(logs(one, size)) for one in left)
    counts = np.bincount(picks, minlength=size)
    assert (counts[expected == 0] == 0).all()
    likely = expected > 5
    rest = [x[~likely].sum() for x in (counts, expected)]
    found, wanted = (np.append(x[likely], y) for x, y in zip((counts, expected), rest, strict=True))
    statistic = float(((found - wanted) ** 2 / np.maximum(wanted, 1)).sum())
    freedom = max(int(likely.sum()) - 1, 1)
    assert chance_of(statistic, freedom) > 0.001
