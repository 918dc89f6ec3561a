"""How an answer of a setting is made and compared."""
from __future__ import annotations

import engine_zoo
import numpy as np
from models_zoo import span
from settings import EVERY, NEW, PROMPTS, Setting
from subjects import VOCAB, Subject

from unspool.core.history import history
from unspool.core.job import Job
from unspool.engine.row import Row
from unspool.kernels.reading.logits import logits_of
from unspool.kernels.reading.philox import draw
from unspool.rules.plain import Seat

__all__ = ["EVERY", "NEW", "PROMPTS", "Setting", "VOCAB"]

STEPS = engine_zoo.STEPS


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


def truth(model, prompt, text, rules=(), seed=5):
    """Teacher-forced raw and processed log-probabilities: one plain forward pass, and the rules'
    definitions in float64."""
    tokens = [*prompt, *text]
    rows = rows_of(model, tokens[:-1])[-len(text):].astype(np.float64)
    raw, processed = [], []
    states, past = tuple(r.start(prompt) for r in rules), history(prompt)
    for row, token in zip(rows, text, strict=True):
        peak = row.max()
        raw.append(float(row[token] - peak - np.log(np.exp(row - peak).sum())))
        made = Row(logits_of(row[None]), 0, Seat(
            tuple(rules), states, past, (seed, 0, past.length, draw("pick"))))
        fact = made.candidate(token)
        processed.append(fact.processed)
        past = past.extend(token)
        states = tuple(r.after(s, token, fact) for r, s in zip(rules, states, strict=True))
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
