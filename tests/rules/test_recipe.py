"""Recipes for the kernel: what each rule's numbers, data and state are there."""
import gc
import weakref

import numpy as np
import pytest

from unspool.kernels.shaping.recipe import Operation
from unspool.kernels.shaping.row import CUT, SCALE
from unspool.kernels.shaping.scales import temperature as operation
from unspool.kernels.shaping.shape import NUMBERS, STRIDE
from unspool.rules import (
    KINDS,
    allowed_ids,
    constrain,
    mirostat_2,
    rule,
    temperature,
    top_k,
    top_p,
)
from unspool.rules.recipe import Recipes, recipe_of


@pytest.fixture
def registry():
    before = dict(KINDS)
    yield KINDS
    KINDS.clear()
    KINDS.update(before)


def steps_of(recipe):
    return recipe.table[1:].reshape(-1, STRIDE)


def test_a_recipe_is_a_table_of_operations_with_their_numbers():
    recipe = recipe_of((temperature(0.5), top_k(40, 1)))
    one, other = steps_of(recipe)
    assert recipe.table[0] == 2 and (one[1], other[1]) == (SCALE, CUT)
    assert one[0] == operation.address != other[0]
    assert one[NUMBERS:].view(np.float64)[:2].tolist() == [0.5, 0.0]
    assert other[NUMBERS:].view(np.float64)[:3].tolist() == [40.0, 1.0, 0.0]
    assert recipe_of(()).table.tolist() == [0]


def test_rules_that_are_equal_share_a_recipe():
    assert recipe_of((top_k(41), top_p(0.5))) is recipe_of((top_k(41.0), top_p(0.5)))
    assert recipe_of((top_k(41),)) is not recipe_of((top_k(42),))


def test_a_recipe_keeps_alive_what_its_table_points_to(registry):
    made = []

    def pack(rule):
        kept = np.array(rule.data, np.int64)
        made.append(weakref.ref(kept))
        return (kept.ctypes.data, len(kept)), kept

    @rule(Operation(operation, SCALE), pack=pack)
    def points(rows):
        return rows.values

    recipe = recipe_of((points(data=(5, 6, 2**40)),))
    recipe_of.clear()
    gc.collect()
    address, count = steps_of(recipe)[0][NUMBERS:NUMBERS + 2].tolist()
    assert count == 3 and made[0]().ctypes.data == address
    assert made[0]().tolist() == [5, 6, 2**40]


def test_what_rules_remember_becomes_words():
    recipe = recipe_of((top_k(3), mirostat_2(4.0, 0.1)))
    states = recipe.states((None, 6.5))
    assert states[0].tolist() == [0, 0] and states[1].view(np.float64).tolist() == [6.5, 0.0]
    assert recipe_of((top_k(3),)).states((None,)) is None


def test_a_rule_that_cannot_be_packed_says_so_each_time(registry):
    def pack(rule):
        raise ValueError("not this one")

    @rule(Operation(operation, SCALE), pack=pack)
    def unpacked(rows):
        return rows.values

    for _ in range(2):
        with pytest.raises(ValueError, match="not this one"):
            recipe_of((unpacked(),))


def test_what_recipes_take_is_bounded():
    made = Recipes(most=3, room=20000)
    small = [(top_k(k),) for k in range(1, 6)]
    kept = [made(rules) for rules in small]
    assert made(small[4]) is kept[4] and made(small[0]) is not kept[0]
    big = (allowed_ids(data=tuple(range(100))),)
    first = made(big)
    assert made(big) is first and 100 * 8 < made.nbytes < 20000
    made((allowed_ids(data=tuple(range(1, 101))),))
    assert made(big) is not first
    huge = (allowed_ids(data=tuple(range(10000))),)
    assert made(huge) is made(huge) and len(made.known) == 1
    made.clear()
    assert made.nbytes == len(made.known) == 0


def test_what_a_table_does_not_say_is_not_kept():
    """Of a constraint the kernel knows what it allows, by the state."""
    class Any:
        def __eq__(self, other):
            return self is other

        __hash__ = object.__hash__

    assert recipe_of((constrain(data=Any()),)) is recipe_of((constrain(data=Any()),))
