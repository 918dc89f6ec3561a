"""What the tests of searches share: a tiny model whose texts can be enumerated, plain definitions
of what it says, and toy scorers that count how often they are asked."""
from dataclasses import dataclass, field
from functools import cache

import engine_zoo
import numpy as np
from models_zoo import span, tiny

from unspool.core.job import Job
from unspool.core.prefix import Candidate
from unspool.core.request import Request
from unspool.core.slot import Slot
from unspool.core.stage import Stage
from unspool.stops.length import MaxNew
from unspool.stops.stage import EndOfStage, Tokens
from unspool.stops.tokens import EndTokens

VOCAB, END, NEW, PROMPT = 8, 7, 5, (1, 2, 3)


@cache
def model(seed=0, vocab=VOCAB):
    return tiny(seed=seed, vocab_size=vocab)


def request(strategy, *, new=NEW, ends=(END,), prompt=PROMPT, **more):
    stops = (EndTokens(frozenset(ends)), MaxNew(new))
    return Request(tuple(prompt), strategy, stops=stops, **{"seed": 5, **more})


def program(first, then, count, *, takes=1, new=NEW, ends=(END,), **more):
    """`first` for `count` tokens, and `then`."""
    stops = (EndTokens(frozenset(ends)), MaxNew(new), EndOfStage(0, Tokens(count)))
    return Request(PROMPT, first, stops=stops, seed=5, **more,
                   program=(Stage(first), Stage(then, takes=takes)))


def run(strategy, **more):
    seed = more.pop("weights", 0)
    asked = strategy if isinstance(strategy, Request) else request(strategy, **more)
    [job] = engine_zoo.run(model(seed), asked)
    return job


def texts(job):
    return [b.tokens for b, _ in job.strategy.ranked(job)]


def answers(job):
    return [(b.tokens, score) for b, score in job.strategy.ranked(job)]


# ── plain definitions ────────────────────────────────────────────────────────────────────────────
def logprobs(tokens, weights=0):
    """[len(tokens), V]: log-softmax of a whole forward, in float64."""
    rows = np.array(model(weights).score([span(list(tokens))]).rows(), np.float64)
    return rows - np.log(np.exp(rows).sum(axis=-1, keepdims=True))


def likeliest(row, count):
    return np.argsort(-row, kind="stable")[:count].tolist()


def greedy(text=(), weights=0, new=NEW, prompt=PROMPT):
    """The rest of a text by its likeliest tokens, with what was written of it."""
    text = list(text)
    while len(text) < new and END not in text:
        text += likeliest(logprobs([*prompt, *text], weights)[-1], 1)
    return text


def every_text(weights=0, new=4, text=(), score=0.0):
    """(score, tokens) of every finished text."""
    if len(text) == new or END in text:
        return [(score, list(text))]
    row = logprobs([*PROMPT, *text], weights)[-1]
    return [found for token in range(VOCAB)
            for found in every_text(weights, new, (*text, token), score + row[token])]


# ── toy scorers ──────────────────────────────────────────────────────────────────────────────────
@dataclass(frozen=True)
class Length:
    """A reward: the number of tokens, or another function of the tokens."""

    of: object = len
    asked: list = field(default_factory=list, compare=False)

    def rewards(self, branches):
        self.asked.append(len(branches))
        return [float(self.of(b.tokens)) for b in branches]


@dataclass(frozen=True)
class Common:
    """A utility that is not symmetric: the share of a text's tokens that the other has."""

    states: bool = False
    asked: list = field(default_factory=list, compare=False)

    def table(self, branches):
        self.asked.append(len(branches))
        return [[shared(a.tokens, b.tokens) for b in branches] for a in branches]


def shared(one, other):
    return sum(t in other for t in one) / len(one)


@dataclass(frozen=True)
class Last:
    """An extractor: the last token but the end, if it is one of `known`; a token is one byte."""

    known: tuple = tuple(range(VOCAB))
    asked: list = field(default_factory=list, compare=False)

    def answers(self, branches):
        self.asked.append(len(branches))
        return [last_of(b.tokens, self.known) for b in branches]

    def spans(self, branches):
        places = [last_place(b.tokens, self.known) for b in branches]
        return [None if i is None else (i, i + 1) for i in places]


def last_place(tokens, known):
    rest = [t for t in tokens if t != END]
    return len(rest) - 1 if rest and rest[-1] in known else None


def last_of(tokens, known=tuple(range(VOCAB))):
    place = last_place(tokens, known)
    return None if place is None else tokens[place]


# ── by hand ──────────────────────────────────────────────────────────────────────────────────────
def fact(token, processed=-0.5, raw=-1.0):
    return Candidate(token, raw, processed, 1, -0.25)


def slot(*top, similarity=-1.0, raw=(), drafted=None):
    """A slot whose likeliest tokens are these facts; the first is the pick."""
    return Slot(top[0], drafted, top, similarity=similarity, raw=raw)


def job_of(strategy, *, ends=(END,), new=50):
    return Job(request(strategy, ends=ends, new=new))


def decide(job, slots):
    job.slots = {**job.slots, **slots}
    job.decide()


def reasons(job):
    return [r.reason for r in job.trace if r.edit == "drop"]


# ── a drafter ────────────────────────────────────────────────────────────────────────────────────
class Guesses:
    """Guesses up to three tokens: the likeliest ones, some of them wrong."""

    def guess(self, branch):
        text = branch.tokens
        right = greedy(text, new=branch.written + 3)[branch.written:]
        return [(t + (branch.written + i) % 3 // 2) % VOCAB for i, t in enumerate(right)]
