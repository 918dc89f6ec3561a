"""Rules are values: compared, hashed, printed, stacked; what they remember is a fold."""
import numpy as np
import pytest

from unspool.core.prefix import Candidate
from unspool.engine.shape import shape
from unspool.rules import KINDS, RuleValue, columns, greedy, min_p, rule, temperature, top_k, top_p


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


def test_each_is_registered_under_its_own_name():
    for make in (greedy, top_k, top_p, min_p, temperature):
        assert KINDS[make.__name__].reads == "head"
        assert make.__doc__ and make.__doc__.rstrip().endswith(".")


def test_numbers_become_columns():
    one, two = columns([RuleValue("x", (1.0, 5.0)), RuleValue("x", (2.0, 6.0))])
    assert one.tolist() == [[1.0], [2.0]] and two.tolist() == [[5.0], [6.0]]
    assert columns([greedy(), greedy()]) == []


def test_a_rule_without_memory_keeps_its_state():
    state = top_k(3).start((1, 2, 3))
    assert state is None and top_k(3).after(state, 5, Candidate(5, -1.0, -1.0, 1, -1.0)) is None


def test_a_rule_on_rows_gets_rows_states_and_columns(registry):
    @rule(reads="row", start=lambda prompt: sum(prompt),
          after=lambda state, token, fact: state + token)
    def lift_sum(rows, states, by):
        """Raise the token whose id is the sum of all tokens so far."""
        rows = rows.copy()
        for r, state in enumerate(states):
            rows[r, state % rows.shape[1]] += by[r, 0]
        return rows

    value = lift_sum(3)
    assert registry["lift_sum"].reads == "row" and str(value) == "lift_sum(3)"
    state = value.start((1, 2))
    assert state == 3 and value.after(state, 4, Candidate(4, -1.0, -1.0, 1, -1.0)) == 7
    rows = np.zeros((2, 5))
    one, two = shape(rows, [(value,), (lift_sum(7),)], [(3,), (7,)])
    assert one.values.tolist() == [0, 0, 0, 3, 0] and two.values.tolist() == [0, 0, 7, 0, 0]
    assert not rows.any()  # the model's rows are not changed


def test_rules_on_rows_and_on_heads_stack_in_any_order(registry):
    @rule(reads="row")
    def flip(rows, states):
        """Turn the order of likelihood around."""
        return -rows

    row = np.array([[0.0, 3.0, 1.0, 2.0]])

    def kept(*rules):
        [shaped] = shape(row, [rules], [(None,) * len(rules)], top=2)
        return sorted(shaped.ids.tolist())

    assert kept(top_k(1)) == [1]
    assert kept(flip(), top_k(1)) == [0]
    assert kept(flip(), flip(), top_k(3), top_k(1)) == [1]
    assert kept(flip(), temperature(2), top_k(2)) == [0, 2]
    assert kept(top_k(2), flip(), top_k(1)) == []  # what was removed came back as +inf: no token


def test_a_rule_says_at_once_which_numbers_it_takes():
    with pytest.raises(TypeError, match="top_k takes 1 numbers, not 0"):
        top_k()


def test_a_name_is_given_once():
    def top_p(head, p):
        """Another rule of a known name."""

    with pytest.raises(ValueError, match="there is a rule 'top_p' already"):
        rule()(top_p)
