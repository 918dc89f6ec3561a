"""Which value every parameter has in a request, and where it came from."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unspool.core.params import plain
from unspool.llm.resolve import Resolved


@dataclass(frozen=True, slots=True)
class Explanation:
    """`rows`: (name, value, source); `order`: the rules as they are applied."""

    rows: tuple[tuple[str, Any, str], ...]
    strategy: str
    order: tuple[str, ...]
    stops: tuple[str, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"parameters": [{"name": n, "value": v, "source": s} for n, v, s in self.rows],
                "strategy": self.strategy, "order": list(self.order), "stops": list(self.stops),
                "notes": list(self.notes)}


def explanation(resolved: Resolved, notes: tuple[str, ...]) -> Explanation:
    request, params = resolved.request, resolved.params
    rows = tuple((name, plain(value), resolved.origin.get(name, "derived"))
                 for name, value in params.given().items())
    stops = tuple(type(stop).__name__ for stop in request.stops)
    return Explanation(rows, str(request.strategy), tuple(map(str, request.rules)), stops,
                       (*notes, *resolved.notes))
