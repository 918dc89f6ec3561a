"""Context-aware decoding: more of what a context adds to the same question without it."""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unspool.core.sockets import Heard, Voice
from unspool.mixes.numbers import Number, check, plain
from unspool.mixes.rows import Row, Rows, bounded, by_row


@dataclass(frozen=True, slots=True)
class ContextAware:
    """(1 + alpha) l - alpha l', on raw logits: l with the context, which is the own prompt, and l'
    without it, the voice's (Shi et al. 2023, arXiv:2305.14739).

    `alpha` 0 is the own row, bit for bit. The paper takes 1 where the context contradicts what the
    model has learned, and 0.5 for summaries.
    """

    alpha: Number
    voice: Voice
    layers: ClassVar[tuple[int, ...]] = ()
    reads_text: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check("context_alpha", self.alpha, 0, 1000)

    @property
    def voices(self) -> tuple[Voice, ...]:
        return (self.voice,)

    def blend(self, heard: Heard) -> Rows:
        alpha = plain(self.alpha)

        def aware(own: Row, without: Row) -> Row:
            if alpha == 0:  # 0 times a number may be -0.0, and that is another bit
                return own
            return (1 + alpha) * bounded(own) - alpha * bounded(without)

        return by_row(aware, heard.own, *heard.others)
