"""Shaping: any recipe in any order against its definition, by kernels or not, alone or not."""
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rules_zoo import lefts, plainly, rows_of
from rules_zoo import logs as log_probabilities

from unspool.core.history import history
from unspool.engine.shape import shape, treatment
from unspool.kernels.reading.logits import logits_of
from unspool.kernels.reading.noise import gumbel
from unspool.rules import (
    KINDS,
    greedy,
    min_p,
    repetition_penalty,
    rule,
    temperature,
    top_k,
    top_p,
)
from unspool.rules.plain import Seat

WAYS = pytest.mark.parametrize("dtype", [np.float32, np.float64])  # kernels, definitions
EDGE = 1e-6  # top_p's tolerance
RULES = st.one_of(
    st.builds(temperature, st.floats(0.05, 20)),
    st.builds(top_k, st.integers(1, 20)),
    st.builds(top_p, st.floats(0, 1)),
    st.builds(min_p, st.floats(1e-4, 1)),
    st.builds(greedy),
)
RECIPES = st.lists(RULES, max_size=5).map(tuple)
ROW = arrays(np.float64, st.integers(1, 16),
             elements=st.one_of(st.floats(-8, 8, width=32),
                                st.sampled_from([0.0, 1.0, 2.0, -np.inf])))


def logs(values):
    peak = max(values)
    total = peak + np.log(sum(np.exp(v - peak) for v in values))
    return [v - total for v in values]


def definition(row, recipe):
    """{token: log-probability}, and how near a decision came to its border; plain float64."""
    left = sorted(((i, v) for i, v in enumerate(row) if v > -np.inf), key=lambda e: (-e[1], e[0]))
    nearest = np.inf
    for step in recipe:
        number = step.numbers[0] if step.numbers else 0.0
        p = np.exp(logs([v for _, v in left]))
        if step.name == "temperature":
            gaps = -np.diff([v for _, v in left])  # rounding may make a tie of a small one, or not
            nearest = min(nearest, gaps[gaps > 0].min(initial=1))
            left = [(i, (v - left[0][1]) / number) for i, v in left]
            left.sort(key=lambda e: (-e[1], e[0]))
            continue
        if step.name == "greedy":
            keep = 1
        elif step.name == "top_k":
            keep = int(number)
        elif step.name == "top_p":
            above = np.cumsum(p) - p
            keep = int((above < number - EDGE).sum()) if number < 1 else len(left)
            nearest = min(nearest, np.abs(above[1:] - (number - EDGE)).min(initial=1))
        else:
            share = np.array([v - left[0][1] for _, v in left])
            keep = int((share >= np.log(number)).sum())
            nearest = min(nearest, np.abs(share[1:] - np.log(number)).min(initial=1))
        left = left[:max(keep, 1)]
    return dict(zip([i for i, _ in left], logs([v for _, v in left]), strict=True)), nearest


@settings(max_examples=400, deadline=None)
@given(ROW, RECIPES, st.sampled_from([np.float32, np.float64]))
def test_rules_in_any_order_are_their_definitions(row, recipe, dtype):
    assume(np.isfinite(row).any())
    want, nearest = definition(row, recipe)
    assume(nearest > 1e-9)  # rounding may decide on the border itself
    [left] = lefts(row[None].astype(dtype), [plainly(*recipe)])
    assert sorted(left.ids.tolist()) == sorted(want)
    got = log_probabilities(left, len(row))
    assert [got[i] for i in sorted(want)] == pytest.approx([want[i] for i in sorted(want)],
                                                           abs=1e-9)
    assert np.exp(got).sum() == pytest.approx(1)


def mixed_recipes(count, seed=0):
    draw = np.random.default_rng(seed)
    makers = [lambda: temperature(draw.uniform(0.2, 3)), lambda: top_k(draw.integers(1, 120)),
              lambda: top_p(draw.uniform(0.05, 0.999)), lambda: min_p(draw.uniform(1e-4, 0.5))]
    recipes = []
    for _ in range(count):
        chosen = draw.permutation(4)[:draw.integers(0, 5)]
        recipes.append(tuple(makers[i]() for i in chosen))
    return recipes


@pytest.mark.parametrize("kind", ["flat", "normal", "peaked", "ties", "removed"])
def test_rows_shaped_by_kernels_are_as_by_definition(kind):
    """1,000 rows in all: the same ids, log-probabilities within 1e-12."""
    size, count = 150, 200
    rows, seats = rows_of(kind, count, size), [plainly(*r) for r in mixed_recipes(count, seed=5)]
    want = lefts(rows.astype(np.float64), seats)
    for one, other in zip(lefts(rows, seats), want, strict=True):
        assert sorted(one.ids.tolist()) == sorted(other.ids.tolist())
        assert log_probabilities(one, size)[one.ids] == pytest.approx(
            log_probabilities(other, size)[one.ids], abs=1e-12)
    assert 1 < np.mean([len(left.ids) for left in want]) < size


