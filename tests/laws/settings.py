"""The settings that the laws are held for: what a setting is, those of plain strategies with rules
of every kind that remembers something, draws, or names tokens, and all others joined to them."""
from __future__ import annotations

import numpy as np
import searches
from setting import CHOSEN, COUNTING, END, NEW, ONE_OF, PROMPTS, VOCAB, Setting, fresh

from unspool.rules import (
    adaptive_p,
    constrain,
    custom,
    dynamic_temperature,
    greedy,
    gumbel_watermark,
    kgw,
    min_p,
    mirostat_1,
    mirostat_2,
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
from unspool.stops.length import MaxNew
from unspool.strategies import Beam, Force, Sample

__all__ = ["COMPANY", "END", "EVERY", "NEW", "PROMPTS", "Setting"]


def lifted(ids, logits):
    """A rule of a user's own, which looks at the text."""
    return np.where(np.arange(len(logits)) == sum(ids) % len(logits), logits + 1.5, logits)


MARKS = (Greens(VOCAB, 0.5), Tournament((654, 400, 836, 123), 3))

EVERY = {
    "greedy": Setting(Sample(), (greedy(),), seeded=False),
    "greedy, counting": Setting(Sample(), (*COUNTING, greedy()), seeded=False),
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
        temperature(1.5), gumbel_watermark(data=Source(42, 2))), seeded=None),
    "sample, choice": Setting(Sample(), (constrain(data=ONE_OF),), CHOSEN, seeded=None),
    "sample, own": Setting(Sample(), (custom(data=lifted), temperature(1.5))),
    "best of 3": Setting(Sample(3), (temperature(1.2),)),
    "best of 3, counting": Setting(Sample(3), (*COUNTING, temperature(1.2), mirostat_2(3.0, 0.2))),
    "beam": Setting(Beam(4, n=4), seeded=False),
    "beam, fresh": Setting(Beam(3, n=3, length_penalty=0.7, early_stopping="never", longest=NEW),
                           (fresh(),), seeded=False),
    "beam, counting": Setting(Beam(3, n=3), (*COUNTING, temperature(1.3)), seeded=False),
    "beam, choice": Setting(Beam(3, n=3), (constrain(data=ONE_OF),), CHOSEN, seeded=False),
    "forced": Setting(Force((4, 9, 2, END, 3, 3)), stops=(MaxNew(6),), seeded=False),
    "forced, counting": Setting(Force((4, 9, 2, END, 3, 3)), COUNTING[:4],
                                stops=(MaxNew(6),), seeded=False),
    **searches.SEARCHES,
    **searches.MIXED,
    **searches.SCHEDULED,
    **searches.PROGRAMS,
}
# What a request shares a batch with.
COMPANY = ("greedy", "sample, counting", "beam, fresh", "contrastive", "guided", "best of 3",
           "beam >> sample", "tree", "sample, own", "dola", "beam, choice", "stochastic beam")
