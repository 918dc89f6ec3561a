"""A request: what was asked, with every socket filled. The same request gives the same text."""
from __future__ import annotations

from dataclasses import dataclass

from unspool.core.sockets import Drafter, Mix, Rule, Stop, Strategy, Voice
from unspool.core.stage import Stage


@dataclass(frozen=True, slots=True)
class Request:
    """Token ids in, tokens out. Text, defaults and names were resolved before.

    `prompt`: token ids. `rules`: applied in this order. `stops`: asked in this order after every
    token; a stop outranks a length. `others`: likeliest tokens noted with each written one.
    `keep_rows`: leave each slot its rows of scores; `why`: each written token keeps them too.
    `held`: after each step the job waits until it is released (the caller may choose the token).
    `salt`: requests with different salts never share memory. `remember`: False reads the whole text
    at every step. `repair`: NaN and infinity among the scores are read as numbers and no error.
    `mixes`: what other readers say, joined in this order, before the rules. `program`: the stages,
    the first of them with `strategy`; none given: one, with all rules and mixes.
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
    mixes: tuple[Mix, ...] = ()
    program: tuple[Stage, ...] = ()

    @property
    def stages(self) -> tuple[Stage, ...]:
        return self.program or (Stage(self.strategy),)

    @property
    def voices(self) -> tuple[Voice, ...]:
        """The other readers, those of all mixes in their order."""
        return tuple(voice for mix in self.mixes for voice in mix.voices)
