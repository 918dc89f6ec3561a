"""From what a caller asked to what the engine answers: every name, default and limit is settled.

Nothing here runs a model. What was changed or not applied is in the notes.
"""
from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from unspool.constraints import choice
from unspool.core.defaults import decide_sampling, merged
from unspool.core.errors import ParameterError, PromptError
from unspool.core.params import Params, fields
from unspool.core.request import Request
from unspool.core.sockets import Constraint, Stop, Strategy
from unspool.llm.facts import Facts
from unspool.llm.order import as_given, dialect_of
from unspool.llm.plan import Plan, parse
from unspool.llm.sequences import writable
from unspool.llm.shaping import Mode, shape
from unspool.llm.stages import Asked
from unspool.rules.dialects import Dialect
from unspool.stops.complete import Complete
from unspool.stops.confidence import Confidence
from unspool.stops.length import MaxNew, MaxTime
from unspool.stops.repetition import Repetition
from unspool.stops.text import StopStrings
from unspool.stops.tokens import EndTokens, StopTokens
from unspool.strategies import Beam, Sample

DEFAULT_BEAMS = 5


@dataclass(frozen=True, slots=True)
class Resolved:
    """A request ready for the engine, and what its caller is told about it."""

    request: Request
    params: Params
    origin: Mapping[str, str]
    notes: tuple[str, ...]
    strings: StopStrings | None
    ends: frozenset[int]
    dialect: Dialect


def resolve(facts: Facts, ids: list[int], given: Mapping[str, Any],
            extra: Mapping[str, Any] | None = None) -> Resolved:
    """`ids`: the prompt's; `given`: parameters in any spelling; `extra`: fields of the Request."""
    user = named(given)
    dialect = dialect_of(user.order)
    user = written_out(user, dialect)
    params, origin, notes = merged(user, facts.defaults, dialect.defaults)
    room = room_for(facts, len(ids), params, origin)
    stops, strings, ends = stops_of(facts, params, room)
    strategy, mode, said = strategy_of(facts, user, params, dialect, room.count)
    asked = Asked(facts, params, dialect, len(ids) + room.count, ends_for(facts, params),
                  ending(facts, params), constraint_of(stops))
    shaping = shape(asked, origin, mode)
    settled: dict[str, Any] = {
        "seed": secrets.randbits(64) if params.seed is None else params.seed,
        "max_length": room.max_length, "max_new_tokens": room.max_new_tokens,
        **in_effect(user, strategy, mode), **shaping.unused}
    origin = {name: source for name, source in origin.items()
              if name not in settled or settled[name] == getattr(params, name)}
    params = replace(params, **settled)
    request = Request(tuple(ids), strategy, tuple(shaping.rules), stops, seed=settled["seed"],
                      salt=params.cache_salt or "", others=min(params.logprobs or 0, facts.vocab),
                      remember=params.use_cache is not False, why=bool(params.why),
                      repair=bool(params.remove_invalid_values), **(extra or {}))
    return Resolved(request, params, origin, (*notes, *room.notes, *said, *shaping.notes), strings,
                    ends, dialect)


def named(given: Mapping[str, Any]) -> Params:
    """The user's parameters, a strategy's name or value spelled out as the parameters it means."""
    strategy = given.get("strategy")
    if isinstance(strategy, str):
        strategy = parse(strategy)
    if isinstance(strategy, Plan):
        given = strategy.over(given)
    return Params.of(given)


def written_out(user: Params, dialect: Dialect) -> Params:
    """The same parameters, as JSON can write them."""
    out: dict[str, Any] = {} if user.order is None else {"order": as_given(dialect)}
    if user.active("logit_bias") is not None:
        out["logit_bias"] = writable(user.logit_bias)
    return replace(user, **out) if out else user


@dataclass(frozen=True, slots=True)
class Room:
    """How many tokens may be written, which limit says so, and what both are in effect."""

    count: int
    which: str
    max_new_tokens: int | None
    max_length: int | None
    notes: tuple[str, ...] = ()


def room_for(facts: Facts, prompt: int, params: Params, origin: Mapping[str, str]) -> Room:
    """Refuses what the user asked for and does not fit; shortens a default, with a note."""
    left = facts.context - prompt
    if left <= 0:
        raise PromptError(f"the prompt has {prompt} tokens and the model's context "
                          f"{facts.context}: no room is left to write; shorten the prompt")
    new, total = params.max_new_tokens, params.max_length
    notes: tuple[str, ...] = ()
    if total is not None and total <= prompt:
        if origin["max_length"] == "user":
            raise ParameterError(f"max_length={total} counts the prompt, which has {prompt} "
                                 "tokens; raise it, or use max_new_tokens", "max_length")
        notes = (f"generation config not applied: max_length={total}, the prompt has {prompt}",)
        new, total = new or fields()["max_new_tokens"].default, None
    limits = {"max_new_tokens": new, "max_length": None if total is None else total - prompt}
    count, which = min((n, name) for name, n in limits.items() if n is not None)
    if count <= left:
        return Room(count, which, new, total, notes)
    if origin.get(which) == "user":
        raise ParameterError(f"{which}={getattr(params, which)} does not fit: the prompt has "
                             f"{prompt} tokens and the context {facts.context}; at most {left} "
                             "more fit", which)
    notes += (f"{which}={getattr(params, which)} shortened to the {left} tokens that fit in the "
              f"context",)
    return Room(left, which, left if new is not None else None,
                facts.context if total is not None else None, notes)


