"""The matrix of settings that the laws go through, and how an answer is made and compared."""
from __future__ import annotations

from dataclasses import dataclass, field

import engine_zoo
import numpy as np
from models_zoo import span
from subjects import VOCAB, Subject

from unspool.core.job import Job
from unspool.core.request import Request
from unspool.engine.shape import shape
from unspool.rules import greedy, rule, temperature, top_k, top_p
from unspool.stops.length import MaxNew
from unspool.stops.tokens import EndTokens
from unspool.strategies import Beam, Force, Sample

STEPS = engine_zoo.STEPS
NEW = 12
PROMPTS = ((1, 2, 3, 1, 2), (7,), tuple(range(3, 20)), (5, 5, 6))


@rule(reads="row", start=lambda prompt: tuple(prompt[-4:]),
      after=lambda state, token, fact: (*state, token)[-4:])
def fresh(rows, states):
    """Ban the last four tokens: a rule whose state every path must carry."""
    rows = rows.copy()
    for row, state in zip(rows, states, strict=True):
        row[list(state)] = -np.inf
    return rows


@dataclass(frozen=True)
class Setting:
    """A strategy with its rules, as one entry of the matrix."""

    strategy: object
    rules: tuple = ()
    stops: tuple = (EndTokens(frozenset({11})), MaxNew(NEW))
    fields: dict = field(default_factory=dict)

    def request(self, prompt=PROMPTS[0], seed=5, **more):
        return Request(tuple(prompt), self.strategy, self.rules, self.stops, seed=seed,
                       **{**self.fields, **more})


EVERY = {
    "greedy": Setting(Sample(), (greedy(),)),
    "sample": Setting(Sample()),
    "sample, cut": Setting(Sample(), (temperature(0.8), top_k(9), top_p(0.9))),
    "sample, fresh": Setting(Sample(), (fresh(), temperature(0.9))),
    "best of 3": Setting(Sample(3), (temperature(1.2),)),
    "beam": Setting(Beam(4, n=4)),
    "beam, fresh": Setting(Beam(3, n=3, length_penalty=0.7, early_stopping="never", longest=NEW),
                           (fresh(),)),
    "forced": Setting(Force((4, 9, 2, 11, 3, 3)), stops=(MaxNew(6),)),
}


# ── running ──────────────────────────────────────────────────────────────────────────────────────
def run(subject: Subject, *requests, model=None, **how):
    return engine_zoo.run(model or subject.model(), *requests, **how)


def answers(job: Job):
    """(tokens, raw sum, score) of every answer, best first."""
    out = [(b.tokens, b.logprob, score) for b, score in job.strategy.ranked(job)]
    assert out and all(tokens for tokens, _, _ in out), "nothing was written"
    return out


def same(subject: Subject, one: Job, other: Job, what: str) -> None:
    a, b = answers(one), answers(other)
    assert [x[0] for x in a] == [x[0] for x in b], f"{what}: the texts differ"
    for x, y in zip(a, b, strict=True):
        assert subject.equal(x[1], y[1]), f"{what}: the log-probabilities differ"
        assert subject.equal(x[2], y[2]), f"{what}: the scores differ"
    for (x, _), (y, _) in zip(one.strategy.ranked(one), other.strategy.ranked(other), strict=True):
        for f, g in zip(x.facts, y.facts, strict=True):
            assert f.rank == g.rank, f"{what}: the ranks differ"
            assert all(map(subject.equal, f[1:3], g[1:3])), f"{what}: a token's facts differ"
            assert subject.equal(f.peak, g.peak), f"{what}: the peaks differ"


def rows_of(model, *texts):
    """The logits after every token of the texts, read in one forward."""
    return np.array(model.score([span(text) for text in texts]).rows())


def truth(model, prompt, text, rules=()):
    """Teacher-forced raw and processed log-probabilities, from one plain forward pass."""
    tokens = [*prompt, *text]
    rows = rows_of(model, tokens[:-1])[-len(text):].astype(np.float64)
    raw, processed = [], []
    states = tuple(r.start(prompt) for r in rules)
    for row, token in zip(rows, text, strict=True):
        peak = row.max()
        raw.append(float(row[token] - peak - np.log(np.exp(row - peak).sum())))
        [shaped] = shape(row[None], [rules], [states])
        where = np.flatnonzero(shaped.ids == token)
        value = shaped.values[where[0]] - shaped.norm if len(where) else -np.inf
        processed.append(float(value))
        states = tuple(r.after(s, token, None) for r, s in zip(rules, states, strict=True))
    return raw, processed


class Script:
    """A drafter that knows the text: right, wrong at every token, or random."""

    def __init__(self, kind: str, text=(), size: int = 4) -> None:
        self.kind, self.text, self.size = kind, list(text), size

    def guess(self, branch):
        known = self.text[branch.written:branch.written + self.size]
        if self.kind == "wrong":
            return [(t + 1) % VOCAB for t in known]
        if self.kind == "random":
            mix = np.random.default_rng(branch.settled.length)
            return [int(t) if mix.random() < 0.6 else int(mix.integers(VOCAB)) for t in known]
        return known
