"""The kernel that shapes rows: lists that grow, forms that change, many recipes in one call."""
import numpy as np
import pytest
from rules_zoo import KINDS_OF_ROWS, lefts, logs, rows_of

from unspool.core.history import history
from unspool.kernels.reading.logits import Compiled
from unspool.kernels.reading.noise import gumbel
from unspool.kernels.shaping import shaped
from unspool.kernels.shaping.shape import HEAD
from unspool.kernels.shaping.shaped import Shaped, Task
from unspool.rules import min_p, repetition_penalty, temperature, top_k, top_p
from unspool.rules.plain import Seat
from unspool.rules.recipe import recipe_of

TEXT = history([3, 0, 4, 4, 1, 0, 0])


def tasks(recipes, places=None):
    return [Task(recipe_of(tuple(recipe)).address, None, TEXT,
                 places[i] if places else (i, 0, 7, 0), True) for i, recipe in enumerate(recipes)]


def shape(rows, recipes, places=None):
    """Each row by its recipe, in one call."""
    return Shaped(Compiled(np.asarray(rows, np.float32)), range(len(rows)), tasks(recipes, places))


def defined(rows, recipes):
    """Log-probabilities of the same by the definitions."""
    seats = [Seat(tuple(r), (None,) * len(r), TEXT) for r in recipes]
    rows = np.asarray(rows, np.float64)
    return [logs(left, rows.shape[1]) for left in lefts(rows, seats)]


def check(rows, recipes, off=1e-12):
    """What is left of each row is what the definitions leave."""
    found, want = shape(rows, recipes), defined(rows, recipes)
    for i, one in enumerate(want):
        got = logs(found.left(i), len(one))
        assert (np.isfinite(got) == np.isfinite(one)).all()
        kept = np.isfinite(one)
        assert got[kept] == pytest.approx(one[kept], abs=off)
    return [len(found.left(i).ids) for i in range(len(want))]


# ── lists that must grow ─────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("size", [HEAD - 1, HEAD, HEAD + 1, 511, 512, 513, 4096, 4097, 20_000])
def test_a_cut_that_wants_a_longer_list_gets_one(size):
    rows = rows_of("flat", 5, size)
    rules = [top_k(size - 1), top_k(size), top_p(0.99), min_p(0.6), top_k(HEAD)]
    kept = check(rows, [[rule] for rule in rules])
    assert kept[:2] == [size - 1, size] and kept[4] == min(HEAD, size)
    assert 0.9 * size < kept[2] <= size


@pytest.mark.parametrize("finite", [1, HEAD - 1, HEAD, HEAD + 1, 512])
def test_a_list_is_never_longer_than_what_is_left(finite):
    row = np.full((1, 3000), -np.inf, np.float32)
    row[0, np.random.default_rng(0).permutation(3000)[:finite]] = 1.0
    for rule in (top_k(2000), top_k(finite), top_k(5, 1), top_p(0.9999999), min_p(1e-9)):
        assert check(row, [[rule]]) == [finite]


def test_equal_tokens_across_the_end_of_a_list():
    for equal in (HEAD, HEAD + 1, 700, 3000):
        row = np.zeros((1, 3000), np.float32)
        row[0, equal:] = -1.0
        assert check(row, [[top_k(7, 1)]]) == [equal]
        assert check(row, [[top_k(HEAD)]]) == [HEAD]
        assert check(row, [[min_p(1.0)]]) == [equal]


@pytest.mark.parametrize("size", [*range(1, 18), 31, 32, 33, 63, 64, 65, 70])
def test_small_vocabularies(size):
    recipes = [[], [top_k(3)], [top_p(0.7)], [min_p(0.3)], [temperature(0.6), top_p(0.9)],
               [top_k(5), temperature(2.0), min_p(0.2)]]
    for kind in KINDS_OF_ROWS:
        check(rows_of(kind, len(recipes), size), recipes)


# ── forms that change ────────────────────────────────────────────────────────────────────────────
def test_from_a_list_to_a_dense_row_and_back():
    """Cuts after edits after cuts, also of more than one segment."""
    for size in (40, 1500):
        recipes = [
            [top_k(20), repetition_penalty(1.5)],
            [top_k(20), repetition_penalty(1.5), top_p(0.8)],
            [repetition_penalty(3.0), top_k(9), repetition_penalty(0.5), temperature(0.5)],
            [top_p(0.9), repetition_penalty(2.0), top_k(12), repetition_penalty(2.0), min_p(0.05)],
            [temperature(2.0), repetition_penalty(1.5), temperature(0.5), top_k(30)],
            [temperature(2.0), top_k(30), repetition_penalty(4.0)]]
        for kind in ("normal", "ties", "removed"):
            check(rows_of(kind, len(recipes), size), recipes, off=1e-5)


def test_a_temperature_after_another():
    recipes = [[temperature(0.5), temperature(4.0)], [temperature(3.0), temperature(3.0), top_k(6)],
               [temperature(0.5), top_p(0.99), temperature(0.5), top_p(0.9), temperature(2.0)]]
    for kind in KINDS_OF_ROWS:
        check(rows_of(kind, len(recipes), 200), recipes)


