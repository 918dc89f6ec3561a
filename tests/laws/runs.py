"""How an answer of a setting is made and compared."""
from __future__ import annotations

from dataclasses import fields, is_dataclass, replace

import engine_zoo
import numpy as np
from models_zoo import span
from setting import NEW, PROMPTS, VOCAB, Setting
from settings import COMPANY, EVERY
from subjects import OTHER, Subject

from unspool.core.job import Job
from unspool.core.sockets import Voice
from unspool.engine.runner import Runner
from unspool.memories import MEMORIES

__all__ = ["COMPANY", "EVERY", "NEW", "PROMPTS", "Setting", "VOCAB"]

STEPS = engine_zoo.STEPS


# ── running ──────────────────────────────────────────────────────────────────────────────────────
def run(subject: Subject, *requests, model=None, memory="dense", joins=(), **how):
    """Answer all requests in one engine. The other model that they name remembers as this one."""
    other = Runner(subject.other, MEMORIES[memory](subject.other.context))
    made = [[filled(request, other) for request in some] for some in (requests, joins)]
    jobs = engine_zoo.run(model or subject.model(), *made[0], joins=made[1], memory=memory, **how)
    assert not other.held, "a text that is over still holds a lease of the other model"
    return jobs


def filled(request, other):
    """The request with `other` where a voice names it."""
    return replace(request, mixes=spoken(request.mixes, other))


def spoken(value, other):
    if isinstance(value, Voice):
        return replace(value, model=other) if value.model == OTHER else value
    if isinstance(value, tuple):
        return tuple(spoken(item, other) for item in value)
    if is_dataclass(value) and hasattr(value, "blend") and value.voices:
        return replace(value, **{f.name: spoken(getattr(value, f.name), other)
                                 for f in fields(value) if f.init})
    return value


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
        assert subject.equal(x[2], y[2]), f"{what}: the ranks differ"
    for (x, _), (y, _) in zip(one.strategy.ranked(one), other.strategy.ranked(other), strict=True):
        assert subject.equal(x.score, y.score), f"{what}: the scores differ"
        for f, g in zip(x.facts, y.facts, strict=True):
            assert f.rank == g.rank, f"{what}: the ranks of a token differ"
            assert all(map(subject.equal, f[1:3], g[1:3])), f"{what}: a token's facts differ"
            assert subject.equal(f.peak, g.peak), f"{what}: the peaks differ"
            assert (f.state is None) == (g.state is None)
            if f.state is not None:
                same_numbers(subject, f.state, g.state, f"{what}: the hidden states differ")


def same_numbers(subject: Subject, one, other, what: str) -> None:
    a, b = np.asarray(one), np.asarray(other)
    if subject.exact:
        assert a.dtype == b.dtype and a.tobytes() == b.tobytes(), what
    else:
        assert np.abs(a - b).max(initial=0) < subject.close, what


def rows_of(model, *texts):
    """The logits after every token of the texts, read in one forward."""
    return np.array(model.score([span(text) for text in texts]).rows())


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
