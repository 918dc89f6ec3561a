"""What the value of a parameter may be: its type, its range, and the one check of both.

Knows no parameter by name; `params.py` is the table. Plain Python numbers come out, whatever
number type went in.
"""
from __future__ import annotations

import math
import operator
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, NoReturn

from unspool.core.errors import ParameterError
from unspool.core.schedule import Schedule, read_number

BUILT = 4  # parameters of later versions are known, and refused unless neutral
IDS = "1024 x 0.."  # a list of token ids; the vocabulary is checked where it is known
# Groups of parameters, and parameters, that may change from token to token.
CHANGING = {"temperature and curves", "cuts", "penalties", "other readers", "num_beams",
            "penalty_alpha", "diversity_penalty", "sibling_penalty"}
INT_MOST = 2**31 - 1  # where a range of whole numbers names no upper end


@dataclass(frozen=True, slots=True)
class Range:
    """`low..high`, both included; `low<..high` without low; `most x low..high` for each of a list.

    `a|b|c` are the only values allowed. For strings the range is that of their length.
    """

    low: float = -math.inf
    high: float = math.inf
    strict: bool = False
    most: int = 0
    words: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str, whole: bool) -> Range:
        """The range that `text` writes; `whole`: of whole numbers, which always have an end."""
        if "|" in text:
            return cls(words=tuple(text.split("|")))
        head, _, rest = text.rpartition(" x ")
        low, _, high = rest.partition("..")
        number, end = (int, INT_MOST) if whole else (float, math.inf)
        start = low.rstrip("<")
        return cls(
            low=number(start) if start else -math.inf,
            high=number(high) if high else end,
            strict=low.endswith("<"),
            most=int(head or 0),
        )

    def holds(self, value: float) -> bool:
        """False for NaN and, where the range has no end, for infinity."""
        above = self.low < value if self.strict else self.low <= value
        return above and value <= self.high and abs(value) != math.inf

    def __str__(self) -> str:
        if self.words:
            return " | ".join(self.words)
        end = "" if self.high == math.inf else f"{self.high:.15g}"
        if isinstance(self.high, int):
            end = str(self.high)
        start = "" if self.low == -math.inf else f"{self.low:g}"
        return f"{start}{'<' if self.strict else ''}..{end}"


class Repeats(NamedTuple):
    """When a text counts as repeating itself; see `stops/repetition.py`. Sizes in tokens."""

    max_pattern_size: int
    min_pattern_size: int = 1
    min_count: int = 2


@dataclass(frozen=True, slots=True)
class Parameter:
    """One row of the table: everything that flags, schemas, forms and pages need.

    `default`: what holds when neither the user nor the model says anything (None: decided by the
    other values). `neutral`: values that change nothing. `type`: "int", "float", "bool", "str",
    "bool | str", "tuple[int, ...]", "tuple[str, ...]", "Repeats", "str | Strategy" or "Any".
    """

    name: str
    type: str
    range: Range
    default: Any
    neutral: tuple[Any, ...]
    aliases: tuple[str, ...]
    help: str
    part: int
    group: str

    @property
    def built(self) -> bool:
        return self.part <= BUILT

    def is_neutral(self, value: object) -> bool:
        """True and 1 are told apart; a tuple is neutral as the list it came from. Where a number's
        default is below 0, all numbers below 0 are off."""
        if isinstance(value, Repeats):
            return value.max_pattern_size == 0
        if isinstance(value, float) and isinstance(self.default, float) and self.default < 0:
            return value < 0 or value in self.neutral
        value = list(value) if isinstance(value, tuple) else value
        return any(type(value) is type(calm) and value == calm for calm in self.neutral)

    def check(self, value: object) -> Any:
        """The value in its plain form. ParameterError: wrong type, out of range, or not built."""
        value = CHECKS[self.type](self, self.name, value)
        if not self.built and not self.is_neutral(value):
            raise ParameterError(
                f"{self.name}={shown(value)}: not in this version; leave it out", self.name
            )
        return value

    def refuse(self, label: str, value: object, rule: str, fix: str) -> NoReturn:
        raise ParameterError(f"{label}={shown(value)}: must be {rule}; {fix}", self.name)


def p(  # one line of the table should fit on one line
    group: str, default: Any, range_: str, text: str, aliases: str = "", part: int = BUILT,
    neutral: tuple[Any, ...] | None = (),
) -> Any:
    """A field of `Params`: unset until given. `range_` as in `Range`, `aliases` by spaces.

    The default is neutral too, unless `neutral` is None.
    """
    calm = (*(() if default is None else (default,)), *neutral) if neutral is not None else ()
    return field(default=None, metadata={
        "range": range_, "default": default, "neutral": calm, "help": text, "part": part,
        "group": group, "aliases": tuple(aliases.split()),
    })


def parameter(name: str, annotation: str, row: Mapping[str, Any]) -> Parameter:
    """The parameter that a field of `Params` declares."""
    kind = annotation.removesuffix(" | None")
    whole = kind != "float"
    return Parameter(
        name=name, type=kind, **{**row, "range": Range.of(row["range"], whole)}
    )


def shown(value: object) -> str:
    """`value` as a message may carry it: short, whatever it is."""
    brief = reprlib.Repr()
    brief.maxstring = brief.maxother = brief.maxlong = 40
    try:
        return brief.repr(value)
    except Exception:  # a whole number too long to print, or a repr of its own that fails
        return f"a {type(value).__name__}"


