"""Classifier-free guidance: away from what the model says to another prompt."""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unspool.core.sockets import Heard, Voice
from unspool.mixes.numbers import Number, check, plain
from unspool.mixes.rows import Row, Rows, by_row, logprobs


@dataclass(frozen=True, slots=True)
class Guidance:
    """u + scale (s - u), with s = log softmax of the own logits and u that of the voice's
    (Sanchez et al. 2023, arXiv:2306.17806; transformers: UnbatchedClassifierFreeGuidance).

    `scale` 1 gives s, 0 gives u, above 1 goes beyond s. `voice` reads the negative prompt; without
    one it reads the last token of the prompt alone, as in transformers. The w of diffusion models
    is scale - 1.
    """

    scale: Number
    voice: Voice
    layers: ClassVar[tuple[int, ...]] = ()
    reads_text: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check("guidance_scale", self.scale, -1000, 1000)

    @property
    def voices(self) -> tuple[Voice, ...]:
        return (self.voice,)

    def blend(self, heard: Heard) -> Rows:
        scale = plain(self.scale)

        def guided(own: Row, other: Row) -> Row:
            s, u = logprobs(own), logprobs(other)
            return u + scale * (s - u)

        return by_row(guided, heard.own, *heard.others)
