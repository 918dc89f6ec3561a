"""Settings of the laws: every search, every mix, schedules and programs."""
from __future__ import annotations

from dataclasses import dataclass

from setting import COUNTING, END, NEW, Setting, fresh, program
from subjects import OTHER

from unspool.core.edits import Drop, Extend, Fork
from unspool.core.schedule import Schedule, jumps, ramp
from unspool.core.slot import Reading
from unspool.core.sockets import Voice
from unspool.core.stage import Stage
from unspool.mixes import (
    Attribute,
    Boost,
    ContextAware,
    Contrast,
    Dola,
    Ensemble,
    Experts,
    Guidance,
    LogProbabilities,
)
from unspool.rules import (
    greedy,
    min_new_tokens,
    mirostat_2,
    repetition_penalty,
    temperature,
    top_k,
    top_p,
)
from unspool.scorers import Bag, ChrF, Likelihood, Number, States
from unspool.stops.length import MaxNew
from unspool.stops.stage import Found, Tokens
from unspool.stops.text import StopStrings
from unspool.strategies import (
    MBR,
    Beam,
    BeamSample,
    BestOf,
    ChainOfThought,
    Contrastive,
    DiverseBeam,
    Gated,
    LexicalBeam,
    Sample,
    Scheduled,
    SelfConsistency,
    SiblingBeam,
    StochasticBeam,
    Story,
    TreeSearch,
)


def piece(token):
    """Tokens 0..9 are digits, the others letters and signs."""
    return bytes([48 + token])


@dataclass(frozen=True)
class Sum:
    """A reward of a test's own: the sum of the ids."""

    def rewards(self, branches):
        return [float(sum(b.tokens)) for b in branches]


def two_phases(job):
    """Parts into the three likeliest tokens, writes each on by the likeliest one."""
    slots = yield ()
    [root] = job.live
    slots = yield [*(Fork(root, c) for c in slots[root][0].top), Drop(root, "parted")]
    while True:
        slots = yield [Extend(b, slots[b][0].pick) for b in job.live]


LATE = min_new_tokens(8, data=(END,))  # so that a text has something to compare
WARM, UNLIKE = (LATE, temperature(1.2)), (LATE, repetition_penalty(1.3))
WORDS = (((4, 9),), ((2,), (6, 6)))
SEARCHES = {
    "beam sample": Setting(BeamSample(3, n=3), (*WARM, top_k(9))),
    "diverse beam": Setting(DiverseBeam(4, n=4, groups=2, penalty=0.7), (fresh(),), seeded=False),
    "sibling beam": Setting(SiblingBeam(3, n=3, rate=0.5), seeded=False),
    "stochastic beam": Setting(StochasticBeam(4), (temperature(0.9),)),
    "lexical beam": Setting(LexicalBeam(4, n=2, longest=NEW, words=WORDS), COUNTING[:3],
                            seeded=False),
    "contrastive": Setting(Contrastive(4, 0.6), seeded=False),
    "contrastive, fresh": Setting(Contrastive(3, 0.4), (fresh(), temperature(0.9)), seeded=False),
    "tree": Setting(TreeSearch(1, 3, 30, n=2), seeded=False),
    "tree, valued": Setting(TreeSearch(2, 3, 12, Likelihood(mean=True), 2), COUNTING, seeded=False),
    "best of": Setting(BestOf(4, 2, Likelihood(mean=True)), WARM),
    "best of, own": Setting(BestOf(3, 1, Sum()), WARM),
    "self-consistency": Setting(SelfConsistency(5, Number(piece), 2), WARM),
    "mbr": Setting(MBR(4, ChrF(piece), 2), WARM),
    "mbr, states": Setting(MBR(4, States(), 2, weighted=True), UNLIKE),
    "gated": Setting(Gated(4, 3.4, 4, 3, 2), WARM),
    "chain of thought": Setting(ChainOfThought(4, 2, Number(piece), piece), (top_p(0.95),),
                                seeded=False),
    "story": Setting(Story(two_phases, Reading(top=3, pick=False)), seeded=False),
}

