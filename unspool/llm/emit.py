"""Tokens in, text out: deltas that never split a character and never leak a stop.

One emitter follows one choice. The final text of a result is what it emitted, so a stream and a
result cannot differ.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from unspool.core.branch import Ended
from unspool.core.prefix import Candidate
from unspool.stops.text import StopStrings
from unspool.text.incremental import Decoder


@dataclass(slots=True, eq=False)
class Emitter:
    """`piece`: the bytes of a token; `ends`: tokens that may end the text and are then not shown;
    `stops`: holds back what may still become a stop string."""

    piece: Callable[[int], bytes]
    ends: frozenset[int] = frozenset()
    stops: StopStrings | None = None
    decoder: Decoder = field(default_factory=Decoder)
    pending: bytes = b""
    node: int = 0

    def commit(self, tokens: Iterable[Candidate]) -> str:
        """The text that is now certain."""
        out = ""
        for candidate in tokens:
            data = self.piece(candidate.token)
            self.pending += data
            held = 0
            if self.stops is not None:
                self.node, _, read = self.stops.automaton.first(data, self.node)
                held = len(data) - read + self.stops.held(self.node)
            if candidate.token in self.ends:
                held = max(held, len(data))
            out += self.release(len(self.pending) - held)
        return out

    def finish(self, ended: Ended | None) -> str:
        """The rest of the text, without what the stop cuts off."""
        cut = ended.cut if ended is not None else 0
        return self.release(len(self.pending) - cut) + self.decoder.flush()

    def release(self, count: int) -> str:
        if count <= 0:
            return ""
        ready, self.pending = self.pending[:count], self.pending[count:]
        return self.decoder.feed(ready)
