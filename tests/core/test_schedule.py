"""Numbers that change from token to token: their values, their string form, values that hold one.
"""
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unspool.core.errors import ParameterError
from unspool.core.params import Params, fields
from unspool.core.schedule import Schedule, at, jumps, ramp, read_number, steady
from unspool.core.values import CHANGING

FLOATS = st.floats(-1e6, 1e6, allow_nan=False)
SCHEDULES = st.builds(
    lambda points, jump: Schedule(tuple(sorted(points.items())), jump),
    st.dictionaries(st.integers(0, 10**6), FLOATS, min_size=1, max_size=4), st.booleans())


def test_straight_lines_and_what_lies_before_and_behind_them():
    falling = Schedule(((2, 1.0), (6, 0.0), (8, 4.0)))
    assert [falling.at(step) for step in (0, 2, 3, 4, 6, 7, 8, 99)] == [
        1.0, 1.0, 0.75, 0.5, 0.0, 2.0, 4.0, 4.0]
    assert ramp(1.5, 0.5, 4) == Schedule(((0, 1.5), (4, 0.5)))


def test_jumps_hold_a_value_until_the_next():
    stairs = jumps((0, 5), (3, 2))
    assert [stairs.at(step) for step in (0, 2, 3, 50)] == [5, 5, 2, 2]
    assert [jumps((2, 5), (4, 1)).at(step) for step in (0, 2, 4)] == [5, 5, 1]


def test_whole_numbers_are_rounded():
    width = Schedule(((0, 5.0), (4, 2.0)), whole=True)
    assert [width.at(step) for step in range(6)] == [5, 4, 4, 3, 2, 2]
    assert type(width.at(1)) is int


@given(SCHEDULES)
def test_the_extremes_lie_among_the_values(schedule):
    steps = [step for step, _ in schedule.points]
    for step in (0, steps[0] + 1, (steps[0] + steps[-1]) // 2, steps[-1] + 1):
        assert min(schedule.values) <= schedule.at(step) <= max(schedule.values)


@given(SCHEDULES)
def test_what_is_written_is_read_as_the_same(schedule):
    read = read_number(str(schedule))
    if len(schedule.points) == 1:  # with one point both forms say the same
        assert read == Schedule(schedule.points)
    else:
        assert read == schedule


@pytest.mark.parametrize(("text", "found"), [
    ("7", 7), ("-3", -3), (".5", 0.5), ("1e-3", 1e-3), ("+2", 2), (" 4 ", 4),
    ("1.2..0.5/40", ramp(1.2, 0.5, 40)), ("1...5/40", ramp(1, 0.5, 40)),
    ("1!0.7/20", jumps((0, 1), (20, 0.7))), ("2/5", Schedule(((5, 2.0),))),
    ("1/2 .. 0/4 .. 3/9", Schedule(((2, 1.0), (4, 0.0), (9, 3.0)))), ("1/0", ramp(1, 1, 1)),
], ids=str)  # fmt: skip
def test_numbers_and_schedules_are_read(text, found):
    read = read_number(text)
    same = read.at(0) == 1 and len(read.points) == 1 if text == "1/0" else read == found
    assert same and type(read) is type(found)


@pytest.mark.parametrize("text", [
    "", "x", "1..2", "1..2/", "1/4..2/4", "1/5..2/4", "1..2/3!4/5", "..", "1e999..2/3", "1..nan/3",
    "1,5", "1 2", "0x5", "٣", "1..2/٣", "²", "1" * 5000, "1..2/" + "9" * 50, "--1", "1/-2", "1/2.5",
])  # fmt: skip
def test_what_is_neither_is_not_read(text):
    assert read_number(text) is None


@pytest.mark.parametrize("points", [
    (), ((1, 2.0), (1, 3.0)), ((3, 2.0), (1, 3.0)), ((-1, 2.0),), ((0.5, 2.0),), ((True, 2.0),),
    ((0, float("nan")),), ((0, float("inf")),), ((2**31, 1.0),),
], ids=str)  # fmt: skip
def test_a_schedule_that_is_none_is_refused(points):
    with pytest.raises(ParameterError, match="a schedule"):
        Schedule(points)


@dataclass(frozen=True)
class Numbers:
    one: object
    many: tuple = ()
    deep: object = None


def test_values_that_hold_a_schedule():
    fall = ramp(4, 0, 4)
    inside = Numbers(fall, (1, fall, "x"))
    assert steady(Numbers(1, (2,))) and steady((1, "x")) and steady(3) and steady(Numbers)
    assert not steady(inside) and not steady((0, inside)) and not steady(fall)
    assert at(inside, 1) == Numbers(3.0, (1, 3.0, "x")) and at(fall, 4) == 0
    assert at((inside, 5), 2) == (Numbers(2.0, (1, 2.0, "x")), 5)
    calm = Numbers(1, deep=Numbers(fall))
    assert steady(calm) and at(calm, 1) is calm  # what lies deeper is data


# ── as the value of a parameter ──────────────────────────────────────────────────────────────────
MAY = [name for name, row in fields().items()
       if row.built and row.type in ("int", "float") and CHANGING & {row.group, name}]
MAY_NOT = [name for name, row in fields().items()
           if row.built and row.type in ("int", "float") and name not in MAY]


def inside(row):
    """Two values of its range."""
    low = max(row.range.low, 0)
    low = low + 1 if row.range.strict or row.type == "int" else low
    return low, low + (1 if row.type == "int" else min(row.range.high - low, 1) / 2)


@pytest.mark.parametrize("name", MAY)
def test_a_parameter_that_may_change_takes_a_schedule_in_any_form(name):
    row = fields()[name]
    low, high = inside(row)
    schedule = ramp(low, high, 5)
    value = getattr(Params.of({name: schedule}), name)
    assert value == Schedule(schedule.points, whole=row.type == "int")
    read = Params.of({name: f"{low}..{high}/5"})
    assert read == Params.of({name: schedule}) and read.active(name) is not None
    assert Params.of(read.to_json()) == read  # also over JSON


@pytest.mark.parametrize("name", MAY_NOT)
def test_another_says_that_it_may_not(name):
    low, high = inside(fields()[name])
    with pytest.raises(ParameterError, match="one number, which holds for the whole text") as error:
        Params.of({name: f"{low}..{high}/5"})
    assert error.value.name == name


@pytest.mark.parametrize(("name", "value"), [
    ("top_p", "0.5..1.5/10"), ("top_p", ramp(0.5, -0.1, 10)), ("num_beams", "5..0/10"),
    ("temperature", "1..2000/3"), ("min_p", "0.5"), ("top_k", "7"), ("top_k", "5..x/3"),
])
def test_a_value_out_of_range_is_refused_at_either_end(name, value):
    with pytest.raises(ParameterError, match=f"^{name}=") as error:
        Params.of({name: value})
    assert error.value.name == name
