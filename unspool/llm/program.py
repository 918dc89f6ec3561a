"""The stages of a request: each with its strategy, its rules and its mixes, from its own
parameters and those of the request. A request that is no program has one."""
from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unspool.constraints import choice
from unspool.core.defaults import merged
from unspool.core.errors import ParameterError
from unspool.core.params import Params, fields
from unspool.core.plan import Plan, Program
from unspool.core.sockets import Mix, Rule, Stop, Strategy
from unspool.core.stage import Stage
from unspool.core.values import shown
from unspool.llm.changing import shaped
from unspool.llm.ends import (
    constraint_of,
    ending,
    ends_for,
    ends_of_stage,
    most_written,
)
from unspool.llm.facts import Facts
from unspool.llm.memory import check_room
from unspool.llm.mixing import BESIDE, mixes_of
from unspool.llm.searches import KINDS, OWNED, Wanted, inner
from unspool.llm.stages import Asked
from unspool.llm.strategy import at_once, in_effect, offering, strategy_of
from unspool.mixes import LogProbabilities
from unspool.rules.dialects import Dialect
from unspool.strategies import Beam, Scheduled

OF_THE_LAST = ("n",)  # what a request says of all its answers
# Groups of parameters, and parameters, that no stage has for itself.
WHOLE_TEXT = ("length and stopping", "what comes back", "prompt and text", "seed", "order",
              "choice", "remove_invalid_values")


@dataclass(frozen=True, slots=True)
class Part:
    """What all stages of a request have in common. `room`: how many tokens may be written."""

    facts: Facts
    ids: Sequence[int]
    user: Params
    dialect: Dialect
    room: int
    stops: tuple[Stop, ...]


@dataclass(slots=True)
class Made:
    """A stage, with what its caller is told. `settled`: values of parameters that hold in it."""

    strategy: Strategy
    rules: tuple[Rule, ...]
    mixes: tuple[Mix, ...]
    takes: int = 1
    entropy_above: float | None = None
    notes: tuple[str, ...] = ()
    settled: dict[str, Any] = field(default_factory=dict)


def one_part(part: Part, params: Params, origin: Mapping[str, str]) -> Made:
    """The only stage of a request that is no program."""
    return made(part, part.user, params, origin, part.room)


def parts_of(part: Part, program: Program) -> list[Made]:
    """Every stage of a program. Raises ParameterError, also for a parameter of the request that no
    stage has a use for."""
    given = {name: value for name, value in part.user.given().items() if name != "strategy"}
    if "do_sample" in given:
        raise ParameterError(f"do_sample={given['do_sample']} with strategy={program}: a program "
                             "says itself where it samples; leave it out", "do_sample")
    unused(part.user, program)
    out: list[Made] = []
    written, last = 0, len(program.plans) - 1
    for number, plan in enumerate(program.plans):
        written = most_written(plan, written, part.room)
        user = of_stage(given, plan, number == last)
        params, origin, _ = merged(user, part.facts.defaults, part.dialect.defaults)
        found = made(part, user, params, origin, written)
        found.takes = params.n or 1
        found.entropy_above = min((v for kind, v in plan.ends if kind == "entropy_above"),
                                  default=None)
        if number == last and found.entropy_above is not None:
            raise ParameterError(f"strategy={program}: the last stage ends the text, and "
                                 "entropy_above ends none; say tokens, step, text or regex",
                                 "strategy")
        out.append(found)
    for plan, found, after in zip(program.plans, out, out[1:], strict=False):
        if plan.name in KINDS and "n" not in dict(plan.params):
            found.strategy = offering(found.strategy, after.takes)
    return out


def of_stage(given: Mapping[str, Any], plan: Plan, last: bool) -> Params:
    """The parameters of a stage: its own over the request's."""
    takes = KINDS[plan.name].takes if plan.name in KINDS else ()
    own = Params.of(dict(plan.params)).given()
    shared = {name: value for name, value in given.items()
              if (name not in OWNED or name in takes) and (last or name not in OF_THE_LAST)
              and wanted_by(name, {**given, **own})}
    for name in own:
        if fields()[name].group in WHOLE_TEXT or name in WHOLE_TEXT:
            raise ParameterError(f"{name}={shown(own[name])} in {plan}: it holds for the whole text"
                                 ", not for a stage; give it beside the strategy", name)
    strategy = plan.name if plan.own is None else plan.own
    return Params.of({**shared, **own, "strategy": strategy})


