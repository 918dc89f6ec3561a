"""Walks the order of a dialect: the rules of a request, and what its caller is told about them."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from unspool.core.defaults import SAMPLING
from unspool.core.errors import ParameterError
from unspool.core.params import Params, fields
from unspool.core.values import shown
from unspool.llm.order import OWN
from unspool.llm.stages import MAKERS, Asked
from unspool.rules import RuleValue, greedy
from unspool.rules.dialects import CALM, STAGES, Dialect

Mode = Literal["greedy", "sample", "search", "draws"]  # "draws": a search that draws what it keeps
PLACED = "temperature"  # where greedy stands
# Rules of chance, with their parameters, that have no meaning where tokens are not drawn.
CHANCE = {"gumbel_watermark": "watermark", "xtc": "xtc_probability"}
DRAWN: Mapping[Mode, Mapping[str, str]] = {
    "sample": {}, "greedy": {"gumbel_watermark": "watermark"}, "search": CHANCE, "draws": CHANCE}


@dataclass(slots=True)
class Shaping:
    """`rules` in order; `unused`: parameters that were not applied, and what holds instead."""

    asked: Asked
    origin: Mapping[str, str]
    rules: list[RuleValue] = field(default_factory=list)
    unused: dict[str, Any] = field(default_factory=dict)

    @property
    def notes(self) -> list[str]:
        return self.asked.notes

    def by_user(self, name: str) -> bool:
        return self.origin.get(name) == "user"

    def told(self, name: str) -> str:
        """A parameter with its value as it stands here."""
        value = self.asked.changing.get(name, getattr(self.asked.params, name))
        return f"{name}={shown(value)}"

    def drop(self, name: str, why: str) -> None:
        """Leave a parameter out that nobody asked for in this request."""
        self.unused[name] = fields()[name].default
        if self.origin.get(name) == "model":
            self.notes.append(f"generation config not applied: {why}")


def shape(asked: Asked, origin: Mapping[str, str], mode: Mode) -> Shaping:
    """The rules that these parameters ask for.

    Raises ParameterError for what the user asked and cannot be done. What the model's generation
    config asks and cannot be done becomes a note.
    """
    out = Shaping(asked, origin)
    if mode == "search":
        unasked(out)
    order, since = order_of(asked.dialect, out.asked.params)
    missing(out, order, since)
    made = [(name, rules) for name in order if (rules := of_stage(out, name))]
    out.rules = [rule for _, rules in (likeliest(out, order, made) if mode == "greedy" else made)
                 for rule in rules]
    check(out, mode)
    beside(out)
    return out


def active(asked: Asked, name: str) -> list[str]:
    """The parameters in use that call for a stage."""
    return [switch for switch in STAGES[name].switches
            if switch in asked.changing or asked.params.active(switch) is not None]


def unasked(out: Shaping) -> None:
    """A search is shaped by what its user asks: others' wishes for a draw do not count."""
    params = out.asked.params
    names = [name for name in SAMPLING
             if not out.by_user(name) and params.active(name) is not None]
    for name in names:
        out.drop(name, f"{out.told(name)} (beam search shapes nothing unasked)")
    out.asked = replace(out.asked, params=replace(params, **out.unused))


def order_of(dialect: Dialect, params: Params) -> tuple[tuple[str, ...], str]:
    """The order, and the parameter that has it stand in place of the dialect's usual one."""
    for name, order in dialect.instead.items():
        if params.active(name) is not None:
            return order, name
    return dialect.order, ""


def missing(out: Shaping, order: tuple[str, ...], since: str) -> None:
    """Parameters whose stage is not in the order: refused, or left out where nobody asked here."""
    dialect = out.asked.dialect
    for name, switch in ((n, s) for n in STAGES if n not in order for s in active(out.asked, n)):
        known = name in dialect.order
        why = (f"{out.told(switch)}: {dialect.name} has no stage {name}" if not known else
               f"{out.told(switch)} is not applied: in {dialect.name} {since} takes its place")
        if out.by_user(switch) and not known:
            fix = (f"put {name} into it" if dialect.name == OWN else
                   "name another order, or list the stages yourself")
            raise ParameterError(f"{why}; {fix}, or leave {switch} out", switch)
        if out.by_user(switch):
            out.notes.append(why)
        out.drop(switch, why)


def of_stage(out: Shaping, name: str) -> tuple[RuleValue, ...]:
    """What one stage makes."""
    switches = active(out.asked, name)
    if not switches and STAGES[name].switches:
        return ()
    try:
        made = MAKERS[name](out.asked)
    except ParameterError as error:
        if error.name is None or out.origin.get(error.name) != "model":
            raise
        out.drop(error.name, str(error))
        return ()
    unlike = out.asked.dialect.unlike
    out.notes.extend(f"{switch}: {unlike[switch]}" for switch in switches if switch in unlike)
    return made


Made = list[tuple[str, tuple[RuleValue, ...]]]


def likeliest(out: Shaping, order: tuple[str, ...], made: Made) -> Made:
    """Greedy stands where the temperature does; a watermark that moves values goes before it. What
    comes later, and cuts just before that keep the likeliest token, change nothing."""
    place = order.index(PLACED) if PLACED in order else len(order)
    before = set(order[:place])
    first = [(name, rules) for name, rules in made if name in before]
    while first and first[-1][0] in CALM:
        first.pop()
    marks = [(name, rules) for name, rules in made if name == "watermark" and name not in before]
    used = {name for name, _ in (*first, *marks)}
    for switch in (s for name, _ in made if name not in used
                   for s in active(out.asked, name)):
        if out.by_user(switch) and getattr(out.asked.params, switch) != 0:
            out.notes.append(f"{out.told(switch)} changes nothing: greedy takes the likeliest "
                             "token")
    return [*first, *marks, ("greedy", (greedy(),))]


def check(out: Shaping, mode: Mode) -> None:
    """What cannot stand in a list of rules as they do here."""
    names = [rule.name for rule in out.rules]
    if "adaptive_p" in names[:-1]:
        behind = names[names.index("adaptive_p") + 1]
        raise ParameterError(f"{out.told('adaptive_target')}: it must be the last stage, and "
                             f"{behind} is behind it; change the order", "adaptive_target")
    who = "greedy" if mode == "greedy" else "a search compares texts and"
    for rule in [rule for rule in out.rules if rule.name in DRAWN[mode]]:
        switch = DRAWN[mode][rule.name]
        why = (f"{out.told(switch)}: {rule.name} belongs to the draw of a token, and {who} draws "
               "none")
        if out.origin.get(switch) != "model":
            raise ParameterError(f"{why}; sample, or leave it out", switch)
        out.drop(switch, why)
        out.rules.remove(rule)


def beside(out: Shaping) -> None:
    """Notes on what the user gave and no stage reads, since the parameter it belongs to is off."""
    params = out.asked.params
    used = {name for stage in STAGES if active(out.asked, stage) for name in STAGES[stage].beside}
    for stage in STAGES.values():
        for name in stage.beside:
            if out.by_user(name) and name not in used and params.active(name) is not None:
                out.notes.append(f"{out.told(name)} changes nothing: no {stage.switches[-1]} is "
                                 "asked for")
                used.add(name)