ASIDE, AGAIN, OTHERS = Voice((9, 4, 4)), Voice((7,)), Voice(model=OTHER)
GUIDANCE = Guidance(1.8, ASIDE)
DOLA = Dola((0, 1), 0.05)
BOOST = Boost((((4, 9, 2), 1.5), ((3,), 0.7), ((8, 8), -1.0)))
BAG = Bag((((3,), 1.2), ((4,), -0.8), ((4, 9), 2.0), ((9, 2), 1.0)), 0.3)
ENSEMBLE = Ensemble((2.0, 1.0, 0.5), (OTHERS, AGAIN))
MIXED = {
    "guided": Setting(Sample(), (temperature(0.9),), mixes=(GUIDANCE,)),
    "guided, counting": Setting(Sample(), (*COUNTING, greedy()), mixes=(GUIDANCE,), seeded=False),
    "guided beam": Setting(Beam(3, n=3), mixes=(GUIDANCE,), seeded=False),
    "context": Setting(Sample(), (fresh(),), mixes=(ContextAware(0.7, AGAIN),)),
    "contrast": Setting(Sample(), mixes=(Contrast(OTHERS, 0.05, 0.8, 0.7),)),
    "contrast of logits": Setting(Beam(3, n=2), UNLIKE, seeded=False, mixes=(
        Contrast(Voice((9, 4), OTHER), 0.02, 0.5, form="logits"),)),
    "experts": Setting(Sample(2), WARM, mixes=(Experts(OTHERS, AGAIN, 1.2, 0.95),)),
    "dola": Setting(Sample(), WARM, mixes=(DOLA,)),
    "ensemble": Setting(Sample(), UNLIKE, mixes=(ENSEMBLE,)),
    "product beam": Setting(BeamSample(3, n=2), seeded=True, mixes=(
        Ensemble((2.0, 1.0, 0.5), (OTHERS, AGAIN), "log"),)),
    "attribute": Setting(Sample(), WARM, mixes=(Attribute(BAG, 2.0, 12),)),
    "boost": Setting(Sample(), (LATE, top_k(12)), mixes=(BOOST,)),
    "log-probabilities": Setting(Beam(3, n=3), COUNTING, seeded=False,
                                 mixes=(LogProbabilities(),)),
    "all, contrastive": Setting(Contrastive(3, 0.5), UNLIKE, seeded=False,
                                mixes=(ENSEMBLE, DOLA, GUIDANCE, Attribute(BAG), BOOST)),
    "all, gated": Setting(Gated(3, 3.2, 3, 4), WARM, mixes=(DOLA, GUIDANCE, BOOST), seeded=None),
}

FALLING = temperature(ramp(1.5, 0.4, 8))
SCHEDULED = {
    "sample, falling": Setting(Sample(), (FALLING, top_p(jumps((0, 0.95), (5, 0.7))))),
    "beam, narrowing": Setting(Scheduled(Beam(4, n=2), (("width", jumps((0, 4), (6, 2))),)),
                               (FALLING,), seeded=False),
    "contrastive, falling": Setting(
        Scheduled(Contrastive(4, 0.6), (("alpha", ramp(0.6, 0.0, 6)), ("k", ramp(4, 2, 8)))),
        seeded=False),
    "guided, rising": Setting(Sample(), (FALLING,), mixes=(Guidance(ramp(1.0, 2.5, 9), ASIDE),)),
    "ensemble, turning": Setting(Beam(3, n=2), seeded=False, mixes=(
        Ensemble((ramp(1, 0, 8), Schedule(((0, 0.0), (8, 1.0)))), (OTHERS,)),)),
}

BEAM = Stage(Beam(3, n=3, longest=NEW))
TWO_DIGITS = Found("[0-9]{2}", piece)
PROGRAMS = {
    "beam >> sample": program(BEAM, Stage(Sample(2)), ends=[Tokens(5)],
                              rules=(*WARM, mirostat_2(3.0, 0.3))),
    "samples >> beam": program(Stage(Sample(3)), Stage(Beam(3, n=2), takes=3), ends=[Tokens(4)],
                               rules=(*COUNTING, *WARM)),
    "samples >> sample": program(Stage(Sample(3)), Stage(Sample()), ends=[Tokens(4)], rules=WARM),
    "beam >> mbr": program(BEAM, Stage(MBR(4, ChrF(piece), 2), takes=2), ends=[MaxNew(5, "step")],
                           rules=(repetition_penalty(1.3), *WARM)),
    "beam >> beam": program(BEAM, Stage(Beam(2, n=2), takes=3), ends=[Tokens(6)], seeded=False),
    "sample to text >> beam": program(
        Stage(Sample()), Stage(Beam(3)), ends=[StopStrings(("3", "4", "7"), piece, include=True)],
        rules=WARM),
    "samples to regex >> tree": program(Stage(Sample(2)), Stage(TreeSearch(1, 3, 20), takes=2),
                                        ends=[TWO_DIGITS], rules=WARM),
    "greedy, sure >> sample": program(
        Stage(Sample(), (0, 1, 3), entropy_above=3.4), Stage(Sample(), (0, 1, 2)), ends=[None],
        rules=(LATE, fresh(), FALLING, greedy())),
    "three": program(
        Stage(Sample(3), (0, 1, 4), (0,)), Stage(Contrastive(3, 0.5), (0, 4), (1,), takes=2),
        Stage(StochasticBeam(3), (2, 4, 3), (2, 0), takes=2), ends=[Tokens(3), MaxNew(7, "step")],
        rules=(fresh(), temperature(1.3), repetition_penalty(1.3), FALLING, LATE),
        mixes=(Guidance(ramp(1.0, 2.0, 4), ASIDE), BOOST, Contrast(OTHERS, 0.02))),
    "all searches": program(
        Stage(StochasticBeam(4)), Stage(DiverseBeam(4, n=4, groups=2, penalty=0.5), takes=4),
        Stage(LexicalBeam(3, n=3, longest=NEW, words=(((4,), (9,)),)), takes=3),
        Stage(Gated(3, 3.0, 2, 4, 3), takes=2), Stage(ChainOfThought(2), takes=3),
        ends=[Tokens(2), Tokens(2), Tokens(2), Tokens(2)], rules=(LATE, *COUNTING[:5])),
}
assert END not in (4, 9, 2, 6)
