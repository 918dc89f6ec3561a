"""The settings that the laws are held for: strategies, each with rules of every kind that remembers
something, draws, or names tokens."""
from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from subjects import VOCAB

from unspool.constraints.choice import choice
from unspool.constraints.vocabulary import Vocabulary
from unspool.core.request import Request
from unspool.rules import (
    adaptive_p,
    bad_words,
    constrain,
    custom,
    dry,
    dynamic_temperature,
    frequency_penalty,
    greedy,
    gumbel_watermark,
    kgw,
    logit_bias,
    min_new_tokens,
    min_p,
    mirostat_1,
    mirostat_2,
    no_repeat_ngram,
    presence_penalty,
    repetition_penalty,
    rule,
    smoothing,
    synthid,
    temperature,
    top_k,
    top_p,
    typical_p,
    xtc,
)
from unspool.rules.watermarks.gumbel import Source
from unspool.rules.watermarks.kgw import Greens
from unspool.rules.watermarks.synthid import Tournament
from unspool.stops.complete import Complete
from unspool.stops.length import MaxNew
from unspool.stops.tokens import EndTokens
from unspool.strategies import Beam, Force, Sample

NEW, END = 12, 11
PROMPTS = ((1, 2, 3, 1, 2), (7,), tuple(range(3, 20)), (5, 5, 6))


@rule(start=lambda rule, prompt: tuple(prompt[-4:]),
      after=lambda rule, state, token, fact: (*state, token)[-4:])
def fresh(rows):
    """Ban the last four tokens: a rule whose state every path must carry."""
    values = rows.values.copy()
    for row, state in zip(values, rows.states, strict=True):
        row[list(state)] = -np.inf
    return values


def lifted(ids, logits):
    """A rule of a user's own, which looks at the text."""
    return np.where(np.arange(len(logits)) == sum(ids) % len(logits), logits + 1.5, logits)


@dataclass(frozen=True)
class Setting:
    """A strategy with its rules, as one entry of the matrix. `seeded`: the seed and the number of
    the choice decide which text is drawn."""

    strategy: object
    rules: tuple = ()
    stops: tuple = (EndTokens(frozenset({END})), MaxNew(NEW))
    fields: dict = field(default_factory=dict)
    seeded: bool = True

    def request(self, prompt=PROMPTS[0], seed=5, **more):
        return Request(tuple(prompt), self.strategy, self.rules, self.stops, seed=seed,
                       **{**self.fields, **more})


# The prompt and the text, counted and matched in every way that there is.
COUNTING = (logit_bias(data=(((3,), 0.5), ((1, 4), 2.0))), repetition_penalty(1.3),
            frequency_penalty(0.4), presence_penalty(0.3, 1, 6), dry(0.8, 1.5, 1),
            no_repeat_ngram(3), bad_words(data=((5,), (2, 9))), min_new_tokens(4, data=(END,)))
TEXTS = [[4, 9, 2], [4, 9, 8, 1], [4, 3], [20, 21, 22, 23, 1, 1, 2], [6]]
ONE_OF = choice(TEXTS, Vocabulary([b""] * VOCAB), (END,))
CHOSEN = (EndTokens(frozenset({END})), Complete(ONE_OF, "choice"), MaxNew(NEW))
MARKS = (Greens(VOCAB, 0.5), Tournament((654, 400, 836, 123), 3))

EVERY = {
    "greedy": Setting(Sample(), (greedy(),)),
    "greedy, counting": Setting(Sample(), (*COUNTING, greedy())),
    "sample": Setting(Sample()),
    "sample, cut": Setting(Sample(), (temperature(0.8), top_k(9), top_p(0.9))),
    "sample, fresh": Setting(Sample(), (fresh(), temperature(0.9))),
    "sample, counting": Setting(Sample(), (*COUNTING, temperature(0.9), top_p(0.95))),
    "sample, drawing": Setting(Sample(), (
        dynamic_temperature(1.0, 3.0), smoothing(0.05, 1.5), typical_p(0.98), xtc(0.5, 0.05))),
    "sample, mirostat": Setting(Sample(), (temperature(0.9), mirostat_2(3.0, 0.3))),
    "sample, mirostat 1": Setting(Sample(), (mirostat_1(3.0, 0.3),)),
    "sample, adaptive": Setting(Sample(), (min_p(0.01), adaptive_p(0.2, 0.7))),
    "sample, marks": Setting(Sample(), (
        temperature(0.9), kgw(1.5, data=MARKS[0]), synthid(data=MARKS[1]))),
    "sample, marked noise": Setting(Sample(), (
        temperature(1.5), gumbel_watermark(data=Source(42, 2))), seeded=False),
    "sample, choice": Setting(Sample(), (constrain(data=ONE_OF),), CHOSEN, seeded=False),
    "sample, own": Setting(Sample(), (custom(data=lifted), temperature(1.5))),
    "best of 3": Setting(Sample(3), (temperature(1.2),)),
    "best of 3, counting": Setting(Sample(3), (*COUNTING, temperature(1.2), mirostat_2(3.0, 0.2))),
    "beam": Setting(Beam(4, n=4)),
    "beam, fresh": Setting(Beam(3, n=3, length_penalty=0.7, early_stopping="never", longest=NEW),
                           (fresh(),)),
    "beam, counting": Setting(Beam(3, n=3), (*COUNTING, temperature(1.3))),
    "beam, choice": Setting(Beam(3, n=3), (constrain(data=ONE_OF),), CHOSEN),
    "forced": Setting(Force((4, 9, 2, END, 3, 3)), stops=(MaxNew(6),)),
    "forced, counting": Setting(Force((4, 9, 2, END, 3, 3)), COUNTING[:4],
                                stops=(MaxNew(6),)),
}
