"""How the spans of one forward lie in memory: one after the other, without padding.

Plain numbers, shared by every model. It knows spans, and no model.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from unspool.core.sockets import Span


def tokens(spans: Sequence[Span]) -> list[int]:
    """The tokens of all spans."""
    return [token for span in spans for token in span.tokens]


def positions(spans: Sequence[Span]) -> list[int]:
    """The position of each of those tokens in its own text."""
    return [span.start + i for span in spans for i in range(len(span.tokens))]


def slices(spans: Sequence[Span]) -> Iterator[tuple[Span, slice]]:
    """Each span with where its tokens lie."""
    end = 0
    for span in spans:
        begin, end = end, end + len(span.tokens)
        yield span, slice(begin, end)


def wanted(spans: Sequence[Span]) -> list[int]:
    """Which tokens want a row of logits."""
    return [i for span, at in slices(spans) for i in range(at.stop - span.rows, at.stop)]
