"""The forms of a row: what operations of each kind find there, and what becomes of what they do."""
import numpy as np
import pytest
from rules_zoo import KINDS_OF_ROWS, rows_of

from unspool.kernels.machine.jit import kernel
from unspool.kernels.machine.simd import read_f64, read_i64, write_f64, write_i64
from unspool.kernels.reading.facts import ENTROPY as ENTROPY_OF_ROW
from unspool.kernels.reading.facts import FAULT, NORM, PEAK
from unspool.kernels.reading.logits import Compiled
from unspool.kernels.reading.plain import log_sum_exp
from unspool.kernels.shaping.cuts import top_k
from unspool.kernels.shaping.forms import touch_all
from unspool.kernels.shaping.recipe import Operation, states_of, table_of
from unspool.kernels.shaping.row import (
    ALL,
    COUNT,
    CUT,
    EDIT,
    ENTROPY,
    FIRST,
    FORM,
    IDS,
    LIST,
    MAP,
    MASS,
    MORE_BEYOND,
    NEEDS_ENTROPY,
    NEEDS_MASS,
    SCALE,
    SIGNATURE,
    VALUES,
    VOCAB,
    logit,
    number,
    put,
    set_word,
    word,
)
from unspool.kernels.shaping.scales import temperature
from unspool.kernels.shaping.shaped import Shaped, Task


# ── operations of the tests ──────────────────────────────────────────────────────────────────────
@kernel(SIGNATURE)
def note(row, numbers, state):
    """Write down mass, entropy and form where the first number says."""
    out = read_i64(numbers)
    write_f64(out, number(row, MASS))
    write_f64(out + 8, number(row, ENTROPY))
    write_f64(out + 16, word(row, FORM))
    return 0


@kernel(SIGNATURE)
def negate(row, numbers, state):
    """Turn all values around; one at -1000 is lost."""
    if word(row, FORM) == LIST:
        for i in range(word(row, COUNT)):
            at = word(row, VALUES) + 8 * i
            value = read_f64(at)
            write_f64(at, -np.inf if value == -1000.0 else -value)
        return 0
    for token in range(word(row, VOCAB)):
        value = logit(row, token)
        put(row, token, value if value == -np.inf else -np.inf if value == -1000.0 else -value)
    touch_all(row)
    return 0


@kernel(SIGNATURE)
def add_at(row, numbers, state):
    """Add a number to the logit of a token."""
    token = int(read_f64(numbers))
    put(row, token, logit(row, token) + read_f64(numbers + 8))
    return 0


@kernel(SIGNATURE)
def without_best(row, numbers, state):
    """Leave out so many of the best, and keep so many of the others; -1: all."""
    first, most = int(read_f64(numbers)), int(read_f64(numbers + 8))
    if first + max(most, 0) > word(row, COUNT) and word(row, MORE_BEYOND) != 0:
        return -1
    set_word(row, FIRST, min(first, word(row, COUNT)))
    return ALL if most < 0 else first + most


@kernel(SIGNATURE)
def keep_all(row, numbers, state):
    """Write down what was shown, and keep everything."""
    out = read_i64(numbers)
    write_i64(out, read_i64(out) + 1)
    write_i64(out + 8, word(row, COUNT))
    for i in range(min(word(row, COUNT), 64)):
        write_i64(out + 16 + 8 * i, read_i64(word(row, IDS) + 8 * i))
    return ALL


NOTE = Operation(note, SCALE, NEEDS_MASS | NEEDS_ENTROPY)
NEGATE = Operation(negate, MAP), ()


def keep(k):
    return Operation(top_k, CUT), (float(k), 0.0)


def cool(t):
    return Operation(temperature, SCALE), (t,)


def add(token, by):
    return Operation(add_at, EDIT), (float(token), by)


def without(first, most=-1):
    return Operation(without_best, CUT), (float(first), float(most))


def shape(row, *steps):
    """One row, by operations with their numbers."""
    recipe = table_of(steps)
    return Shaped(Compiled(np.asarray(row, np.float32)[None]), [0], [Task(recipe.ctypes.data)])


def left(row, *steps):
    """{token: value}, in the order in which they stand."""
    found = shape(row, *steps).left(0)
    return dict(zip(found.ids.tolist(), found.values.tolist(), strict=True))


def noted(row, *steps):
    """Mass, entropy and form behind some operations."""
    out = np.zeros(3)
    shape(row, *steps, (NOTE, (out.ctypes.data,)))
    return out


