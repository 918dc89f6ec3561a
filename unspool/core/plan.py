"""Strategies as values: a plan is a strategy with its parameters, a program several plans in order.

`beam(5).for_tokens(20) >> sample(temperature=0.8)`. A plan knows no model and decides nothing; it
is written as a string too, and `llm/grammar.py` reads it.
"""
from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from unspool.core.errors import ParameterError
from unspool.core.schedule import Schedule
from unspool.core.values import shown

ENDS = {"tokens": "written in this stage", "step": "written in all", "text": "in what the stage "
        "wrote", "regex": "found there", "entropy_above": "bits before the next token"}
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_+-]*")  # a text that needs no quotes
CONSTANTS: Mapping[str, bool | None] = {"true": True, "false": False, "none": None}


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """A strategy as the parameters that ask for it.

    `ends`: (kind, value) each, what ends the stage; the first that comes about does. `own`: a
    strategy object of a caller's own, whose `name` is then only shown.
    """

    name: str
    params: tuple[tuple[str, Any], ...] = ()
    ends: tuple[tuple[str, Any], ...] = ()
    own: Any = None

    def over(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """These parameters beside those of the request. Raises ParameterError when two differ."""
        out = {k: v for k, v in given.items() if k != "strategy"}
        for name, value in (("strategy", self.name), *self.params):
            if out.get(name) not in (None, value):
                raise ParameterError(f"{name}={shown(out[name])} with strategy={self}: the "
                                     f"strategy says {shown(value)}; give one of them", name)
            out[name] = value
        return out

    def for_tokens(self, count: int) -> Plan:
        """Until this stage has written `count` tokens."""
        return self.until(tokens=count)

    def until(self, *, text: str | None = None, regex: str | None = None,
              entropy_above: float | None = None, step: int | None = None,
              tokens: int | None = None) -> Plan:
        """Until one of these comes about, then the next stage takes over.

        `text`, `regex`: in what this stage wrote, which keeps it; `entropy_above`: the model's own
        distribution of the next token has more bits; `step`: so many tokens were written in all;
        `tokens`: in this stage. Raises ParameterError for none of them, or for a wrong value.
        """
        given = {"tokens": tokens, "step": step, "text": text, "regex": regex,
                 "entropy_above": entropy_above}
        ends = tuple((kind, end(kind, v)) for kind, v in given.items() if v is not None)
        if not ends:
            raise ParameterError(f"{self}.until(): until what? Give one of {', '.join(ENDS)}",
                                 "strategy")
        return replace(self, ends=(*self.ends, *ends))

    def __rshift__(self, then: Plan | Program) -> Program:
        return Program((self,)) >> then

    def __str__(self) -> str:
        params = ",".join(f"{name}={written(value)}" for name, value in self.params)
        ends = ",".join(written(v) if kind == "tokens" else f"{kind}={written(v, plain=True)}"
                        for kind, v in self.ends)
        return self.name + (f":{params}" if params else "") + (f"@{ends}" if ends else "")

    def __repr__(self) -> str:
        return repr(str(self))


@dataclass(frozen=True, slots=True, repr=False)
class Program:
    """Plans, each of which takes over the best texts of the one before."""

    plans: tuple[Plan, ...]

    def __post_init__(self) -> None:
        for number, plan in enumerate(self.plans[:-1], 1):
            if not plan.ends:
                raise ParameterError(f"strategy={self}: stage {number}, {plan}, never ends, so "
                                     "what follows never begins; say for_tokens(N) or until(...), "
                                     "in a string @N", "strategy")

    def __rshift__(self, then: Plan | Program) -> Program:
        if not isinstance(then, Plan | Program):
            raise ParameterError(f"{self} >> {shown(then)}: the right side is no strategy; use "
                                 "unspool.sample(...), beam(...) or another of that kind",
                                 "strategy")
        return Program(self.plans + (then.plans if isinstance(then, Program) else (then,)))

    def __str__(self) -> str:
        return " >> ".join(map(str, self.plans))

    def __repr__(self) -> str:
        return repr(str(self))


def end(kind: str, value: Any) -> Any:
    """The value of what ends a stage, checked."""
    what = f"strategy: {kind}={shown(value)}"
    if kind in ("text", "regex"):
        if not isinstance(value, str) or not value:
            raise ParameterError(f"{what}: must be a text with a character; give one", "strategy")
        return value
    whole = kind in ("tokens", "step")
    right = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if not right or not (value > 0 if whole else 0 <= value < 1000):
        rule = "a whole number from 1 on" if whole else "a number of bits, 0..1000"
        raise ParameterError(f"{what}: must be {rule}; give one", "strategy")
    return value


def written(value: Any, plain: bool = False) -> str:
    """A value as the string form of a plan has it. `plain`: a text there is never JSON."""
    if value is None or isinstance(value, bool | int | Schedule):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str) and WORD.fullmatch(value) and value.lower() not in CONSTANTS:
        return value
    if isinstance(value, list | tuple | dict) or (
            isinstance(value, str) and value[:1] in ("[", "{", '"') and not plain):
        value = json.dumps(value, ensure_ascii=False, default=repr)
    text: str = getattr(value, "__name__", None) or str(value)
    for character, escaped in (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("\t", "\\t")):
        text = text.replace(character, escaped)
    return f"'{text}'"
