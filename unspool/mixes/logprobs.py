"""The row as log-probabilities: no other reader, and the same distribution."""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unspool.core.sockets import Heard, Voice
from unspool.mixes.rows import Rows, by_row, log_softmax


@dataclass(frozen=True, slots=True)
class LogProbabilities:
    """log softmax of the own logits. Rules that multiply, as a repetition penalty does, see other
    numbers then: transformers' beam search shows them these."""

    voices: ClassVar[tuple[Voice, ...]] = ()
    layers: ClassVar[tuple[int, ...]] = ()
    reads_text: ClassVar[bool] = False

    def blend(self, heard: Heard) -> Rows:
        return by_row(log_softmax, heard.own)