@pytest.mark.parametrize("t", [1e-300, 1e-40, 1e-12])
def test_a_temperature_next_to_nothing(t):
    """Nothing overflows, alone or with others, and the likeliest token is certain."""
    rows = rows_of("normal", 1, 300)
    best = int(rows[0].argmax())
    for recipe in ([], [top_p(0.5)], [top_k(9)], [temperature(t)], [repetition_penalty(1.2)]):
        found = shape(rows, [[temperature(t), *recipe]])
        token, logprob = found.pick(0)
        assert token == best and logprob == 0.0
        assert found.processed(0, best) == 0.0 and found.top(0, 1) == [(best, 0.0)]
        assert np.exp(logs(found.left(0), 300)).sum() == pytest.approx(1)


def test_a_row_that_loses_everything_is_empty():
    """And the rules behind that are not asked; the rows beside it are as they were."""
    rows = rows_of("normal", 3, 50)
    rows[1] = -np.inf
    recipe = [temperature(0.7), repetition_penalty(1.3), top_k(9)]
    found = shape(rows, [recipe] * 3)
    assert [found.empty(i) for i in range(3)] == [False, True, False]
    assert found.left(1).ids.tolist() == [] and found.left(1).norm == -np.inf
    assert len(found.left(0).ids) == len(found.left(2).ids) == 9


# ── many in one call ─────────────────────────────────────────────────────────────────────────────
RECIPES = [
    [], [top_k(30)], [temperature(0.7)], [repetition_penalty(1.3)], [temperature(0.7), top_p(0.9)],
    [repetition_penalty(1.3), temperature(1.5)], [top_k(100), repetition_penalty(1.3)],
    [top_k(100), repetition_penalty(1.3), temperature(0.9), top_p(0.9), min_p(0.01)],
    [top_p(0.99999)], [min_p(1e-8)], [temperature(1e-300)], [top_k(1)]]


def answers(found, i):
    left = found.left(i)
    return (left.ids.tolist(), left.values.tolist(), left.norm, found.pick(i), found.top(i, 5),
            found.processed(i, 2), found.empty(i))


@pytest.mark.parametrize("size", [7, 300, 2500])
def test_rows_of_many_recipes_are_as_each_alone(size):
    """In every bit, wherever a row stands among the others and in whatever form they end."""
    rows, order = rows_of("normal", len(RECIPES), size), np.random.default_rng(0)
    logits = Compiled(rows)
    every = tasks(RECIPES)
    alone = [answers(Shaped(logits, [r], [task]), 0) for r, task in enumerate(every)]
    for _ in range(4):
        members = [int(r) for r in order.permutation(len(rows))]
        found = Shaped(logits, members, [every[r] for r in members])
        assert [answers(found, i) for i in range(len(members))] == [alone[r] for r in members]


def test_the_same_row_by_many_recipes():
    rows = rows_of("normal", 1, 400)
    found = Shaped(Compiled(rows), [0] * len(RECIPES), tasks(RECIPES))
    for i, recipe in enumerate(RECIPES):
        [want] = defined(rows, [recipe])
        kept = np.isfinite(want)
        assert logs(found.left(i), 400)[kept] == pytest.approx(want[kept], abs=1e-5)


def test_the_rooms_of_the_counts_and_marks_are_left_as_zeros():
    for size in (5, 1100, 300):
        shape(rows_of("normal", len(RECIPES), size), RECIPES)
        _, counts, touched = shaped.room_for(size, 0)
        assert not counts.any() and not touched.any()
        assert len(counts) == size and len(touched) == -(-size // 1024)


# ── picks ────────────────────────────────────────────────────────────────────────────────────────
PLACES = [(0, 0, 0, 0), (2**63, 1, 9, 6), (2**64 - 1, 2**32 - 1, 2**31, 12), (7, 3, 5, 0),
          (2**64 + 7, 3, 5, 0), (-1, 2**32 + 1, 9, 6), (7, 2**40 + 3, 5, 0)]


@pytest.mark.parametrize("recipe", [[], [temperature(0.8)], [top_k(40)], [repetition_penalty(2)]],
                         ids=str)
def test_a_pick_is_the_largest_sum_of_value_and_noise(recipe):
    """Seeds and choices of any size; what the low bits say is the place."""
    rows = np.tile(rows_of("flat", 1, 900), (len(PLACES), 1))
    found = shape(rows, [recipe] * len(PLACES), PLACES)
    picks = [found.pick(i) for i in range(len(PLACES))]
    for i, place in enumerate(PLACES):
        left = found.left(i)
        best = int(np.argmax(left.values + gumbel(*place, left.ids)))
        assert picks[i] == (left.ids[best], pytest.approx(left.values[best] - left.norm))
    assert picks[3] == picks[4] == picks[6] and len({token for token, _ in picks}) >= 4


def test_where_no_pick_is_wanted_none_is_drawn():
    """The other answers are the same."""
    rows = rows_of("normal", len(RECIPES), 300)
    wanted = shape(rows, RECIPES)
    plain = Shaped(Compiled(rows), range(len(rows)),
                   [task._replace(place=None, wanted=False) for task in tasks(RECIPES)])
    for i in range(len(RECIPES)):
        one, other = plain.left(i), wanted.left(i)
        assert one.ids.tolist() == other.ids.tolist()
        assert one.values.tolist() == other.values.tolist() and one.norm == other.norm
