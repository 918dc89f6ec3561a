"""The ten likeliest tokens after "The color of sky is" on the default model."""
from __future__ import annotations

from collections.abc import Iterator

from bench.figure import Figure, at_most, exactly
from bench.pair import ours

PROMPT = "The color of sky is"
TOLERANCE = 0.0005
STATED = {" a": 0.1134, " ": 0.0945, " the": 0.0742, " not": 0.0435, " blue": 0.0323,
          " determined": 0.0254, " indeed": 0.0217, ' "': 0.0147, " often": 0.0144,
          " set": 0.0113}


def figures() -> Iterator[Figure]:
    top = ours().next(PROMPT).top(len(STATED))
    yield exactly("tokens in the stated order",
                  sum(a.text == b for a, b in zip(top, STATED, strict=True)), len(STATED))
    found = {token.text: token.prob for token in top}
    for text, stated in STATED.items():
        prob = found.get(text, float("nan"))
        yield at_most(f"|p({text!r}) - {stated:.4f}|", abs(prob - stated), TOLERANCE,
                      note=f"p = {prob:.5f}")
