"""Texts with and without a watermark: written by a tiny model in the real engine."""
import engine_zoo
import models_zoo
import torch

from unspool.core.request import Request
from unspool.stops.length import MaxNew
from unspool.strategies import Sample

VOCAB = 200
NEW = 200
PROMPT = (3, 1, 4, 1, 5, 9, 2, 6)


def table(spread=1.5, seed=0, vocab=VOCAB):
    """Logits of the next token by the last one."""
    return torch.randn(vocab, vocab, generator=torch.Generator().manual_seed(seed)) * spread


def model(dtype="float32", **shape):
    """In float32 its rows are shaped by kernels, in float64 by the definitions."""
    return models_zoo.markov(table(**shape), dtype)


def asked(*rules, n=1, new=NEW, seed=1, prompt=PROMPT, **more):
    return Request(tuple(prompt), Sample(n), rules, (MaxNew(new),), seed=seed, **more)


def texts(*rules, dtype="float32", **how):
    """The written tokens of each choice."""
    [job] = engine_zoo.run(model(dtype), asked(*rules, **how))
    return [branch.tokens for branch, _ in job.strategy.ranked(job)]


def text(*rules, **how):
    return texts(*rules, **how)[0]


class Guesses:
    """A drafter that knows a text, and is wrong at every third token of it."""

    def __init__(self, known, size=4):
        self.known, self.size = known, size

    def guess(self, branch):
        places = range(branch.written, min(branch.written + self.size, len(self.known)))
        return [(self.known[i] + (i % 3 == 0)) % VOCAB for i in places]


def drafted(*rules, **how):
    """The text written on the slots of drafts, and how many tokens of them were right."""
    known = text(*rules, **how)
    [job] = engine_zoo.run(model(), asked(*rules, drafter=Guesses(known), **how))
    assert job.usage.accepted > len(known) // 3 and job.usage.rejected > 0
    return job.branches[0].tokens, known
