"""The same rows under another engine's rules: which token differs first, and which rule made it.

A text is written by the one side's rules. At each place the other side's rules shape the same row,
with the same noise and the same text before it, so whatever differs is the rules' doing.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from math import exp, isfinite
from typing import Any, Literal, NamedTuple

from unspool.core.errors import ParameterError, RowError
from unspool.core.history import history
from unspool.core.stage import InForce, Stage
from unspool.engine.read import State
from unspool.engine.row import Row
from unspool.engine.stages import probabilities, variation
from unspool.kernels.reading.noise import Place
from unspool.kernels.reading.philox import draw
from unspool.kernels.reading.plain import Floats
from unspool.llm.resolve import Resolved
from unspool.llm.results import strict
from unspool.llm.steps import Step, Steps
from unspool.llm.why import Noise
from unspool.rules.rule import place_of_noise
from unspool.show.table import columns, percent
from unspool.show.visible import quoted
from unspool.strategies import Sample

SAME = 1e-6  # distributions nearer than this differ by rounding only
GREEDY = "greedy"


@dataclass(frozen=True, slots=True)
class Side:
    """`name`: of the order its rules stand in; `rules`: as they are applied."""

    name: str
    rules: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, resolved: Resolved) -> Side:
        return cls(resolved.dialect.name, tuple(map(str, resolved.request.rules)), resolved.notes)

    def json(self) -> dict[str, Any]:
        return {"order": self.name, "rules": list(self.rules), "notes": list(self.notes)}


@dataclass(frozen=True, slots=True)
class Moved:
    """A token that both sides pick from distributions that differ: by `moved` of probability (total
    variation); `ours` and `theirs`: how many tokens only that side keeps."""

    position: int
    id: int
    text: str
    moved: float
    ours: int
    theirs: int

    def json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


class Odds(NamedTuple):
    """One token's probability: the model's, and after the rules of either side."""

    id: int
    text: str
    raw: float
    ours: float
    theirs: float


@dataclass(frozen=True, slots=True)
class Parting:
    """The first token that differs: `ours` is picked by one side, `theirs` by the other.

    As long as the distributions of both sides are the same, one of these two leads on both, noise
    counted. The side that picks the other one made the difference: `side`, by the rule `stage`,
    after which the leader never leads again; it was `removed` or overtaken. Where both sides take
    the likeliest, no noise counts.
    """

    position: int
    ours: Odds
    theirs: Odds
    side: Literal["ours", "theirs"]
    stage: str
    removed: bool

    def json(self) -> dict[str, Any]:
        return {"position": self.position, "ours": self.ours._asdict(),
                "theirs": self.theirs._asdict(), "side": self.side, "stage": self.stage,
                "effect": "removed" if self.removed else "overtaken"}


@dataclass(frozen=True, slots=True)
class Difference:
    """`text`: the tokens that both sides pick; `parting`: None where no token differs. `seed`: of
    the noise of both."""

    prompt: Any
    model: str
    ours: Side
    theirs: Side
    text: str
    tokens: int
    moved: tuple[Moved, ...]
    parting: Parting | None
    seed: int

    def to_json(self) -> dict[str, Any]:
        """The object that `explain --against --json` prints."""
        return {"prompt": strict(self.prompt), "model": self.model, "ours": self.ours.json(),
                "theirs": self.theirs.json(), "seed": self.seed, "text": self.text,
                "tokens": self.tokens,
                "differs": None if self.parting is None else self.parting.json(),
                "moved": [place.json() for place in self.moved]}

    def __str__(self) -> str:
        sides = [("ours", self.ours), ("theirs", self.theirs)]
        lines = columns([("", "order", "rules"), *(
            (word, side.name, ", ".join(side.rules) or "none") for word, side in sides)], left=3)
        count = "1 token" if self.tokens == 1 else f"{self.tokens} tokens"
        alike = f"{count} alike: {quoted(self.text)}" if self.tokens else "no token alike"
        lines += ["", alike, *self.told()]
        if self.moved:
            lines += ["", "the same token from another distribution:", *columns([
                ("token", "", "moved", "only ours", "only theirs"),
                *((str(m.position), quoted(m.text), percent(m.moved), str(m.ours), str(m.theirs))
                  for m in self.moved)], left=2)]
        return "\n".join(lines)

    def told(self) -> list[str]:
        """The token that differs."""
        if self.parting is None:
            return ["no token differs"]
        p = self.parting
        side = self.ours if p.side == "ours" else self.theirs
        lost, won = (p.theirs, p.ours) if p.side == "ours" else (p.ours, p.theirs)
        act = "removes" if p.removed else f"puts {quoted(won.text)} before"
        rows = [(quoted(o.text), *(percent(x) or "removed" for x in o[2:]))
                for o in (p.ours, p.theirs)]
        return [f"token {p.position} differs: ours is {quoted(p.ours.text)}, theirs "
                f"{quoted(p.theirs.text)}",
                f"made by {p.side} ({side.name}): {p.stage} {act} {quoted(lost.text)}",
                "", *columns([("", "model", "ours", "theirs"), *rows], left=1)]


def against(steps: Steps, theirs: Resolved) -> Difference:
    """Follow a text that has yet to begin until a token differs, or to its end.

    Raises ParameterError for a text that is not picked token by token, and RowError where the other
    side's rules leave no token.
    """
    handle = steps.handle
    mine, rules = handle.resolved, theirs.request.rules
    for resolved in (mine, theirs):
        if resolved.plans:
            raise ParameterError("strategy: orders are compared in one stage, and this program may "
                                 "change its rules on the way; give a plan without an end",
                                 "strategy")
        if not isinstance(resolved.request.strategy, Sample):
            raise ParameterError(f"strategy={resolved.request.strategy}: only what is picked token "
                                 "by token can be compared; use greedy or sample", "strategy")
    prompt = mine.request.prompt
    recalled = history(prompt) if any(rule.recalls for rule in rules) else None
    force = InForce(Stage(theirs.request.strategy), rules, ())
    state = State(tuple(rule.start(prompt) for rule in force.rules(0)), recalled)
    text, parting = "", None
    moved: list[Moved] = []
    with closing(steps):
        for step in steps:
            place = (mine.request.seed, 0, len(prompt) + step.index, draw("pick"))
            other = seated(step.row, force.rules(step.index), state, place)
            if other.pick[0] != step.id:
                parting = parted(step, other, place)
                break
            text += step.token
            moved += shifted(step, other)
            state = state.after(force, step.index, other.candidate(step.id))
    count = parting.position if parting else step.index + 1
    return Difference(handle.prompt, handle.facts.name, Side.of(mine), Side.of(theirs), text, count,
                      tuple(moved), parting, mine.request.seed)


def seated(row: Row, rules: Sequence[Any], state: State, place: Place) -> Row:
    """The same row under other rules."""
    made = Row(row.logits, row.number, replace(
        row.seat, rules=tuple(rules), states=state.rules, history=state.history,
        place=place_of_noise(rules, state.history, place)))
    if made.empty:
        raise RowError(f"the other order: {made.why_empty()}")
    return made


def shifted(step: Step, other: Row) -> list[Moved]:
    """What differs though the pick is the same; nothing where nothing does."""
    mine, others = (probabilities(row.shaped, row.vocab) for row in (step.row, other))
    if alike(mine, others):
        return []
    return [Moved(step.index, step.id, step.token, variation(mine, others),
                  int((mine[others == 0] > 0).sum()), int((others[mine == 0] > 0).sum()))]


def parted(step: Step, other: Row, place: Place) -> Parting:
    """Two picks from one row, and the rule that made them two."""
    row = step.row
    pair = (step.id, other.pick[0])
    noise = None if kinds(row) & kinds(other) & {GREEDY} else place
    ours, theirs = leads(row, pair, noise), leads(other, pair, noise)
    start = common(row, other)
    if ours[start[0]] != theirs[start[1]]:  # a rule has moved the noise of one side
        start = 0, 0
    side: Literal["ours", "theirs"] = "theirs" if ours[start[0]] else "ours"
    own, turned = (other, theirs) if side == "theirs" else (row, ours)
    last = next(i for i in range(len(turned) - 1, 0, -1) if turned[i - 1] != turned[-1])
    mine, others = (Odds(token, step.facts.text(token), exp(row.candidate(token).logprob),
                         exp(row.processed(token)), exp(other.processed(token))) for token in pair)
    return Parting(step.index, mine, others, side, str(own.seat.rules[last - 1]),
                   not isfinite(own.upto(last).processed(pair[side == "ours"])))


def common(one: Row, other: Row) -> tuple[int, int]:
    """After how many of its rules each side still has what the other has, other rules between."""
    start = 0, 0
    ours, theirs = (changes(row) for row in (one, other))
    for (i, mine), (j, others) in zip(ours, theirs, strict=False):
        if not alike(mine, others):
            break
        start = i, j
    return start


def changes(row: Row) -> Iterator[tuple[int, Floats]]:
    """The distribution after each rule that changes it, and after how many rules that is."""
    last = probabilities(row.upto(0).shaped, row.vocab)
    for count in range(1, len(row.seat.rules) + 1):
        probs = probabilities(row.upto(count).shaped, row.vocab)
        if not alike(probs, last):
            yield count, probs
        last = probs


def alike(one: Floats, other: Floats) -> bool:
    return bool(((one > 0) == (other > 0)).all()) and variation(one, other) <= SAME


def kinds(row: Row) -> set[str]:
    return {rule.name for rule in row.seat.rules}


def leads(row: Row, pair: tuple[int, int], place: Place | None) -> list[bool]:
    """Whether the first token leads the second, before the rules and after each of them.

    `place`: of the noise, before a rule moves it; None where none counts.
    """
    found: list[bool] = []
    for count in range(len(row.seat.rules) + 1):
        part = row.upto(count)
        one, other = map(part.processed, pair)
        if place is not None:
            moved = place_of_noise(part.seat.rules, part.seat.history, place)
            one, other = (value + Noise.at(moved, token).gumbel
                          for value, token in zip((one, other), pair, strict=True))
        if isfinite(one) or isfinite(other):
            found.append((one, pair[1]) > (other, pair[0]))
        else:  # both are removed for now
            found.append(found[-1])
    return found
