"""From what a caller asked to what the engine answers: every name, default and limit is settled.

Nothing here runs a model. What was changed or not applied is in the notes.
"""
from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from unspool.core.defaults import merged
from unspool.core.params import Params
from unspool.core.plan import Plan, Program
from unspool.core.request import Request
from unspool.llm.ends import Room, ending, ends_for, room_for, stops_of
from unspool.llm.facts import Facts
from unspool.llm.grammar import parse
from unspool.llm.order import as_given, dialect_of
from unspool.llm.program import Part, joined, one_part, parts_of, stage_stops
from unspool.llm.sequences import writable
from unspool.rules.dialects import Dialect
from unspool.stops.text import StopStrings


@dataclass(frozen=True, slots=True)
class Resolved:
    """A request ready for the engine, and what its caller is told about it. `plans`: the parts of
    its program, if it has one."""

    request: Request
    params: Params
    origin: Mapping[str, str]
    notes: tuple[str, ...]
    strings: StopStrings | None
    ends: frozenset[int]
    dialect: Dialect
    plans: tuple[Plan, ...] = ()


def resolve(facts: Facts, ids: list[int], given: Mapping[str, Any],
            extra: Mapping[str, Any] | None = None) -> Resolved:
    """`ids`: the prompt's; `given`: parameters in any spelling; `extra`: fields of the Request."""
    user = named(given)
    dialect = dialect_of(user.order)
    user = written_out(user, dialect)
    params, origin, notes = merged(user, facts.defaults, dialect.defaults)
    room = room_for(facts, len(ids), params, origin)
    stops, strings, ends = stops_of(facts, params, room)
    part = Part(facts, ids, user, dialect, room.count, stops)
    program = user.strategy if isinstance(user.strategy, Program) else None
    parts = [one_part(part, params, origin)] if program is None else parts_of(part, program)
    stages, rules, mixes = joined(parts)
    settled: dict[str, Any] = {
        "seed": secrets.randbits(64) if params.seed is None else params.seed,
        "max_length": room.max_length, "max_new_tokens": room.max_new_tokens,
        **(parts[0].settled if program is None else {"n": parts[-1].settled.get("n", params.n)})}
    origin = {name: source for name, source in origin.items()
              if name not in settled or settled[name] == getattr(params, name)}
    params = replace(params, **settled)
    request = Request(
        tuple(ids), stages[0].strategy, rules, (*stage_stops(facts, program), *stops),
        seed=settled["seed"], salt=params.cache_salt or "",
        others=min(params.logprobs or 0, facts.vocab), remember=params.use_cache is not False,
        why=bool(params.why), repair=bool(params.remove_invalid_values), mixes=mixes,
        program=() if program is None else stages, **(extra or {}))
    said = tuple(dict.fromkeys(note for made in parts for note in made.notes))
    return Resolved(request, params, origin, (*notes, *room.notes, *said), strings, ends, dialect,
                    () if program is None else program.plans)


def named(given: Mapping[str, Any]) -> Params:
    """The user's parameters, a plan spelled out as the parameters it means. A program stays one;
    so does a plan with an end of its own."""
    strategy = given.get("strategy")
    if isinstance(strategy, str):
        strategy = parse(strategy)
    if isinstance(strategy, Plan) and strategy.ends:
        strategy = Program((strategy,))
    if isinstance(strategy, Plan):
        given = strategy.over(given)
        if strategy.own is not None:
            given = {**given, "strategy": strategy.own}
    elif isinstance(strategy, Program):
        given = {**given, "strategy": strategy}
    return Params.of(given)


def written_out(user: Params, dialect: Dialect) -> Params:
    """The same parameters, as JSON can write them."""
    out: dict[str, Any] = {} if user.order is None else {"order": as_given(dialect)}
    if user.active("logit_bias") is not None:
        out["logit_bias"] = writable(user.logit_bias)
    return replace(user, **out) if out else user


__all__ = ["Resolved", "Room", "ending", "ends_for", "named", "resolve"]