def _is_bool(value: object) -> bool:
    return type(value).__name__ in ("bool", "bool_")  # numpy's too, without importing numpy


def _number(to: Callable[[Any], Any], what: str) -> Callable[[Parameter, str, Any], Any]:
    def check(self: Parameter, label: str, value: Any) -> Any:
        schedule = read_number(value) if isinstance(value, str) else value
        if isinstance(schedule, Schedule):
            return scheduled(self, label, schedule, to is operator.index)
        rule, fix = f"{what} in {self.range}", "give one, or leave it out"
        if _is_bool(value) or hasattr(value, "__len__"):
            self.refuse(label, value, rule, fix)
        try:
            plain = to(value)
        except (OverflowError, TypeError, ValueError):
            self.refuse(label, value, rule, fix)
        if not self.range.holds(plain):
            self.refuse(label, value, rule, fix)
        return plain

    return check


whole_number = _number(operator.index, "a whole number")
number = _number(float, "a number")


def scheduled(self: Parameter, label: str, value: Schedule, whole: bool) -> Schedule:
    """A schedule, each of whose values the parameter may have."""
    if self.group not in CHANGING and self.name not in CHANGING:
        self.refuse(label, str(value), "one number, which holds for the whole text",
                    "only what shapes a distribution or sizes a search may change")
    for _, number in value.points:
        CHECKS[self.type](self, label, round(number) if whole else number)
    return replace(value, whole=whole)


def _bool(self: Parameter, label: str, value: Any) -> bool:
    if not _is_bool(value):
        self.refuse(label, value, "True or False", "give one of them")
    return bool(value)


def _text(self: Parameter, label: str, value: Any) -> str:
    if self.range.words:
        return str(_word(self, label, value))
    rule = f"a string of {self.range} characters"
    if not isinstance(value, str) or not self.range.holds(len(value)):
        self.refuse(label, value, rule, "shorten it, give it, or leave it out")
    if any("\ud800" <= c <= "\udfff" for c in value):
        self.refuse(label, value, "text that UTF-8 can write", "take out the lone surrogates")
    return str(value)


def _word(self: Parameter, label: str, value: Any) -> bool | str:
    """One of the range's words; True and False are words too."""
    plain = bool(value) if _is_bool(value) else value
    if not isinstance(plain, bool | str) or str(plain) not in self.range.words:
        self.refuse(label, value, f"one of {self.range}", "give one of them")
    return plain


EACH: Mapping[type, str] = {int: "an int", str: "a str"}


def _each(item: Callable[[Parameter, str, Any], Any], one: type) -> Callable[..., Any]:
    def check(self: Parameter, label: str, value: Any) -> tuple[Any, ...]:
        if getattr(value, "ndim", 0):  # an array
            value = value.tolist()
        if isinstance(value, one) or (one is int and hasattr(value, "__index__")):
            value = (value,)
        if not isinstance(value, list | tuple):
            self.refuse(label, value, f"{EACH[one]} or a list of them", "give a list")
        if len(value) > self.range.most:
            count = f"{len(value)} entries"
            raise ParameterError(
                f"{label} with {count}: must be at most {self.range.most}; give fewer", self.name
            )
        seen = (item(self, f"{label}[{i}]", one) for i, one in enumerate(value))
        return tuple(dict.fromkeys(seen))

    return check


def _repeats(self: Parameter, label: str, value: Any) -> Repeats:
    rule = "{max_pattern_size, min_pattern_size, min_count}"
    if isinstance(value, Repeats):
        value = value._asdict()
    if not isinstance(value, Mapping) or not {"max_pattern_size"} <= set(value):
        self.refuse(label, value, rule, "give at least max_pattern_size")
    if unknown := set(value) - set(Repeats._fields):
        self.refuse(f"{label}.{sorted(map(str, unknown))[0]}", "...", f"left out: only {rule}",
                    "take it out")
    plain = {k: whole_number(self, f"{label}.{k}", v) for k, v in value.items()}
    found = Repeats(**plain)
    if found.max_pattern_size == 0:
        return Repeats(0)
    if found.min_pattern_size < 1:
        self.refuse(f"{label}.min_pattern_size", found.min_pattern_size, "1 or more", "say 1")
    if found.min_pattern_size > found.max_pattern_size:
        self.refuse(label, dict(value), "min_pattern_size <= max_pattern_size", "swap them")
    if found.min_count < 2:
        self.refuse(f"{label}.min_count", found.min_count, "2 or more", "once is no repetition")
    return found


def _strategy(self: Parameter, label: str, value: Any) -> Any:
    if isinstance(value, str):
        return _text(self, label, value)
    from unspool.core.plan import Plan, Program  # which shows values by what is above

    if isinstance(value, Plan | Program):
        return value
    if not callable(getattr(value, "decide", None)) or isinstance(value, type):
        self.refuse(label, value, "a strategy or its name", "e.g. 'greedy', 'sample', 'beam:5'")
    return value


CHECKS: Mapping[str, Callable[[Parameter, str, Any], Any]] = {
    "int": whole_number,
    "float": number,
    "bool": _bool,
    "str": _text,
    "bool | str": _word,
    "tuple[int, ...]": _each(whole_number, int),
    "tuple[str, ...]": _each(_text, str),
    "Repeats": _repeats,
    "str | Strategy": _strategy,
    "Any": lambda self, label, value: value,
}
