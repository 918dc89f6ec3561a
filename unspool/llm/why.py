"""Why a token was written: what each rule did at its place, and how it came to be picked.

A record holds the model's row and all that shaped it; the rest is computed when it is asked for, by
shaping that row again, and what is as large as a row is not kept.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from unspool.core.prefix import Candidate
from unspool.core.values import shown
from unspool.engine.row import Row
from unspool.engine.stages import Stage, Stages, Tokens, stages
from unspool.kernels.reading.noise import Place, gumbel
from unspool.kernels.reading.philox import uniform
from unspool.kernels.reading.plain import Floats, Ids
from unspool.llm.facts import Facts
from unspool.llm.results import finite, strict
from unspool.show.table import columns, percent
from unspool.show.visible import quoted

SHOWN = 10  # tokens of a stage that JSON lists, of all that it removed
LONGEST = 80  # characters of a state
Picked = Literal["drawn", "greedy", "only", "searched", "given"]
PICKED: dict[Picked, str] = {
    "drawn": "drawn", "greedy": "the likeliest", "only": "the only one left",
    "searched": "ranked by the search", "given": "given, not picked",
}


@dataclass(frozen=True, slots=True)
class Noise:
    """The random number of one token: `gumbel` is -log(-log(`uniform`)), at the place that `seed`,
    `choice`, `position` (the prompt counts) and `draw` name."""

    gumbel: float
    uniform: float
    seed: int
    choice: int
    position: int
    draw: int

    @classmethod
    def at(cls, place: Place, token: int) -> Noise:
        ids = np.array([token])
        return cls(float(gumbel(*place, ids)[0]), float(uniform(*place, ids)[0]), *place)

    def json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The token that came second: its log-probability plus its noise was less by `behind`.

    With a greedy rule it is the second likeliest before that rule, and no noise counts.
    """

    id: int
    text: str
    prob: float
    behind: float

    def json(self) -> dict[str, Any]:
        return {"id": self.id, "text": self.text, "prob": self.prob, "behind": self.behind}