ROW = [1.0, 5.0, 3.0, -np.inf, 5.0, 2.0]
WHOLE_FORM, DENSE_FORM, LIST_FORM = 0, 1, 2


# ── statistics ───────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("kind", KINDS_OF_ROWS)
@pytest.mark.parametrize("size", [1, 6, 70, 2100])
def test_mass_and_entropy_are_those_of_the_values_in_every_form(kind, size):
    row = rows_of(kind, 1, size)[0]
    wide = row.astype(np.float64)
    cut = np.sort(wide[wide > -np.inf])[::-1][:9]
    edited = wide.copy()
    edited[size - 1] += 1.0
    for form, values, steps in [
            (WHOLE_FORM, wide, ()), (WHOLE_FORM, wide, [cool(0.5)]),
            (WHOLE_FORM, wide, [cool(0.5), cool(3.0)]),
            (DENSE_FORM, edited, [add(size - 1, 1.0)]),
            (DENSE_FORM, edited, [add(size - 1, 1.0), cool(0.7)]),
            (LIST_FORM, cut, [keep(9)]), (LIST_FORM, cut, [cool(2.0), keep(9)])]:
        for _, numbers in (step for step in steps if step[0].kind == SCALE):
            values = (values - values.max()) / numbers[0]
        norm = log_sum_exp(values)[0]
        p = np.exp(values - norm)
        entropy = -np.where(p > 0, p * np.where(p > 0, values - norm, 0), 0).sum()
        got = noted(row, *steps)
        spare = 1e-6 if form == DENSE_FORM else 1e-12
        assert got[2] == form and got[0] == pytest.approx(norm, abs=spare)
        assert got[1] == pytest.approx(entropy, abs=spare)


def test_an_edit_may_need_the_mass_of_what_was_a_list():
    """Or of a divided row: it sees that of the values as they are now."""
    out = np.zeros(3)
    edit = Operation(note, EDIT, NEEDS_MASS | NEEDS_ENTROPY), (out.ctypes.data,)
    for steps, values in (([keep(3)], [5.0, 5.0, 3.0]), ([cool(0.5), keep(3)], [0.0, 0.0, -4.0]),
                          ([cool(0.5)], [-8.0, 0.0, -4.0, 0.0, -6.0])):
        shape(ROW, *steps, edit)
        assert out[2] == DENSE_FORM
        assert out[0] == pytest.approx(log_sum_exp(np.array(values))[0], abs=1e-12)


def test_values_that_are_hardly_possible_add_nothing_to_the_entropy():
    row = [0.0, -1e30, -800.0, 0.0]
    for steps in ((), [cool(0.01)], [keep(4)], [add(1, 0.0)]):
        assert noted(row, *steps)[1] == pytest.approx(np.log(2))


# ── lists ────────────────────────────────────────────────────────────────────────────────────────
def test_a_list_is_best_first_and_equal_ones_by_id():
    assert list(left(ROW, keep(5))) == [1, 4, 2, 5, 0]


@pytest.mark.parametrize("count", [1, 2, 3, 8, 9, 60, 500])
def test_a_list_is_sorted_again_behind_what_changes_its_values(count):
    draw = np.random.default_rng(count)
    for row in (draw.normal(size=700), draw.integers(0, 4, 700), np.zeros(700)):
        values = left(row, keep(count), NEGATE)
        want = sorted(range(700), key=lambda t, row=row: (-row[t], t))[:count]
        assert list(values) == sorted(want, key=lambda t, row=row: (np.float32(row[t]), t))
        assert list(values.values()) == [-float(np.float32(row[t])) for t in values]


def test_what_becomes_impossible_leaves_the_list():
    row = [1.0, -1000.0, 3.0, -1000.0]
    assert left(row, keep(4), NEGATE) == {0: -1.0, 2: -3.0}
    assert left(row, keep(3), NEGATE, NEGATE) == {2: 3.0, 0: 1.0}
    assert left([-1000.0, -1000.0], keep(2), NEGATE) == {}


