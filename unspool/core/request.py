"""A request: what was asked, with every socket filled. The same request gives the same text."""
from __future__ import annotations

from dataclasses import dataclass

from unspool.core.sockets import Drafter, Rule, Stop, Strategy


@dataclass(frozen=True, slots=True)
class Request:
    """Token ids in, tokens out. Text, defaults and names were resolved before.

    `prompt`: token ids. `rules`: applied in this order. `stops`: asked in this order after every
    token; a stop outranks a length. `others`: likeliest tokens noted with each written one.
    `keep_rows`: leave each slot its rows of scores; `why`: each written token keeps them too.
    `held`: after each step the job waits until it is released (the caller may choose the token).
    `salt`: requests with different salts never share memory. `remember`: False reads the whole text
    at every step. `repair`: NaN and infinity among the scores are read as numbers and no error.
    """

    prompt: tuple[int, ...]
    strategy: Strategy
    rules: tuple[Rule, ...] = ()
    stops: tuple[Stop, ...] = ()
    drafter: Drafter | None = None
    seed: int = 0
    salt: str = ""
    others: int = 0
    keep_rows: bool = False
    why: bool = False
    held: bool = False
    remember: bool = True
    repair: bool = False
