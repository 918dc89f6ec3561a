"""Which value every parameter has in a request, and where it came from."""
from __future__ import annotations

from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from typing import Any

from unspool.core.params import plain
from unspool.core.sockets import Stop
from unspool.llm.resolve import Resolved
from unspool.stops.tokens import EndTokens, StopTokens


@dataclass(frozen=True, slots=True)
class Explanation:
    """`rows`: (name, value, source), the source being user, model, dialect, default or derived;
    `order`: the rules as they are applied, in the order of `dialect`."""

    rows: tuple[tuple[str, Any, str], ...]
    strategy: str
    dialect: str
    order: tuple[str, ...]
    stops: tuple[str, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"parameters": [{"name": n, "value": v, "source": s} for n, v, s in self.rows],
                "strategy": self.strategy, "dialect": self.dialect, "order": list(self.order),
                "stops": list(self.stops), "notes": list(self.notes)}


def explanation(resolved: Resolved, notes: tuple[str, ...]) -> Explanation:
    request, params = resolved.request, resolved.params
    rows = tuple((name, plain(value), resolved.origin.get(name, "derived"))
                 for name, value in params.given().items())
    stops = tuple(map(told, filter(able, request.stops)))
    return Explanation(rows, str(request.strategy), resolved.dialect.name,
                       tuple(map(str, request.rules)), stops, (*notes, *resolved.notes))


def able(stop: Stop) -> bool:
    """False for a stop at tokens that has none."""
    if isinstance(stop, EndTokens):
        return bool(stop.ids) and not stop.ignored
    return bool(stop.ids) if isinstance(stop, StopTokens) else True


def told(stop: Any) -> str:
    """A stop with its numbers and strings: `EndTokens(2)`, `MaxNew(128, max_new_tokens)`."""
    parts: list[str] = []
    for value in (getattr(stop, f.name) for f in dataclass_fields(stop)):
        if isinstance(value, tuple | frozenset):
            parts += map(repr, sorted(value))
        elif isinstance(value, int | float | str) and not isinstance(value, bool):
            parts.append(str(value))
    return f"{type(stop).__name__}({', '.join(parts)})"
