"""Rules whose numbers change with the step, from parameters that do.

The order is walked with each value that a schedule names, and what differs in the rules becomes a
schedule there.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from unspool.core.errors import ParameterError
from unspool.core.schedule import Schedule
from unspool.core.values import shown
from unspool.llm.shaping import Mode, Shaping, shape
from unspool.llm.stages import Asked
from unspool.rules import RuleValue

# Values that no number of the parameter's rule stands for.
APART = {"temperature": (0, "0 is greedy, which is another rule; end above 0, or go on in a stage "
                            "of its own, as in 'sample@20 >> greedy'"),
         "top_h": (1, "1 is off, which is no rule; stay below"),
         "mirostat": (0, "0 is off, which is no rule; change mirostat_tau")}


def shaped(asked: Asked, origin: Mapping[str, str], mode: Mode) -> Shaping:
    """As `shape`, also for parameters that are schedules. Raises ParameterError where one changes
    which rules there are, and where two change the same number."""
    schedules = {name: value for name, value in asked.params.given().items()
                 if isinstance(value, Schedule)}
    if not schedules:
        return shape(asked, origin, mode)
    for name, (value, why) in APART.items():
        if name in schedules and value in schedules[name].values:
            refuse(name, schedules[name], why)
    first = {name: value.at(0) for name, value in schedules.items()}
    asked = replace(asked, changing=schedules)
    out = with_values(asked, origin, mode, first)
    base = tuple(out.rules)
    for name, schedule in schedules.items():
        columns = [with_values(asked, origin, mode, {**first, name: schedule.at(step)}).rules
                   for step, _ in schedule.points]
        out.rules = joined(name, schedule, base, out.rules, columns)
    return out


def with_values(asked: Asked, origin: Mapping[str, str], mode: Mode, values: Mapping[str, Any]
                ) -> Shaping:
    return shape(replace(asked, params=replace(asked.params, **values), notes=[]), origin, mode)


def joined(name: str, schedule: Schedule, base: tuple[RuleValue, ...], rules: list[RuleValue],
           columns: list[list[RuleValue]]) -> list[RuleValue]:
    """`rules`, with what the parameter changes in `base` as a schedule."""
    out = []
    for place, (before, rule) in enumerate(zip(base, rules, strict=True)):
        seen = [column[place] for column in columns if len(column) == len(base)]
        same = len(seen) == len(columns) and all(
            (one.name, one.data, len(one.numbers)) == (
                before.name, before.data, len(before.numbers)) for one in seen)
        if not same:
            refuse(name, schedule, "it changes which rules there are, not only their numbers")
        numbers = list(rule.numbers)
        for i, number in enumerate(before.numbers):
            values = [one.numbers[i] for one in seen]
            if values == [number] * len(values):
                continue
            if isinstance(numbers[i], Schedule):
                refuse(name, schedule, f"another schedule changes the same number of {rule.name}")
            points = tuple((step, v) for (step, _), v in zip(schedule.points, values, strict=True))
            numbers[i] = Schedule(points, schedule.jumps, schedule.whole)
        out.append(replace(rule, numbers=tuple(numbers)))
    return out


def refuse(name: str, schedule: Schedule, why: str) -> None:
    raise ParameterError(f"{name}={shown(schedule)}: {why}; give one number", name)
