"""Rules are values: compared, hashed, printed, stacked; what they remember is a fold."""
import numpy as np
import pytest
from rules_zoo import kept, left, lefts, probabilities

from unspool.core.history import history
from unspool.core.prefix import Candidate
from unspool.rules import (
    KINDS,
    RuleValue,
    columns,
    greedy,
    min_p,
    repetition_penalty,
    rule,
    temperature,
    top_k,
    top_p,
)
from unspool.rules.plain import Seat
from unspool.rules.rule import moves_noise, place_of_noise

WAYS = pytest.mark.parametrize("dtype", [np.float64, np.float32])
FACT = Candidate(5, -1.0, -1.0, 1, -1.0)


@pytest.fixture
def registry():
    """A test may add rules; they are gone after it."""
    before = dict(KINDS)
    yield KINDS
    KINDS.clear()
    KINDS.update(before)


def test_rules_are_values():
    assert min_p(0.1) == min_p(0.1) != min_p(0.2)
    assert top_p(0.5) != min_p(0.5)
    assert len({min_p(0.1), min_p(0.1), top_k(3), top_k(3.0), greedy()}) == 3
    with pytest.raises(AttributeError):
        min_p(0.1).name = "other"


@pytest.mark.parametrize(("value", "text"), [
    (greedy(), "greedy()"), (top_k(40), "top_k(40)"), (temperature(0.8), "temperature(0.8)"),
    (min_p(1e-9), "min_p(1e-09)")])
def test_they_print_as_they_are_written(value, text):
    assert str(value) == text


def test_numbers_that_were_not_given_are_not_printed():
    assert top_k(5) == top_k(5, 0) != top_k(5, 1)
    assert (str(top_k(5, 0)), str(top_k(5, 1))) == ("top_k(5)", "top_k(5, 1)")
    assert str(repetition_penalty(1.2)) == "repetition_penalty(1.2)"


def test_what_is_no_number_is_part_of_the_value(registry):
    @rule()
    def names(rows, by=2):
        return rows.values

    one, other = names(data=(1, 2)), names(data=(1, 3))
    assert one == names(2, data=(1, 2)) and one != other and len({one, other, names()}) == 3
    assert str(one) == "names((1, 2))" and str(names(3, data=(7,))) == "names(3, (7,))"
    long = names(data=tuple(range(1000)))
    assert len(str(long)) < 60 and str(long).startswith("names((0, 1, 2, 3, ")
    with pytest.raises(TypeError, match="unhashable"):
        names(data=[1, 2])


def test_each_is_registered_under_its_own_name():
    for make in (greedy, top_k, top_p, min_p, temperature, repetition_penalty):
        assert KINDS[make.__name__].operation is not None
        assert make.__doc__ and make.__doc__.rstrip().endswith(".")


def test_numbers_become_columns():
    one, two = columns([RuleValue("x", (1.0, 5.0)), RuleValue("x", (2.0, 6.0))])
    assert one.tolist() == [[1.0], [2.0]] and two.tolist() == [[5.0], [6.0]]
    assert columns([greedy(), greedy()]) == []


def test_a_rule_without_memory_keeps_its_state():
    state = top_k(3).start((1, 2, 3))
    assert state is None and top_k(3).after(state, 5, FACT) is None and not top_k(3).recalls


@WAYS
def test_a_definition_gets_rows_states_and_columns(registry, dtype):
    @rule(start=lambda rule, prompt: sum(prompt),
          after=lambda rule, state, token, fact: state + token)
    def lift_sum(rows, by):
        """Raise the token whose id is the sum of all tokens so far."""
        values = rows.values.copy()
        for r, state in enumerate(rows.states):
            values[r, state % values.shape[1]] += by[r, 0]
        return values

    value = lift_sum(3)
    assert registry["lift_sum"].operation is None and str(value) == "lift_sum(3)"
    state = value.start((1, 2))
    assert state == 3 and value.after(state, 4, FACT) == 7
    rows = np.zeros((2, 5), dtype)
    one, two = lefts(rows, [Seat((value,), (3,)), Seat((lift_sum(7),), (7,))])
    assert one.values.tolist() == [0, 0, 0, 3, 0] and two.values.tolist() == [0, 0, 7, 0, 0]
    assert not rows.any()  # the model's rows are not changed