# ── dense rows ───────────────────────────────────────────────────────────────────────────────────
def test_an_edit_changes_a_copy_and_its_facts():
    """Also in the last of several segments, and several times."""
    row = rows_of("normal", 1, 3000)[0]
    before = row.copy()
    for tokens in ([0], [2999], [5, 1024, 2047, 2048, 5]):
        want, seen = row.astype(np.float64), np.zeros(3)
        for token in tokens:
            want[token] += 7.0
        steps = [add(token, 7.0) for token in tokens]
        found = shape(row, *steps, (NOTE, (seen.ctypes.data,)))
        assert found.left(0).values == pytest.approx(want, abs=1e-5)
        facts = found.facts.table[0]
        assert facts[:FAULT + 1].tolist() == Compiled(found.source(0)[None]).facts[0][:FAULT + 1]
        assert facts[PEAK] == found.source(0).max()
        assert facts[NORM] == seen[0] == pytest.approx(log_sum_exp(want)[0], abs=1e-5)
        assert facts[ENTROPY_OF_ROW] == seen[1]
    assert (row == before).all()


def test_from_a_list_an_edit_sees_what_is_left_and_nothing_else():
    steps = [keep(3), cool(2.0), add(2, 4.0)]
    assert left(ROW, *steps) == {1: 0.0, 2: 3.0, 4: 0.0}
    assert left(ROW, *steps, add(0, 4.0)) == {1: 0.0, 2: 3.0, 4: 0.0}  # it was removed
    assert list(left(ROW, *steps, keep(2))) == [2, 1]


def test_a_map_of_a_row_that_is_no_list():
    row = rows_of("removed", 1, 2500)[0]
    for before in ((), [add(3, 0.0)]):
        values = left(row, *before, NEGATE)
        assert list(values) == np.flatnonzero(row > -np.inf).tolist()
        assert [-v for v in values.values()] == row[row > -np.inf].tolist()
    assert list(left(row, NEGATE, keep(1))) == [int(np.argmin(
        np.where(row > -np.inf, row, np.inf)))]


def test_a_divided_row_is_changed_as_its_values_are():
    """Not as its logits were."""
    values = left(ROW, cool(0.5), add(0, 8.0))
    assert values == {0: 0.0, 1: 0.0, 2: -4.0, 4: 0.0, 5: -6.0}


def test_a_row_that_an_edit_empties_is_empty():
    found = shape([2.0, -np.inf], add(0, -np.inf))
    assert found.empty(0) and found.left(0).ids.tolist() == []


# ── cuts that leave out the best ─────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("before", [(), [add(0, 0.0)], [keep(5)], [cool(2.0)]])
@pytest.mark.parametrize(("first", "most", "want"), [
    (0, -1, [0, 1, 2, 4, 5]), (1, -1, [0, 2, 4, 5]), (3, -1, [0, 5]), (1, 2, [2, 4]),
    (2, 1, [2]), (4, 1, [0])])
def test_the_best_may_be_left_out(before, first, most, want):
    assert sorted(left(ROW, *before, without(first, most))) == want


@pytest.mark.parametrize("first", [1, 63, 64, 65, 600, 5000])
def test_more_of_the_best_than_a_cut_is_shown_at_first(first):
    row = rows_of("normal", 1, 6000)[0]
    order = sorted(range(6000), key=lambda t: (-row[t], t))
    assert sorted(left(row, without(first))) == sorted(order[first:])
    assert list(left(row, without(first, 30))) == order[first:first + 30]


def test_a_cut_that_keeps_all_changes_nothing():
    """It is asked once, about the best tokens, and the row stays in the form it had."""
    row = rows_of("normal", 1, 500)[0]
    order, out = sorted(range(500), key=lambda t: (-row[t], t)), np.zeros(66, np.int64)
    found = shape(row, (Operation(keep_all, CUT), (out.ctypes.data,)))
    assert out.tolist() == [1, 64, *order[:64]]
    assert found.span(0) is None and found.left(0).values.tolist() == row.tolist()
    found = shape(row, keep(9), (Operation(keep_all, CUT), (out.ctypes.data,)))
    assert out[:2].tolist() == [2, 9] and found.left(0).ids.tolist() == order[:9]


# ── tables ───────────────────────────────────────────────────────────────────────────────────────
def test_numbers_and_states_are_words():
    """Whole numbers as they are, others as the bits of a float64."""
    table = table_of([cool(0.5), (NOTE, (2**40 + 1, -0.0))])
    assert table[0] == 2 and len(table) == 25
    assert table[1:4].tolist() == [temperature.address, SCALE, 0]
    assert table[4:5].view(np.float64)[0] == 0.5 and table[16] == 2**40 + 1
    states = states_of([(), (7,), (-2, 0.25)])
    assert states[:2].tolist() == [[0, 0], [7, 0]] and states[2, 0] == -2
    assert states[2, 1:].view(np.float64)[0] == 0.25
