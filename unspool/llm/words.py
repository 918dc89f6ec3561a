"""The words that a text must contain, as ids, without those that the rules never let through."""
from __future__ import annotations

import math
from collections.abc import Callable

from unspool.core.errors import ParameterError
from unspool.core.params import Params
from unspool.core.values import shown
from unspool.llm.facts import Facts
from unspool.llm.prompts import whole
from unspool.llm.sequences import Ids, banned, biases, clauses, ids_of

NAME = "must_contain"
Ban = Callable[[Ids], bool]  # whether a word can never be written


def writable_words(facts: Facts, params: Params) -> tuple[tuple[Ids, ...], ...]:
    """Raises ParameterError, which says what forbids a word of which no spelling is left."""
    bans = bans_of(facts, params)
    out = []
    for place, spellings in enumerate(clauses(facts, params.must_contain)):
        left = tuple(ids for ids in spellings if not any(ban(ids) for ban in bans.values()))
        if not left:
            names = [name for name, ban in bans.items() if any(map(ban, spellings))]
            raise ParameterError(f"{NAME}: {shown(item_at(params.must_contain, place))} cannot be "
                                 f"written, {' and '.join(names)} forbid its tokens; drop it, or "
                                 "allow them", NAME)
        out.append(left)
    return tuple(out)


def bans_of(facts: Facts, params: Params) -> dict[str, Ban]:
    """What each parameter forbids for the whole text."""
    out: dict[str, Ban] = {}
    if params.active("suppress_tokens") is not None:
        out["suppress_tokens"] = having(of(facts, params, "suppress_tokens"))
    if params.active("allowed_token_ids") is not None:
        allowed = of(facts, params, "allowed_token_ids")
        out["allowed_token_ids"] = lambda ids: not allowed.issuperset(ids)
    if params.active("bad_words") is not None:
        bad = banned(facts, params.bad_words)
        out["bad_words"] = lambda ids: any(within(word, ids) for word in bad)
    if params.active("logit_bias") is not None:
        never = {ids[0] for ids, number in biases(facts, params.logit_bias)
                 if len(ids) == 1 and number == -math.inf}
        out["logit_bias"] = having(frozenset(never))
    return out


def of(facts: Facts, params: Params, name: str) -> frozenset[int]:
    value = getattr(params, name)
    return frozenset(ids_of(facts, name, [value] if whole(value) is not None else value))


def having(tokens: frozenset[int]) -> Ban:
    return lambda ids: not tokens.isdisjoint(ids)


def within(part: Ids, ids: Ids) -> bool:
    return any(ids[at:at + len(part)] == part for at in range(len(ids) - len(part) + 1))


def item_at(value: object, place: int) -> object:
    return value[place] if isinstance(value, list | tuple) else value
