"""What a dialect is: how one engine goes from its parameters to a distribution. Data only."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from unspool.rules.rows import EVERYTHING, GENERATED

Order = tuple[str, ...]
COUNTED: Mapping[str, int] = {"repetition_penalty": EVERYTHING, "frequency_penalty": GENERATED,
                              "presence_penalty": GENERATED}


@dataclass(frozen=True, slots=True)
class Dialect:
    """`order`: the stages as they are applied, see `stages.py`. A stage that is not among them is
    one that the engine lacks.

    `also`: other names of the dialect. `instead`: the order where a parameter is in use.
    `defaults`: values that hold when neither the user nor the model says anything.
    `counted`: which tokens each penalty counts; how many of the last is the parameter
    `repeat_last_n`. `ties`: the cuts that keep all tokens as likely as the last that they keep.
    `floor`: what a temperature above 0 is raised to. `most_bias`: what a bias is limited to.
    `bias_each`: a text's bias goes to each of its tokens, not to the text as a whole.
    `spares_ends`: an end token is no bad word. `xtc_spares`: XTC leaves a row alone rather than
    take away an end token or a new line. `adds_values`: the rules of a beam search see
    log-probabilities, and its scores add up what they leave of them, not normalised. `unlike`: what
    else is different in the engine and not reproduced, by the parameter that shows it.
    """

    name: str
    order: Order
    also: tuple[str, ...] = ()
    instead: Mapping[str, Order] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    counted: Mapping[str, int] = field(default_factory=lambda: COUNTED)
    ties: tuple[str, ...] = ()
    floor: float = 0.0
    most_bias: float = float("inf")
    bias_each: bool = False
    spares_ends: bool = False
    xtc_spares: bool = True
    adds_values: bool = False
    unlike: Mapping[str, str] = field(default_factory=dict)
