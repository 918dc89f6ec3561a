"""What may end a text, and the ends of a program's stages: from parameters to stops."""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from unspool.constraints import choice
from unspool.core.errors import ParameterError, PromptError
from unspool.core.params import Params, fields
from unspool.core.plan import Plan
from unspool.core.sockets import Constraint, Stop
from unspool.core.values import shown
from unspool.llm.facts import Facts
from unspool.stops.complete import Complete
from unspool.stops.confidence import Confidence
from unspool.stops.length import MaxNew, MaxTime
from unspool.stops.repetition import Repetition
from unspool.stops.stage import EndOfStage, Found, Tokens
from unspool.stops.text import StopStrings
from unspool.stops.tokens import EndTokens, StopTokens


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


def ends_of_stage(facts: Facts, plan: Plan, number: int, last: bool) -> tuple[Stop, ...]:
    """The stops that end stage `number`; what its entropy says is no stop."""
    found: list[Stop] = []
    for kind, value in plan.ends:
        if kind == "tokens":
            found.append(Tokens(value))
        elif kind == "step":
            found.append(MaxNew(value, "step"))
        elif kind in ("text", "regex"):
            facts.needs_text("strategy")
            found.append(StopStrings((value,), facts.piece(), include=True) if kind == "text"
                         else Found(pattern(value), facts.piece()))
    return tuple(EndOfStage(number, stop, last) for stop in found)


def pattern(value: str) -> str:
    try:
        re.compile(value)
    except (re.error, RecursionError, OverflowError) as error:
        raise ParameterError(f"strategy: regex={shown(value)} is no regular expression ({error}); "
                             "correct it", "strategy") from None
    return value


def most_written(plan: Plan | None, before: int, room: int) -> int:
    """Most tokens that are written when a stage ends, after a stage with `before`."""
    if plan is None:
        return room
    ends = [before + value if kind == "tokens" else value for kind, value in plan.ends
            if kind in ("tokens", "step")]
    return min(room, *ends) if ends else room