# ── many rows at once ────────────────────────────────────────────────────────────────────────────
@pytest.fixture
def halve():
    """A rule that has a definition only."""
    @rule()
    def halve(rows):
        return rows.values / 2

    yield halve()
    del KINDS["halve"]


def many(halve, size):
    """Seats of every treatment, mixed; each has a place for its noise."""
    recipes = mixed_recipes(24, seed=3)
    recipes += [(greedy(),), (), (halve,), (halve, top_k(40)), (greedy(),), (top_p(0.9), halve)]
    recipes += [(repetition_penalty(1.0 + i / 4), temperature(0.7), top_k(20)) for i in range(1, 5)]
    draw = np.random.default_rng(0)
    for i in draw.permutation(len(recipes)):
        yield Seat(recipes[i], (None,) * len(recipes[i]), history([i % 7, 2, 2, size - 1]),
                   (2**64 - 1 - int(i), int(i), 4, 0), True)


def answers(group, i):
    left = group.left(i)
    return (left.ids.tolist(), left.values.tolist(), left.norm, group.pick(i), group.top(i, 5),
            group.processed(i, 3), group.empty(i))


@WAYS
def test_rows_shaped_together_are_as_alone(halve, dtype):
    """No answer depends on a row's company, in any bit."""
    size, seats = 200, list(many(halve, 200))
    logits = logits_of(rows_of("normal", len(seats), size).astype(dtype))
    together = shape(logits, range(len(seats)), seats)
    for r, seat in enumerate(seats):
        [alone] = shape(logits, [r], [seat])
        assert answers(*alone) == answers(*together[r])


@WAYS
def test_rows_may_be_named_in_any_order_and_twice(halve, dtype):
    seats = list(many(halve, 200))
    logits = logits_of(rows_of("normal", len(seats), 200).astype(dtype))
    want = [answers(*found) for found in shape(logits, range(len(seats)), seats)]
    order = [5, 0, 5, 33, 2]
    found = shape(logits, order, [seats[i] for i in order])
    assert [answers(*one) for one in found] == [want[i] for i in order]


@WAYS
def test_the_model_s_rows_are_left_as_they_were(halve, dtype):
    seats = list(many(halve, 30))
    rows = rows_of("normal", len(seats), 30).astype(dtype)
    before = rows.copy()
    lefts(rows, seats)
    assert (rows == before).all()


@WAYS
def test_every_answer_agrees_with_what_is_left(halve, dtype):
    """The pick is the largest sum of value and noise, whatever treatment a row gets."""
    size, seats = 200, list(many(halve, 200))
    for kind in ("normal", "ties", "removed"):
        logits = logits_of(rows_of(kind, len(seats), size).astype(dtype))
        for (group, i), seat in zip(shape(logits, range(len(seats)), seats), seats, strict=True):
            left = group.left(i)
            p = log_probabilities(left, size)
            token, processed = group.pick(i)
            assert token == left.ids[np.argmax(left.values + gumbel(*seat.place, left.ids))]
            assert processed == pytest.approx(p[token], abs=1e-12)
            order = sorted(left.ids.tolist(), key=lambda t, p=p: (-p[t], t))
            assert [t for t, _ in group.top(i, 7)] == order[:7]
            assert [v for _, v in group.top(i, 7)] == pytest.approx(p[order[:7]], abs=1e-12)
            assert [group.processed(i, t) for t in range(size)] == pytest.approx(p, abs=1e-12)


# ── ends ─────────────────────────────────────────────────────────────────────────────────────────
@WAYS
def test_no_rules_leave_the_row(dtype):
    [left] = lefts(np.array([[0.0, -np.inf, 2.0]], dtype), [plainly()])
    assert left.ids.tolist() == [0, 2] and left.values.tolist() == [0.0, 2.0]
    assert left.norm == pytest.approx(np.log(1 + np.e**2))
    assert lefts(np.empty((0, 3), dtype), []) == []


@WAYS
@pytest.mark.parametrize("rules", [(), (greedy(),), (temperature(0.5),), (top_k(2), top_p(0.5))])
def test_a_row_without_tokens_is_empty(rules, dtype):
    [(group, i)] = shape(logits_of(np.full((1, 3), -np.inf, dtype)), [0], [plainly(*rules)])
    left = group.left(i)
    assert group.empty(i) and left.ids.tolist() == [] and left.norm == -np.inf


def test_what_treatment_a_recipe_gets(halve):
    assert treatment(("greedy",), True) == treatment(("greedy",), False) == "best"
    assert treatment(("top_k", "greedy"), True) == treatment((), True) == "compiled"
    assert treatment(("top_k", halve.name), True) == "alone"
    assert treatment(("top_k",), False) != treatment((), False)