def strategy_of(facts: Facts, user: Params, params: Params, dialect: Dialect, room: int
                ) -> tuple[Strategy, Mode, tuple[str, ...]]:
    """The strategy, what it makes of a distribution, and notes."""
    n = params.n or 1
    if params.strategy is not None and not isinstance(params.strategy, str):
        if n > 1:
            raise ParameterError(f"n={n} with a strategy object, which decides by itself how many "
                                 "texts it writes: leave n out", "n")
        search: Mode = "search" if params.strategy.searching else "sample"
        return params.strategy, "greedy" if params.temperature == 0 else search, ()
    width = user.num_beams or params.num_beams or 1
    if params.strategy == "beam" or (params.strategy is None and width > 1):
        width = DEFAULT_BEAMS if params.strategy == "beam" and not user.num_beams else width
        return beams(facts, user, params, (width, n, room)), "search", ()
    mode = params.strategy or decide_sampling(user, facts.defaults, dialect.defaults)
    if mode == "greedy" or params.temperature == 0:
        same = ("n greedy texts are equal: sample, or use beam search, for different ones",)
        return Sample(n), "greedy", same if n > 1 else ()
    return Sample(n), "sample", ()


def in_effect(user: Params, strategy: Strategy, mode: Mode) -> dict[str, Any]:
    """What the strategy makes of the parameters, so that they ask for the same again.

    Raises ParameterError for a parameter that this strategy has no use for.
    """
    own = strategy is user.strategy
    unfit = [name for name in ("length_penalty", "early_stopping")
             if (own or not isinstance(strategy, Beam)) and user.active(name) is not None]
    unfit += ["do_sample"] if own and user.do_sample is not None else []
    for name in unfit:
        raise ParameterError(f"{name}={getattr(user, name)!r}: {strategy} has no use for it; "
                             "leave it out" + ("" if own else ", or say num_beams=N"), name)
    if isinstance(strategy, Beam) and not own:
        return {"num_beams": strategy.width}
    return {"do_sample": mode != "greedy"} if user.strategy is None else {}


def beams(facts: Facts, user: Params, params: Params, size: tuple[int, int, int]) -> Beam:
    width, n, room = size
    if n > width:
        raise ParameterError(f"n={n} with num_beams={width}: a search has at most num_beams "
                             "answers; widen it", "n")
    if user.temperature == 0:
        raise ParameterError(f"temperature=0 with num_beams={width}: greedy leaves one "
                             "continuation, a search needs several; give one of them",
                             "temperature")
    ends = len(ends_for(facts, params) | set(params.stop_token_ids or ()))
    if params.choice is not None:
        ends += choice(params.choice, facts.vocabulary, ending(facts, params)).endings
    return Beam(width, n, 1.0 if params.length_penalty is None else params.length_penalty,
                params.early_stopping or False, room,  # type: ignore[arg-type]
                min(max(ends, 1), facts.vocab))


def ends_for(facts: Facts, params: Params) -> frozenset[int]:
    """The end tokens: the model's, or those that the request names instead."""
    return facts.ends if params.eos_token_id is None else frozenset(params.eos_token_id)


def ending(facts: Facts, params: Params) -> frozenset[int]:
    """The tokens that end this text."""
    asked = frozenset(params.stop_token_ids or ())
    return asked if params.ignore_eos else ends_for(facts, params) | asked


def stops_of(facts: Facts, params: Params, room: Room
             ) -> tuple[tuple[Stop, ...], StopStrings | None, frozenset[int]]:
    """Every stop asked for; the one for strings; the tokens that may end the text."""
    include = bool(params.include_stop_str_in_output)
    cut = None if include else facts.piece(bool(params.skip_special_tokens))
    for name in ("stop_token_ids", "eos_token_id"):
        check_ids(facts, name, getattr(params, name))
    ends = ends_for(facts, params)
    asked = frozenset(params.stop_token_ids or ())
    ignored = bool(params.ignore_eos)
    stops: list[Stop] = [EndTokens(ends, ignored, cut), StopTokens(asked, cut)]
    strings = None
    if params.stop:
        facts.needs_text("stop")
        strings = StopStrings(params.stop, facts.piece(bool(params.skip_special_tokens)), include)
        stops.append(strings)
    if params.choice is not None:  # behind the strings, which are cut off a choice too
        stops.append(Complete(choice(params.choice, facts.vocabulary, ending(facts, params)),
                              "choice"))
    if params.active("repetition_detection") is not None and params.repetition_detection:
        stops.append(Repetition(*params.repetition_detection))
    if params.active("confidence_stop") is not None and params.confidence_stop:
        stops.append(Confidence(params.confidence_stop))
    if params.max_time is not None:
        stops.append(MaxTime(params.max_time))
    stops.append(MaxNew(room.count, room.which))
    hidden = frozenset() if include else ending(facts, params)
    return tuple(stops), strings, hidden


def constraint_of(stops: tuple[Stop, ...]) -> Constraint | None:
    """What `choice` asks for: the stop and the rule share it."""
    return next((stop.constraint for stop in stops if isinstance(stop, Complete)), None)


def check_ids(facts: Facts, name: str, ids: tuple[int, ...] | None) -> None:
    bad = [i for i in ids or () if i >= facts.vocab]
    if bad:
        raise ParameterError(f"{name}={bad[0]} is outside the vocabulary: ids run from 0 to "
                             f"{facts.vocab - 1}", name)
