"""How the spans of one forward lie in memory: one after the other, without padding.

Shared by every torch model. It knows spans, and no model.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor

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


class Rows:
    """Scores of a forward that has been computed, or runs on its device."""

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits

    def rows(self) -> Any:
        """[wanted tokens, vocabulary]: a numpy view on the CPU, the tensor elsewhere."""
        return self.logits.numpy() if self.logits.device.type == "cpu" else self.logits