@dataclass(frozen=True, eq=False)
class Why:
    """The record of one written token. `position`: its place among the written ones, from 0 on.

    `row` holds the model's logits, the rules and what they remembered; `forced`: the text was
    given, whatever would have been picked.
    """

    position: int
    fact: Candidate
    facts: Facts
    forced: bool = False

    # ── the token ────────────────────────────────────────────────────────────────────────────────
    @property
    def row(self) -> Row:
        row = self.fact.row
        assert isinstance(row, Row)
        return row

    @property
    def id(self) -> int:
        return self.fact.token

    @property
    def text(self) -> str:
        return self.facts.text(self.id)

    @property
    def logprob(self) -> float:
        """Before the rules; natural log."""
        return self.fact.logprob

    @property
    def rank(self) -> int:
        """Before the rules, 1 for the likeliest."""
        return self.fact.rank

    @property
    def processed_logprob(self) -> float:
        """After the rules; -inf if they removed it."""
        return self.fact.processed

    @cached_property
    def processed_rank(self) -> int | None:
        """After the rules; None if they removed it."""
        left = self.again().shaped
        found = np.flatnonzero(left.ids == self.id)
        if not len(found):
            return None
        own = left.values[found[0]]
        before = (left.values > own) | ((left.values == own) & (left.ids < self.id))
        return 1 + int(before.sum())

    # ── what was done at its place ───────────────────────────────────────────────────────────────
    @property
    def stages(self) -> Stages:
        """What each rule did, by order and by name. It is found anew whenever it is asked for."""
        return stages(self.row)

    def again(self) -> Row:
        """The row, to be shaped once more: the stored one would keep what was made of it."""
        return Row(self.row.logits, self.row.number, self.row.seat)

    @cached_property
    def left(self) -> int:
        """How many tokens the rules left."""
        return len(self.again().shaped.ids)

    @property
    def place(self) -> Place | None:
        """Where its noise comes from; None where none was drawn."""
        return self.row.seat.place if self.row.seat.wanted else None

    @cached_property
    def how(self) -> Picked:
        """`drawn` by noise; the likeliest by a `greedy` rule; the `only` one that was left;
        `searched`: a search ranked it; `given`: by a forced text or by the caller."""
        if self.forced:
            return "given"
        if not self.row.seat.wanted:
            return "searched"
        if self.again().pick[0] != self.id:
            return "given"
        if self.greedy is not None:
            return "greedy"
        return "only" if self.left == 1 else "drawn"

    @cached_property
    def greedy(self) -> int | None:
        """The place of the rule that takes the likeliest, if there is one."""
        names = [rule.name for rule in self.row.seat.rules]
        return names.index("greedy") if "greedy" in names else None

    @cached_property
    def noise(self) -> Noise | None:
        """The token's; None where none was drawn."""
        return None if self.place is None else Noise.at(self.place, self.id)

    @cached_property
    def runner_up(self) -> RunnerUp | None:
        """Who would have been picked instead. None where the token was not picked, or alone."""
        if self.how not in ("drawn", "greedy"):
            return None
        left = (self.again() if self.greedy is None else self.row.upto(self.greedy)).shaped
        ids, values = left.ids, left.values - left.norm
        sums = values if self.greedy is not None else values + self.noise_of(ids)
        others = ids != self.id
        if not others.any():
            return None
        best = np.flatnonzero(others)[int(np.argmax(sums[others]))]
        token, behind = int(ids[best]), float(sums[~others][0] - sums[best])
        return RunnerUp(token, self.facts.text(token), math.exp(values[best]), behind)

    def noise_of(self, ids: Ids) -> Floats:
        """The noise of other tokens at its place."""
        assert self.place is not None
        return gumbel(*self.place, ids)

    def replay(self) -> tuple[int, float] | None:
        """The pick and its log-probability, from the stored row shaped anew; None in a search,
        which picks nothing there."""
        return self.again().pick if self.row.seat.wanted else None

    # ── told ─────────────────────────────────────────────────────────────────────────────────────
    def json(self) -> dict[str, Any]:
        """Plain data; of what a stage removed the likeliest, the counts are of all."""
        noise, second = self.noise, self.runner_up
        return {
            "position": self.position, "id": self.id, "text": self.text, "how": self.how,
            "logprob": finite(self.logprob), "rank": self.rank,
            "processed_logprob": finite(self.processed_logprob),
            "processed_rank": self.processed_rank,
            "stages": [self.stage_json(stage) for stage in self.stages],
            "noise": None if noise is None else noise.json(),
            "runner_up": None if second is None else second.json()}

    def stage_json(self, stage: Stage) -> dict[str, Any]:
        out = {name: getattr(stage, name) for name in stage.__slots__}
        cut = stage.cutoff
        return out | {
            "removed": self.listed(stage.removed), "restored": self.listed(stage.restored),
            "cutoff": None if cut is None else cut._asdict(), "state": told(stage.state)}

    def listed(self, tokens: Tokens) -> list[dict[str, Any]]:
        return [{"id": token, "text": self.facts.text(token), "prob": prob}
                for token, prob in tokens[:SHOWN]]

    def __str__(self) -> str:
        """The record as a table."""
        before, after = math.exp(self.logprob), math.exp(self.processed_logprob)
        rank = "removed" if self.processed_rank is None else str(self.processed_rank)
        lines = [f"token {self.position} {self.named(self.id)}: {PICKED[self.how]}",
                 f"probability {percent(before) or '0'} -> {percent(after) or '0'}, "
                 f"rank {self.rank} -> {rank}"]
        if self.row.seat.rules:
            rows = [HEAD, *map(self.line, self.stages)]
            lines += ["", *columns(rows, left=1), ""]
        return "\n".join(lines + self.contest())

    def line(self, stage: Stage) -> tuple[str, ...]:
        first = self.named(stage.removed[0][0]) if len(stage.removed) else ""
        cut = "" if stage.cutoff is None else percent(stage.cutoff.kept)
        return (stage.rule, str(stage.before), str(stage.after), percent(stage.mass),
                percent(stage.raw_mass), percent(stage.moved) if stage.moved > 1e-9 else "",
                f"{stage.entropy_bits:.2f}", cut, first,
                "" if stage.state is None else str(told(stage.state)))

    def contest(self) -> list[str]:
        """How it was picked: the noise, and who came second."""
        out = []
        if self.noise is not None and self.greedy is None:
            n = self.noise
            out.append(f"noise {n.gumbel:.4f} (uniform {n.uniform:.6f}) of seed {n.seed}, choice "
                       f"{n.choice}, position {n.position}")
        if self.runner_up is not None:
            second = self.runner_up
            out.append(f"runner-up {self.named(second.id)}, {percent(second.prob)}, behind by "
                       f"{second.behind:.4f}")
        return out

    def named(self, token: int) -> str:
        return quoted(self.facts.text(token))


def told(state: object) -> Any:
    """What a rule remembered, as plain data; in brief where it is long."""
    value = strict(state)
    return value if len(str(value)) <= LONGEST else shown(state)


HEAD = ("stage", "before", "after", "removed", "of the model's", "moved", "bits", "least kept",
        "first removed", "state")
