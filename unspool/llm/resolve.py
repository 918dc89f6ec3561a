"""From what a caller asked to what the engine answers: every name, default and limit is settled.

Nothing here runs a model. What was changed or not applied is in the notes.
"""
from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from unspool.core.defaults import TRUNCATION, decide_sampling, merged
from unspool.core.errors import ParameterError, PromptError
from unspool.core.params import Params, fields
from unspool.core.request import Request
from unspool.core.sockets import Stop, Strategy
from unspool.llm.facts import Facts
from unspool.llm.plan import Plan, parse
from unspool.rules import RuleValue, greedy, min_p, temperature, top_k, top_p
from unspool.stops.confidence import Confidence
from unspool.stops.length import MaxNew, MaxTime
from unspool.stops.repetition import Repetition
from unspool.stops.text import StopStrings
from unspool.stops.tokens import EndTokens, StopTokens
from unspool.strategies import Beam, Sample

DEFAULT_BEAMS = 5
SHAPING = ("temperature", *TRUNCATION)


@dataclass(frozen=True, slots=True)
class Resolved:
    """A request ready for the engine, and what its caller is told about it."""

    request: Request
    params: Params
    origin: Mapping[str, str]
    notes: tuple[str, ...]
    strings: StopStrings | None
    ends: frozenset[int]


def resolve(facts: Facts, ids: list[int], given: Mapping[str, Any],
            extra: Mapping[str, Any] | None = None) -> Resolved:
    """`ids`: the prompt's; `given`: parameters in any spelling; `extra`: fields of the Request."""
    user = named(given)
    params, origin, notes = merged(user, facts.defaults)
    room = room_for(facts, len(ids), params, origin)
    stops, strings, ends = stops_of(facts, params, room)
    strategy, rules, said = strategy_of(facts, user, params, room.count)
    seed = secrets.randbits(64) if params.seed is None else params.seed
    settled: dict[str, Any] = {"seed": seed, "max_length": room.max_length,
                               "max_new_tokens": room.max_new_tokens}
    effect, idle = in_effect(user, params, strategy, rules, origin)
    settled |= effect
    origin = {name: source for name, source in origin.items()
              if name not in settled or settled[name] == getattr(params, name)}
    params = replace(params, **settled)
    request = Request(tuple(ids), strategy, rules, stops, seed=seed, salt=params.cache_salt or "",
                      others=min(params.logprobs or 0, facts.vocab),
                      remember=params.use_cache is not False, **(extra or {}))
    return Resolved(request, params, origin, (*notes, *room.notes, *said, *idle), strings, ends)


def named(given: Mapping[str, Any]) -> Params:
    """The user's parameters, a strategy's name or value spelled out as the parameters it means."""
    strategy = given.get("strategy")
    if isinstance(strategy, str):
        strategy = parse(strategy)
    if isinstance(strategy, Plan):
        given = strategy.over(given)
    return Params.of(given)


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


def strategy_of(facts: Facts, user: Params, params: Params, room: int
                ) -> tuple[Strategy, tuple[RuleValue, ...], tuple[str, ...]]:
    """The strategy, its rules in order, and notes."""
    n = params.n or 1
    if params.strategy is not None and not isinstance(params.strategy, str):
        if n > 1:
            raise ParameterError(f"n={n} with a strategy object, which decides by itself how many "
                                 "texts it writes: leave n out", "n")
        return params.strategy, rules_of(params), ()
    width = user.num_beams or params.num_beams or 1
    if params.strategy == "beam" or (params.strategy is None and width > 1):
        width = DEFAULT_BEAMS if params.strategy == "beam" and not user.num_beams else width
        return beams(facts, user, params, (width, n, room)), rules_of(user), ()
    mode = params.strategy or decide_sampling(user, facts.defaults)
    if mode == "greedy":
        same = ("n greedy texts are equal: sample, or use beam search, for different ones",)
        return Sample(n), (greedy(),), same if n > 1 else ()
    return Sample(n), rules_of(params), ()


def in_effect(user: Params, params: Params, strategy: Strategy, rules: tuple[RuleValue, ...],
              origin: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """What the strategy makes of the parameters, so that they ask for the same again; and notes.

    Raises ParameterError for a parameter that this strategy has no use for.
    """
    own = strategy is params.strategy
    unfit = [name for name in ("length_penalty", "early_stopping")
             if (own or not isinstance(strategy, Beam)) and user.active(name) is not None]
    unfit += ["do_sample"] if own and user.do_sample is not None else []
    for name in unfit:
        raise ParameterError(f"{name}={getattr(user, name)!r}: {strategy} has no use for it; "
                             "leave it out" + ("" if own else ", or say num_beams=N"), name)
    if isinstance(strategy, Beam) and not own:
        model = [name for name in SHAPING if origin.get(name) == "model"]
        return ({"num_beams": strategy.width} | {name: fields()[name].default for name in model},
                [f"generation config not applied: {name}={getattr(params, name)} (beam search "
                 "shapes nothing unasked)" for name in model])
    likeliest = rules == (greedy(),)
    idle = [name for name in SHAPING if likeliest and user.active(name) and not own]
    said = [f"{name}={getattr(user, name)} changes nothing: greedy takes the likeliest token"
            for name in idle]
    return {"do_sample": not likeliest} if params.strategy is None else {}, said


def beams(facts: Facts, user: Params, params: Params, size: tuple[int, int, int]) -> Beam:
    width, n, room = size
    if n > width:
        raise ParameterError(f"n={n} with num_beams={width}: a search has at most num_beams "
                             "answers; widen it", "n")
    if user.temperature == 0:
        raise ParameterError(f"temperature=0 with num_beams={width}: greedy leaves one "
                             "continuation, a search needs several; give one of them",
                             "temperature")
    ends = ends_for(facts, params) | set(params.stop_token_ids or ())
    return Beam(width, n, 1.0 if params.length_penalty is None else params.length_penalty,
                params.early_stopping or False, room,  # type: ignore[arg-type]
                max(len(ends), 1))


def ends_for(facts: Facts, params: Params) -> frozenset[int]:
    """The end tokens: the model's, or those that the request names instead."""
    return facts.ends if params.eos_token_id is None else frozenset(params.eos_token_id)


def rules_of(params: Params) -> tuple[RuleValue, ...]:
    """The rules that change something, in the order of transformers."""
    makers = (("temperature", temperature), ("top_k", top_k), ("top_p", top_p), ("min_p", min_p))
    if params.temperature == 0:
        return (greedy(),)
    active = ((make, params.active(name)) for name, make in makers)
    return tuple(make(value) for make, value in active if value is not None)


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
    if params.active("repetition_detection") is not None and params.repetition_detection:
        stops.append(Repetition(*params.repetition_detection))
    if params.active("confidence_stop") is not None and params.confidence_stop:
        stops.append(Confidence(params.confidence_stop))
    if params.max_time is not None:
        stops.append(MaxTime(params.max_time))
    stops.append(MaxNew(room.count, room.which))
    hidden = frozenset() if include else (asked if ignored else ends | asked)
    return tuple(stops), strings, hidden


def check_ids(facts: Facts, name: str, ids: tuple[int, ...] | None) -> None:
    bad = [i for i in ids or () if i >= facts.vocab]
    if bad:
        raise ParameterError(f"{name}={bad[0]} is outside the vocabulary: ids run from 0 to "
                             f"{facts.vocab - 1}", name)
