"""Laws of schedules and programs, held once for each subject."""
from __future__ import annotations

import itertools
from dataclasses import replace

from runs import PROMPTS, Setting, answers, run
from search_laws import alike, texts_of
from searches import ASIDE, BEAM, LATE, PROGRAMS, WARM
from setting import COUNTING, END, program
from subjects import Subject

from unspool.core.schedule import Schedule
from unspool.core.stage import Stage
from unspool.mixes import Guidance
from unspool.rules import temperature, top_k
from unspool.stops.length import MaxNew
from unspool.stops.stage import Tokens
from unspool.stops.tokens import EndTokens
from unspool.strategies import (
    Beam,
    Contrastive,
    DiverseBeam,
    Force,
    Sample,
    Scheduled,
    StochasticBeam,
)

STILL = Schedule(((0, 1.8), (5, 1.8)))


def what_stays_is_plain(subject: Subject) -> None:
    """A schedule of one value is the number."""
    still = replace(STILL, points=((0, 1.2), (4, 1.2)))
    pairs = [
        (Setting(Sample(), (temperature(still), top_k(9))),
         Setting(Sample(), (temperature(1.2), top_k(9)))),
        (Setting(Beam(3, n=3), mixes=(Guidance(STILL, ASIDE),)),
         Setting(Beam(3, n=3), mixes=(Guidance(1.8, ASIDE),))),
        (Setting(Scheduled(Beam(3, n=3), (("width", Schedule(((0, 3.0), (9, 3.0)))),))),
         Setting(Beam(3, n=3))),
        (Setting(Scheduled(Contrastive(3, 0.5), (("alpha", Schedule(((0, 0.5),))),))),
         Setting(Contrastive(3, 0.5)))]
    for scheduled, plain in pairs:
        alike(subject, scheduled, plain, "a schedule that stays")


def programs_reach_every_stage(subject: Subject) -> None:
    """So that the laws of programs say something: every stage of each writes, for some prompt."""
    for name, setting in PROGRAMS.items():
        wrote: set[int] = set()
        for prompt in PROMPTS:
            [job] = run(subject, setting.request(prompt))
            wrote |= {stage for branch in job.branches for stage, _ in branch.watch[-1]}
        assert wrote == set(range(len(setting.program))), f"{name}: only stages {wrote} wrote"


def a_program_begins_as_its_first_stage(subject: Subject) -> None:
    """The first k tokens of `beam@k >> ...` are those of the beam with k new tokens, and so with
    every strategy; what ended before k is the answer, or goes on the same way."""
    for strategy, k in itertools.product(
            (Beam(3, n=3), Sample(), DiverseBeam(4, n=4, groups=2, penalty=1.0), StochasticBeam(3),
             Contrastive(3, 0.5)), (1, 5)):
        alone = Setting(strategy, COUNTING[:3], (EndTokens(frozenset({END})), MaxNew(k)))
        both = program(Stage(strategy), Stage(Sample()), ends=[Tokens(k)], rules=COUNTING[:3])
        for prompt in PROMPTS:
            [first] = run(subject, alone.request(prompt))
            [whole] = run(subject, both.request(prompt))
            (best, _), *_ = first.strategy.ranked(first)
            [text] = texts_of(whole)
            assert text[:k] == best.tokens, f"{strategy}: the first {k} tokens are others"
            if best.ended.reason == "stop":
                assert text == best.tokens, f"{strategy}: a text that had ended went on"


def a_stage_is_the_strategy_on_that_text(subject: Subject) -> None:
    """What the second stage writes is what it writes after the first one's text, given as a
    prompt: for rules that look at no text, and noise by the place in the text."""
    for first, then in ((Beam(3), Sample()), (Sample(), Beam(3, n=3)),
                        (Force((4, 9, 2, 3)), Sample()), (Beam(2), Contrastive(3, 0.5))):
        setting = program(Stage(first), Stage(then), ends=[Tokens(4)], rules=WARM[1:])
        for prompt in PROMPTS:
            [job] = run(subject, setting.request(prompt))
            (text, _, _), *_ = answers(job)
            if job.branches[0].stage == 0 or len(text) < 5:
                continue
            after = Setting(then, WARM[1:], (EndTokens(frozenset({END})), MaxNew(8)))
            [alone] = run(subject, after.request((*prompt, *text[:4])))
            assert text[4:] == texts_of(alone)[0], f"{first} >> {then}: another text"


def a_beam_in_two_parts_is_defined(subject: Subject) -> None:
    """`beam@5 >> beam` that takes all texts is the beam, while none has ended."""
    late = Setting(Beam(3, n=3), (LATE,), (EndTokens(frozenset({END})), MaxNew(8)))
    both = program(BEAM, replace(BEAM, takes=3), ends=[Tokens(5)], rules=(LATE,))
    both = replace(both, stops=(EndTokens(frozenset({END})), MaxNew(8), both.stops[-1]))
    alike(subject, both, late, "a beam in two parts")
    alike(subject, replace(both, strategy=Sample(2), program=(
        Stage(Sample(2)), Stage(Sample(2), takes=2))), replace(late, strategy=Sample(2)),
        "samples in two parts")


def a_text_that_ended_stays(subject: Subject) -> None:
    """The best text of a stage has really ended: it is the answer, or stands beside the others."""
    stops = (EndTokens(frozenset(range(12))), MaxNew(12))
    for strategy, n in ((Sample(3), 3), (Beam(4, n=4), 4), (Contrastive(3, 0.6), 1)):
        setting = program(Stage(strategy), Stage(Sample(), takes=n), ends=[Tokens(3)], rules=WARM)
        setting = replace(setting, stops=(*stops, setting.stops[-1]))
        over = 0
        for prompt, seed in itertools.product(PROMPTS, range(4)):
            [first] = run(subject, replace(setting, program=(), stops=(
                stops[0], MaxNew(3))).request(prompt, seed))
            [job] = run(subject, setting.request(prompt, seed))
            done = [b.tokens for b, _ in first.strategy.ranked(first) if b.ended.reason == "stop"]
            kept = [b.tokens for b in job.branches if len(b.watch[-1]) <= 3]
            assert kept == done, f"{strategy}: what had ended is not what stays"
            over += len(done)
        assert over, f"{strategy}: no text had ended"


PROGRAMMED = (what_stays_is_plain, programs_reach_every_stage, a_program_begins_as_its_first_stage,
              a_stage_is_the_strategy_on_that_text, a_beam_in_two_parts_is_defined,
              a_text_that_ended_stays)
