"""A stage: one part of a request, with its own strategy and the rules and mixes in force.

Most requests have one. Where there are more, a stage ends when each of its texts has ended or met
the stage's end; the next takes over the best of them.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unspool.core.branch import Branch, Ended
from unspool.core.prefix import Candidate
from unspool.core.schedule import at, steady
from unspool.core.sockets import Mix, Rule, Strategy

REACHED = "stage"  # the reason of a text that met its stage's end and may be gone on with


@dataclass(frozen=True, slots=True)
class Stage:
    """`rules`, `mixes`: which of the request's are in force, by place (None: all of them).
    `takes`: how many texts it takes over from the stage before, the best ones. `entropy_above`: a
    text has met the stage's end where the model's own distribution has more bits than this; what
    else ends a stage is a stop, see `stops/stage.py`."""

    strategy: Strategy
    rules: tuple[int, ...] | None = None
    mixes: tuple[int, ...] | None = None
    takes: int = 1
    entropy_above: float | None = None


class InForce:
    """The rules and mixes in force during a stage, and how what rules remember is folded."""

    def __init__(self, stage: Stage, rules: Sequence[Rule], mixes: Sequence[Mix]) -> None:
        self.places = range(len(rules)) if stage.rules is None else stage.rules
        self.whole = tuple(self.places) == tuple(range(len(rules)))
        self.fixed = tuple(rules[i] for i in self.places)
        self.mixes = tuple(mixes) if stage.mixes is None else tuple(mixes[i] for i in stage.mixes)
        self.steady, self.mixed_steadily = steady(self.fixed), steady(self.mixes)
        # Of each mix in force: the places of its voices among those of all the request's mixes.
        counts = [len(mix.voices) for mix in mixes]
        first = [sum(counts[:i]) for i in range(len(counts))]
        self.voices = [tuple(range(first[i], first[i] + counts[i])) for i in (
            range(len(counts)) if stage.mixes is None else stage.mixes)]

    def rules(self, step: int) -> tuple[Rule, ...]:
        """As they are at this step."""
        return self.fixed if self.steady else at(self.fixed, step)

    def mixed(self, step: int) -> tuple[Mix, ...]:
        return self.mixes if self.mixed_steadily else at(self.mixes, step)

    def states(self, every: tuple[object, ...]) -> tuple[object, ...]:
        """Of the rules in force, among those of all rules."""
        return every if self.whole else tuple([every[i] for i in self.places])

    def after(self, every: tuple[object, ...], step: int, candidate: Candidate
              ) -> tuple[object, ...]:
        """What all rules remember after a token; those not in force keep what they had."""
        rules, token = self.rules(step), candidate.token
        if self.whole:
            return tuple([rule.after(state, token, candidate)
                          for rule, state in zip(rules, every, strict=True)])
        out = list(every)
        for rule, place in zip(rules, self.places, strict=True):
            out[place] = rule.after(out[place], token, candidate)
        return tuple(out)

    def enter(self, every: tuple[object, ...], old: InForce, text: Sequence[int]
              ) -> tuple[object, ...]:
        """When this stage begins: rules that the old one did not have start on the whole text."""
        out = list(every)
        for rule, place in zip(self.rules(0), self.places, strict=True):
            if place not in old.places:
                out[place] = rule.start(text)
        return tuple(out)


def step_of(branch: Branch, depth: int = 0) -> int:
    """The step of the slot that follows the branch's text and `depth` tokens of its draft."""
    return branch.written - branch.since + depth


def weight(ended: Ended) -> int:
    """Of several reasons to end at one token the lightest counts."""
    return {"length": 1, REACHED: 2}.get(ended.reason, 0)
