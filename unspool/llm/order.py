"""The parameter `order`: the name of a dialect, or the stages of one's own order."""
from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, NoReturn

from unspool.core.errors import ParameterError
from unspool.core.values import shown
from unspool.rules.dialects import DIALECTS, UNSPOOL, Dialect, spellings

OWN = "your own order"  # the name of a dialect that is a list of stages
MOST = 256  # stages of a list
NAMES = {spelling: dialect for dialect in DIALECTS.values()
         for spelling in (dialect.name, *dialect.also)}


def dialect_of(value: Any) -> Dialect:
    """The dialect that `order` asks for.

    A list of stages, also as a text with commas or semicolons, sets the order alone: the rest is
    this program's own. Raises ParameterError for a name that is not known.
    """
    if value is None:
        return UNSPOOL
    if isinstance(value, str):
        if value.strip().lower() in NAMES:
            return NAMES[value.strip().lower()]
        value = [part for part in re.split("[,;]", value) if part.strip()]
    if not isinstance(value, list | tuple):
        raise ParameterError(f"order={shown(value)}: must be a dialect ({', '.join(DIALECTS)}) or "
                             "a list of stages; give one of them", "order")
    order = tuple(stage for name in value for stage in stages_of(name))
    if not 0 < len(order) <= MOST:
        raise ParameterError(f"order with {len(order)} stages: must be 1..{MOST}; name the stages "
                             "that you use", "order")
    return replace(UNSPOOL, name=OWN, order=order)


def stages_of(name: Any) -> tuple[str, ...]:
    """The stages that one name of a list means."""
    known = spellings()
    plain = str(name).strip().lower().replace("-", "_") if isinstance(name, str) else ""
    return known[plain] if plain in known else unknown(name, plain, (*NAMES, *known))


def unknown(name: Any, plain: str, known: Iterable[str]) -> NoReturn:
    if isinstance(name, str) and name.strip().lower() in NAMES:
        raise ParameterError(f"order: {shown(name)} is a dialect, and a list has stages; name it "
                             "alone, not in a list", "order")
    near = get_close_matches(plain[:64], known, n=1, cutoff=0.6)
    fix = f"did you mean {near[0]}?" if near else (
        f"dialects are {', '.join(DIALECTS)}; docs/rules.md lists the stages")
    raise ParameterError(f"order={shown(name)}: not a known dialect or stage; {fix}", "order")


def as_given(dialect: Dialect) -> str | tuple[str, ...]:
    """The value of `order` that asks for this dialect."""
    return dialect.order if dialect.name == OWN else dialect.name
