"""From what a caller asked to what the engine answers: every name, default and limit is settled.

Nothing here runs a model. What was changed or not applied is in the notes.
"""
from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from unspool.core.defaults import decide_sampling, merged
from unspool.core.errors import ParameterError, PromptError
from unspool.core.params import Params
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
    room, said = room_for(facts, len(ids), user, params)
    notes = (*notes, *said)
    strategy, rules, more = strategy_of(facts, user, params, len(ids), room)
    stops, strings, ends = stops_of(facts, params, room)
    seed = secrets.randbits(64) if params.seed is None else params.seed
    check_ids(facts, "stop_token_ids", params.stop_token_ids)
    check_ids(facts, "eos_token_id", params.eos_token_id)
    request = Request(tuple(ids), strategy, rules, stops, seed=seed, salt=params.cache_salt or "",
                      others=min(params.logprobs or 0, facts.vocab),
                      remember=params.use_cache is not False, **(extra or {}))
    return Resolved(request, replace(params, seed=seed), origin, (*notes, *more), strings, ends)


def named(given: Mapping[str, Any]) -> Params:
    """The user's parameters, a strategy's name or value spelled out as the parameters it means."""
    strategy = given.get("strategy")
    if isinstance(strategy, str):
        strategy = parse(strategy)
    if isinstance(strategy, Plan):
        given = strategy.over(given)
    return Params.of(given)


def room_for(facts: Facts, prompt: int, user: Params, params: Params
             ) -> tuple[int, tuple[str, ...]]:
    """How many tokens may be written, and the note when the default had to be shortened."""
    left = facts.context - prompt
    if left <= 0:
        raise PromptError(f"the prompt has {prompt} tokens and the model's context "
                          f"{facts.context}: no room is left to write; shorten the prompt")
    if user.max_length is not None and user.max_length <= prompt:
        raise ParameterError(f"max_length={user.max_length} counts the prompt, which has {prompt} "
                             "tokens; raise it, or use max_new_tokens", "max_length")
    wish = params.max_new_tokens
    if params.max_length is not None:
        wish = min(wish or left, params.max_length - prompt)
    if wish is None or wish <= left:
        return max(wish or left, 1), ()
    if user.max_new_tokens is not None or user.max_length is not None:
        raise ParameterError(f"max_new_tokens={wish} does not fit: the prompt has {prompt} tokens "
                             f"and the context {facts.context}; at most {left} fit",
                             "max_new_tokens")
    return left, (f"max_new_tokens shortened from {wish} to the {left} that fit in the context",)


def strategy_of(facts: Facts, user: Params, params: Params, prompt: int, room: int
                ) -> tuple[Strategy, tuple[RuleValue, ...], tuple[str, ...]]:
    """The strategy, its rules in order, and notes."""
    n = params.n or 1
    if params.strategy is not None and not isinstance(params.strategy, str):
        return params.strategy, rules_of(params), ()
    width = user.num_beams or params.num_beams or 1
    if params.strategy == "beam" or (params.strategy is None and width > 1):
        width = DEFAULT_BEAMS if params.strategy == "beam" and not user.num_beams else width
        if n > width:
            raise ParameterError(f"n={n} with num_beams={width}: a search has at most num_beams "
                                 "answers; widen it", "n")
        search = Beam(width, n, 1.0 if params.length_penalty is None else params.length_penalty,
                      params.early_stopping or False, room,  # type: ignore[arg-type]
                      max(len(facts.ends | set(params.stop_token_ids or ())), 1))
        return search, rules_of(user), ()
    mode = params.strategy or decide_sampling(user, facts.defaults)
    if mode == "greedy":
        same = ("n greedy texts are equal: sample, or use beam search, for different ones",)
        return Sample(n), (greedy(),), same if n > 1 else ()
    return Sample(n), rules_of(params), ()


def rules_of(params: Params) -> tuple[RuleValue, ...]:
    """The rules that change something, in the order of transformers."""
    makers = (("temperature", temperature), ("top_k", top_k), ("top_p", top_p), ("min_p", min_p))
    if params.temperature == 0:
        return (greedy(),)
    active = ((make, params.active(name)) for name, make in makers)
    return tuple(make(value) for make, value in active if value is not None)


def stops_of(facts: Facts, params: Params, room: int
             ) -> tuple[tuple[Stop, ...], StopStrings | None, frozenset[int]]:
    """Every stop asked for; the one for strings; the tokens that may end the text."""
    include = bool(params.include_stop_str_in_output)
    cut = None if include else facts.piece(bool(params.skip_special_tokens))
    ends = facts.ends if params.eos_token_id is None else frozenset(params.eos_token_id)
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
    longest = params.max_length is not None and params.max_new_tokens is None
    stops.append(MaxNew(room, "max_length" if longest else "max_new_tokens"))
    hidden = frozenset() if include else (asked if ignored else ends | asked)
    return tuple(stops), strings, hidden


def check_ids(facts: Facts, name: str, ids: tuple[int, ...] | None) -> None:
    bad = [i for i in ids or () if i >= facts.vocab]
    if bad:
        raise ParameterError(f"{name}={bad[0]} is outside the vocabulary: ids run from 0 to "
                             f"{facts.vocab - 1}", name)
