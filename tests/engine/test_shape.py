"""Shaping: any recipe in any order against its definition, heads against whole rows, alone or not.
"""
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unspool.engine.shape import shape
from unspool.rules import KINDS, greedy, min_p, rule, temperature, top_k, top_p

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
             elements=st.one_of(st.floats(-8, 8), st.sampled_from([0.0, 1.0, 2.0, -np.inf])))


def stateless(recipes):
    return [(None,) * len(recipe) for recipe in recipes]


def log_probabilities(shaped, size):
    out = np.full(size, -np.inf)
    out[shaped.ids] = shaped.values - shaped.norm
    return out


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
            left = [(i, (v - left[0][1]) / number) for i, v in left]
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
@given(ROW, RECIPES, st.integers(1, 16))
def test_rules_in_any_order_are_their_definitions(row, recipe, top):
    assume(np.isfinite(row).any())
    want, nearest = definition(row, recipe)
    assume(nearest > 1e-9)  # rounding may decide on the border itself
    [shaped] = shape(row[None], [recipe], stateless([recipe]), top)
    assert sorted(shaped.ids.tolist()) == sorted(want)
    got = log_probabilities(shaped, len(row))
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


def rows_of(kind, count, size):
    draw = np.random.default_rng(1)
    if kind == "ties":
        return draw.integers(-4, 5, (count, size)).astype(float)
    if kind == "removed":
        rows = draw.normal(0, 2, (count, size))
        rows[draw.random((count, size)) < 0.7] = -np.inf
        rows[:, 0] = 0
        return rows
    return draw.normal(0, {"flat": 0.1, "normal": 2.0, "peaked": 9.0}[kind], (count, size))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["flat", "normal", "peaked", "ties", "removed"])
def test_a_small_head_gives_what_the_whole_row_gives(kind, dtype):
    """1,000 rows in all: the same ids, log-probabilities within 1e-12."""
    size, count = 150, 200
    rows, recipes = rows_of(kind, count, size).astype(dtype), mixed_recipes(count)
    whole = shape(rows, recipes, stateless(recipes), size)
    for top in (1, 8, 64):
        for one, other in zip(shape(rows, recipes, stateless(recipes), top), whole, strict=True):
            assert sorted(one.ids.tolist()) == sorted(other.ids.tolist())
            assert log_probabilities(one, size)[one.ids] == pytest.approx(
                log_probabilities(other, size)[one.ids], abs=1e-12)
    assert 1 < np.mean([len(shaped.ids) for shaped in whole]) < size


def test_a_head_smaller_than_what_temperature_made_equal():
    """The order of the model's own logits decides, whatever rounding makes of them later."""
    rows = np.array([[1.0, 2.0, 3.0, 4.0, 5.0]])
    recipe = (temperature(1e300), temperature(1e300), top_k(3))
    for top in (1, 2, 4, 5):
        [shaped] = shape(rows, [recipe], stateless([recipe]), top)
        assert sorted(shaped.ids.tolist()) == [2, 3, 4], top


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float32_rows_are_shaped_as_in_float64(dtype):
    """By the kernels, and by numpy."""
    rows, recipes = rows_of("normal", 200, 150).astype(np.float32), mixed_recipes(200, seed=5)
    want = shape(rows.astype(np.float64), recipes, stateless(recipes), 150)
    for one, other in zip(shape(rows.astype(dtype), recipes, stateless(recipes), 8), want,
                          strict=True):
        assert sorted(one.ids.tolist()) == sorted(other.ids.tolist())
        assert log_probabilities(one, 150)[one.ids] == pytest.approx(
            log_probabilities(other, 150)[one.ids], abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_shaped_together_are_as_alone(dtype):
    """64 recipes in one call: no row's kept tokens or values depend on its company, in any bit."""
    rows, recipes = rows_of("normal", 64, 200).astype(dtype), mixed_recipes(64, seed=3)
    together = shape(rows, recipes, stateless(recipes), 16)
    for i, shaped in enumerate(together):
        [alone] = shape(rows[i:i + 1], [recipes[i]], stateless([recipes[i]]), 16)
        assert alone.ids.tolist() == shaped.ids.tolist()
        assert alone.values.tolist() == shaped.values.tolist()


def test_the_model_s_rows_are_left_as_they_were():
    rows = rows_of("normal", 4, 30)
    before = rows.copy()
    shape(rows, mixed_recipes(4), stateless(mixed_recipes(4)), 8)
    assert (rows == before).all()


def test_no_rules_leave_the_row():
    rows = np.array([[0.0, -np.inf, 2.0]])
    [shaped] = shape(rows, [()], [()])
    assert shaped.ids.tolist() == [0, 2] and shaped.values.tolist() == [0.0, 2.0]
    assert shaped.norm == pytest.approx(np.log(1 + np.e**2))
    assert shape(np.empty((0, 3)), [], []) == []


def test_what_is_left_is_finite():
    """NaN and infinity that a rule on rows makes are tokens removed."""
    @rule(reads="row")
    def spoil(rows, states):
        rows = rows.copy()
        rows[:, :3] = [np.nan, np.inf, -np.inf]
        return rows

    try:
        [shaped] = shape(np.zeros((1, 5)), [(spoil(),)], [(None,)])
        assert shaped.ids.tolist() == [3, 4]
        [none] = shape(np.zeros((1, 3)), [(spoil(), top_k(2), temperature(0.5))], [(None,) * 3])
        assert none.ids.tolist() == []
    finally:
        del KINDS["spoil"]
