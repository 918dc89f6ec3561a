"""Plans and programs as values: how they are joined, what ends a stage, and what is refused."""
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unspool.core.errors import ParameterError
from unspool.core.plan import Plan, Program, end

ENDING = st.sampled_from([Plan("a").for_tokens(3), Plan("b").until(step=9), Plan("c").until(
    entropy_above=2.5), Plan("d", (("x", 1),)).until(text=".")])


@given(ENDING, ENDING, st.sampled_from([Plan("end"), Plan("end").for_tokens(2)]))
def test_joining_is_associative(one, two, three):
    assert (one >> two) >> three == one >> (two >> three) == Program((one, two, three))


def test_two_programs_are_joined_too():
    one, two = Plan("a").for_tokens(1), Plan("b").for_tokens(2)
    assert (one >> two) >> (one >> two) == Program((one, two, one, two))
    assert str(one >> two) == "a@1 >> b@2"


def test_a_program_without_an_end_is_refused():
    with pytest.raises(ParameterError, match="stage 1, a, never ends") as error:
        Plan("a") >> Plan("b")
    assert error.value.name == "strategy"
    with pytest.raises(ParameterError, match="stage 2, b, never ends"):
        Plan("a").for_tokens(3) >> Plan("b") >> Plan("c")


def test_the_last_stage_may_have_an_end():
    assert (Plan("a").for_tokens(3) >> Plan("b").until(text="x")).plans[-1].ends == (("text", "x"),)


@pytest.mark.parametrize("other", ["sample", 3, None, object()])
def test_only_strategies_can_be_joined(other):
    for program in (Plan("a").for_tokens(1), Plan("a").for_tokens(1) >> Plan("b").for_tokens(1)):
        with pytest.raises(ParameterError, match="the right side is no strategy"):
            program >> other


@pytest.mark.parametrize(("kind", "value"), [
    ("tokens", 0), ("tokens", -1), ("tokens", 1.5), ("tokens", True), ("tokens", "5"),
    ("step", 0), ("text", ""), ("text", 5), ("regex", ""), ("entropy_above", -0.1),
    ("entropy_above", float("nan")), ("entropy_above", float("inf")), ("entropy_above", True),
])  # fmt: skip
def test_an_end_that_is_none_is_refused(kind, value):
    with pytest.raises(ParameterError, match=f"strategy: {kind}=") as error:
        end(kind, value)
    assert error.value.name == "strategy"
    with pytest.raises(ParameterError):
        Plan("a").until(**{kind: value})


def test_until_what():
    with pytest.raises(ParameterError, match="until what"):
        Plan("a").until()
    both = Plan("a").until(text="x").for_tokens(4)
    assert both.ends == (("text", "x"), ("tokens", 4)) and str(both) == "a@text=x,4"


def test_a_plan_and_what_stands_beside_it_must_agree():
    plan = Plan("beam", (("num_beams", 4),))
    assert plan.over({"num_beams": 4, "seed": 1, "strategy": plan}) == {
        "num_beams": 4, "seed": 1, "strategy": "beam"}
    with pytest.raises(ParameterError, match="num_beams=3 with strategy=beam:num_beams=4") as error:
        plan.over({"num_beams": 3})
    assert error.value.name == "num_beams"
