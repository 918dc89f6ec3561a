"""What a setting of the laws is, and the rules, stops and texts that several of them have."""
from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from subjects import VOCAB

from unspool.constraints.choice import choice
from unspool.constraints.vocabulary import Vocabulary
from unspool.core.request import Request
from unspool.rules import (
    bad_words,
    dry,
    frequency_penalty,
    logit_bias,
    min_new_tokens,
    no_repeat_ngram,
    presence_penalty,
    repetition_penalty,
    rule,
)
from unspool.stops.complete import Complete
from unspool.stops.length import MaxNew
from unspool.stops.stage import EndOfStage
from unspool.stops.tokens import EndTokens
from unspool.strategies import Force, Sample

NEW, END = 12, 11
PROMPTS = ((1, 2, 3, 1, 2), (7,), tuple(range(3, 20)), (5, 5, 6))
STOPS = (EndTokens(frozenset({END})), MaxNew(NEW))


@rule(start=lambda rule, prompt: tuple(prompt[-4:]),
      after=lambda rule, state, token, fact: (*state, token)[-4:])
def fresh(rows):
    """Ban the last four tokens: a rule whose state every path must carry."""
    values = rows.values.copy()
    for row, state in zip(values, rows.states, strict=True):
        row[list(state)] = -np.inf
    return values


class Diary:
    """A stop that never ends a text. It remembers of each written token the stage that it was
    written in and the choice that its noise was of."""

    def start(self):
        return ()

    def after(self, state, branch):
        return (*state, (branch.stage, branch.choice)), None


@dataclass(frozen=True)
class Setting:
    """A strategy with its rules and mixes, or a program, as one entry of the matrix.

    `seeded`: whether the seed decides which text is written; None: among a few, so that nothing can
    be said. A voice of a mix may have a name in place of a model: the subject fills it in.
    """

    strategy: object
    rules: tuple = ()
    stops: tuple = STOPS
    fields: dict = field(default_factory=dict)
    seeded: bool | None = True
    mixes: tuple = ()
    program: tuple = ()

    @property
    def plain(self) -> bool:
        """One text after the other, which costs little: it is looked at with every prompt."""
        return isinstance(self.strategy, Sample | Force) and not self.program and not self.mixes

    @property
    def prompts(self):
        return PROMPTS if self.plain else PROMPTS[:1]

    def request(self, prompt=PROMPTS[0], seed=5, **more):
        return Request(tuple(prompt), self.strategy, self.rules, (*self.stops, Diary()), seed=seed,
                       **{"mixes": self.mixes, "program": self.program, **self.fields, **more})


def program(*stages, ends, **more):
    """A setting of several stages; `ends`: what ends each of the first ones, None: its entropy."""
    marks = tuple(EndOfStage(i, end) for i, end in enumerate(ends) if end is not None)
    return Setting(stages[0].strategy, program=stages, stops=(*STOPS, *marks), **more)


# The prompt and the text, counted and matched in every way that there is.
COUNTING = (logit_bias(data=(((3,), 0.5), ((1, 4), 2.0))), repetition_penalty(1.3),
            frequency_penalty(0.4), presence_penalty(0.3, 1, 6), dry(0.8, 1.5, 1),
            no_repeat_ngram(3), bad_words(data=((5,), (2, 9))), min_new_tokens(4, data=(END,)))
TEXTS = [[4, 9, 2], [4, 9, 8, 1], [4, 3], [20, 21, 22, 23, 1, 1, 2], [6]]
ONE_OF = choice(TEXTS, Vocabulary([b""] * VOCAB), (END,))
CHOSEN = (EndTokens(frozenset({END})), Complete(ONE_OF, "choice"), MaxNew(NEW))
