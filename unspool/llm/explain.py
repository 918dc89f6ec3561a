"""Which value every parameter has in a request, and where it came from."""
from __future__ import annotations

from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from typing import Any

from unspool.core.params import plain
from unspool.core.schedule import Schedule
from unspool.core.sockets import Stop
from unspool.llm.resolve import Resolved
from unspool.stops.stage import EndOfStage
from unspool.stops.tokens import EndTokens, StopTokens


@dataclass(frozen=True, slots=True)
class Part:
    """A stage of a program: as it was written, its strategy, how many texts it takes over, and the
    mixes and rules in force, in order."""

    plan: str
    strategy: str
    takes: int
    mixes: tuple[str, ...]
    order: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        return {"plan": self.plan, "strategy": self.strategy, "takes": self.takes,
                "mixes": list(self.mixes), "order": list(self.order)}


@dataclass(frozen=True, slots=True)
class Explanation:
    """`rows`: (name, value, source), the source being user, model, dialect, default or derived;
    `mixes`, `order`: the mixes and the rules as they are applied, the rules in the order of
    `dialect`; of a program all of them, and `program` says where which are in force."""

    rows: tuple[tuple[str, Any, str], ...]
    strategy: str
    dialect: str
    order: tuple[str, ...]
    stops: tuple[str, ...]
    notes: tuple[str, ...]
    mixes: tuple[str, ...] = ()
    program: tuple[Part, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"parameters": [{"name": n, "value": v, "source": s} for n, v, s in self.rows],
                "strategy": self.strategy, "dialect": self.dialect, "order": list(self.order),
                "stops": list(self.stops), "notes": list(self.notes),
                "mixes": list(self.mixes), "program": [part.json() for part in self.program]}


def explanation(resolved: Resolved, notes: tuple[str, ...]) -> Explanation:
    request, params = resolved.request, resolved.params
    rows = tuple((name, plain(value), resolved.origin.get(name, "derived"))
                 for name, value in params.given().items())
    stops = tuple(map(told, filter(able, request.stops)))
    return Explanation(rows, str(request.strategy), resolved.dialect.name,
                       tuple(map(str, request.rules)), stops, (*notes, *resolved.notes),
                       tuple(map(told, request.mixes)), program_of(resolved))


def program_of(resolved: Resolved) -> tuple[Part, ...]:
    request = resolved.request
    return tuple(
        Part(str(plan), str(stage.strategy), stage.takes,
             tuple(told(request.mixes[i]) for i in stage.mixes or ()),
             tuple(str(request.rules[i]) for i in stage.rules or ()))
        for plan, stage in zip(resolved.plans, request.program, strict=True))


def able(stop: Stop) -> bool:
    """False for a stop at tokens that has none."""
    if isinstance(stop, EndTokens):
        return bool(stop.ids) and not stop.ignored
    return bool(stop.ids) if isinstance(stop, StopTokens) else True


def told(value: Any) -> str:
    """A stop or a mix with its numbers and strings: `EndTokens(2)`, `Guidance(1.5)`; the end of a
    stage with its stop in it: `EndOfStage(0, Tokens(20))`."""
    parts: list[str] = []
    for one in (getattr(value, f.name) for f in dataclass_fields(value)):
        if isinstance(one, frozenset | tuple):
            parts += [str(x) if isinstance(x, Schedule) else repr(x) for x in listed(one)]
        elif isinstance(one, int | float | str | Schedule) and not isinstance(one, bool):
            parts.append(str(one))
        elif isinstance(value, EndOfStage) and one is value.stop:
            parts.append(told(one))
    return f"{type(value).__name__}({', '.join(parts)})"


def listed(items: Any) -> list[Any]:
    """Numbers, and strings; where the order says nothing, in order."""
    kept = [x for x in items if isinstance(x, int | float | str | Schedule)]
    free = isinstance(items, frozenset) or all(isinstance(x, str) for x in kept)
    return sorted(kept) if free else kept
