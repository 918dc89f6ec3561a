"""Rules that sharpen or flatten a distribution without removing a token."""
from __future__ import annotations

from unspool.kernels.reading.head import Head
from unspool.kernels.reading.plain import Floats
from unspool.rules.rule import rule


@rule()
def temperature(head: Head, t: Floats) -> None:
    """Divide the logits by t > 0: above 1 flatter, below 1 sharper."""
    head.divide(t)