def wanted_by(name: str, names: Container[str]) -> bool:
    """Whether a parameter stands by itself, or what it belongs to is among these."""
    owners = [owner for owner, others in BESIDE.items() if name in others]
    return not owners or any(owner in names for owner in owners)


def unused(user: Params, program: Program) -> None:
    """Refuses what belongs to searches, or to mixes, of which the program has none."""
    every = {*user.given(), *(name for plan in program.plans
                              for name in Params.of(dict(plan.params)).given())}
    for name, value in user.given().items():
        if user.active(name) is not None and not wanted_by(name, every):
            raise ParameterError(f"{name}={shown(value)} with strategy={program}: no stage asks "
                                 "for what it belongs to; leave it out", name)
    takes = {name for plan in program.plans if plan.name in KINDS
             for name in KINDS[plan.name].takes}
    for name in OWNED:
        if user.active(name) is not None and name not in takes:
            raise ParameterError(f"{name}={shown(getattr(user, name))} with strategy={program}: no "
                                 "stage has a use for it; leave it out", name)


def made(part: Part, user: Params, params: Params, origin: Mapping[str, str], room: int) -> Made:
    facts = part.facts
    wanted = Wanted(facts, user, params, part.dialect, room, endings(facts, params))
    strategy, mode, said = strategy_of(wanted)
    asked = Asked(facts, wanted.shaping(strategy, mode), part.dialect, len(part.ids) + part.room,
                  ends_for(facts, params), ending(facts, params), constraint_of(part.stops))
    shaping = shaped(asked, origin, mode)
    mixes = mixes_of(facts, part.ids, user, params, len(part.ids) + part.room)
    if part.dialect.adds_values and shaping.rules and isinstance(inner(strategy), Beam):
        strategy, mixes = adding_values(strategy, params), (*mixes, LogProbabilities())
        shaping.notes.append(f"{part.dialect.name}: rules see log-probabilities in a beam search")
    if params.use_cache is not False:
        readers = 1 + sum(voice.model is None for mix in mixes for voice in mix.voices)
        check_room(facts, at_once(strategy), (len(part.ids), room), readers)
    return Made(strategy, tuple(shaping.rules), mixes, notes=(*said, *shaping.notes),
                settled={**in_effect(wanted, strategy, mode), **shaping.unused})


def adding_values(strategy: Strategy, params: Params) -> Strategy:
    """The beams with scores that are not normalised, unless that is asked for. Nor are they where a
    temperature moves the values."""
    beam = inner(strategy)
    if params.renormalize_logits or params.active("temperature") is not None:
        return strategy
    beam = replace(beam, unscaled=True)
    return replace(strategy, strategy=beam) if isinstance(strategy, Scheduled) else beam


def endings(facts: Facts, params: Params) -> int:
    """How many tokens may end a text."""
    count = len(ends_for(facts, params) | set(params.stop_token_ids or ()))
    if params.choice is not None:
        count += choice(params.choice, facts.vocabulary, ending(facts, params)).endings
    return min(max(count, 1), facts.vocab)


def joined(parts: Sequence[Made]) -> tuple[tuple[Stage, ...], tuple[Rule, ...], tuple[Mix, ...]]:
    """The stages, and the rules and mixes of all of them, equal ones once: what such a rule
    remembers goes over from stage to stage."""
    rules: list[Rule] = []
    mixes: list[Mix] = []
    stages = [Stage(made.strategy, places(made.rules, rules), places(made.mixes, mixes),
                    made.takes, made.entropy_above) for made in parts]
    return tuple(stages), tuple(rules), tuple(mixes)


def places(wanted: Sequence[Any], every: list[Any]) -> tuple[int, ...]:
    """Where each of these stands among all, which is added to. Equal ones in one list have places
    of their own."""
    out: list[int] = []
    for item in wanted:
        found = [i for i, other in enumerate(every) if other == item and i not in out]
        if not found:
            every.append(item)
        out.append(found[0] if found else len(every) - 1)
    return tuple(out)


def stage_stops(facts: Facts, program: Program | None) -> tuple[Stop, ...]:
    """The ends of a program's stages."""
    plans = () if program is None else program.plans
    return tuple(stop for number, plan in enumerate(plans)
                 for stop in ends_of_stage(facts, plan, number, number == len(plans) - 1))