@WAYS
def test_a_definition_sees_its_text_and_what_of_its_rule_is_no_number(registry, dtype):
    @rule(recalls=True)
    def ban_after(rows):
        """Remove the second token of a pair where the text ends with the first."""
        values = rows.values.copy()
        for row, text, (first, second) in zip(values, rows.histories, rows.data, strict=True):
            if text.last(1) == [first]:
                row[second] = -np.inf
        return values

    seats = [Seat((ban_after(data=pair),), (None,), history(text))
             for pair, text in (((1, 2), (0, 1)), ((1, 2), (1, 0)), ((0, 3), (1, 0)))]
    assert ban_after(data=(1, 2)).recalls
    found = lefts(np.zeros((3, 4), dtype), seats)
    assert [left.ids.tolist() for left in found] == [[0, 1, 3], [0, 1, 2, 3], [0, 1, 2]]


@WAYS
def test_rules_with_and_without_an_operation_stack_in_any_order(registry, dtype):
    @rule()
    def flip(rows):
        """Turn the order of likelihood around."""
        return rows.xp.where(rows.kept, -rows.values, rows.values)

    row = [0.0, 3.0, 1.0, 2.0]
    assert kept(row, top_k(1), dtype=dtype) == [1]
    assert kept(row, flip(), top_k(1), dtype=dtype) == [0]
    assert kept(row, flip(), flip(), top_k(3), top_k(1), dtype=dtype) == [1]
    assert kept(row, flip(), temperature(2), top_k(2), dtype=dtype) == [0, 2]
    assert kept(row, top_k(2), flip(), top_k(1), dtype=dtype) == [3]
    assert kept(row, top_k(3), flip(), top_k(2), flip(), greedy(), dtype=dtype) == [3]
    want = probabilities(np.array([0.0, -3.0, -1.0, -2.0]) / 2)
    assert probabilities(row, flip(), temperature(2), dtype=dtype) == pytest.approx(want)


@WAYS
def test_a_definition_that_gives_no_number_removes_the_token(registry, dtype):
    """And one that gives infinity leaves no distribution."""
    @rule()
    def spoil(rows, value):
        values = rows.values.copy()
        values[:, :2] = value
        return values

    for after in ((), (top_k(9), temperature(0.5))):
        for value in (np.nan, -np.inf):
            assert kept([0.0] * 5, spoil(value), *after, dtype=dtype) == [2, 3, 4]
        for row, value in ([0.0] * 2, np.nan), ([0.0] * 2, -np.inf), ([0.0] * 5, np.inf):
            none = left(row, spoil(value), *after, dtype=dtype)
            assert none.ids.tolist() == none.values.tolist() == [] and none.norm == -np.inf


@WAYS
@pytest.mark.parametrize("t", [1e-12, 1e-40, 1e-300])
def test_a_definition_behind_a_tiny_temperature(registry, dtype, t):
    @rule()
    def same(rows):
        return rows.values

    for after in ((), (temperature(2.0),), (top_p(0.9),)):
        got = probabilities([0.0, 3.0, -np.inf, 2.5], temperature(t), same(), *after, dtype=dtype)
        assert got.tolist() == [0, 1, 0, 0]


def test_a_rule_says_at_once_which_numbers_it_takes():
    with pytest.raises(TypeError, match="top_p takes 1 numbers, not 0"):
        top_p()
    with pytest.raises(TypeError, match="top_k takes 2 numbers, not 3"):
        top_k(1, 2, 3)


def test_a_name_is_given_once():
    def top_p(rows, p):
        """Another rule of a known name."""

    with pytest.raises(ValueError, match="there is a rule 'top_p' already"):
        rule()(top_p)


def test_a_rule_may_say_where_the_noise_comes_from(registry):
    @moves_noise(lambda rule, text, place: (len(text.everything), *place[1:]))
    @rule(recalls=True)
    def elsewhere(rows):
        return rows.values

    text = history((4, 5, 6))
    assert place_of_noise((top_k(2), elsewhere()), text, (9, 1, 2, 3)) == (3, 1, 2, 3)
    assert place_of_noise((top_k(2),), None, (9, 1, 2, 3)) == (9, 1, 2, 3)
