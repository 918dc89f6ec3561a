"""The composition table: every strategy beside everything that a request may have, each pair held
by a law on a compiled model. `scripts/composition.py` prints it."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from math import exp

import laws
from runs import EVERY, answers, run, same
from searches import BAG, BOOST, DOLA, ENSEMBLE, GUIDANCE, WARM, WORDS, piece, two_phases
from searches import OTHERS as AMATEUR
from setting import CHOSEN, COUNTING, END, NEW, ONE_OF, PROMPTS, STOPS, TEXTS, Setting, program
from stream_laws import commits_join
from subjects import Subject

from unspool.core.errors import ParameterError
from unspool.core.prefix import Candidate
from unspool.core.schedule import jumps
from unspool.core.slot import Reading
from unspool.core.sockets import Voice
from unspool.core.stage import Stage
from unspool.llm.facts import Facts, Partner
from unspool.llm.resolve import resolve
from unspool.memories import MEMORIES
from unspool.mixes import Attribute, ContextAware, Contrast, Ensemble, Experts, LogProbabilities
from unspool.rules import constrain, mirostat_2, temperature
from unspool.scorers import ChrF, Number
from unspool.stops.confidence import Confidence
from unspool.stops.length import MaxNew, MaxTime
from unspool.stops.repetition import Repetition
from unspool.stops.stage import Tokens
from unspool.stops.text import StopStrings
from unspool.stops.tokens import EndTokens, StopTokens
from unspool.strategies import (
    MBR,
    Beam,
    BeamSample,
    BestOf,
    ChainOfThought,
    Contrastive,
    DiverseBeam,
    Force,
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

BEAM, ASIDE = Beam(3, n=2, longest=NEW), Voice((7,))
ROWS: dict[str, Setting] = {
    "sample": Setting(Sample()),
    "sample, n=2": Setting(Sample(2)),
    "beam": Setting(BEAM, seeded=False),
    "beam_sample": Setting(BeamSample(3, n=2), seeded=None),
    "diverse_beam": Setting(DiverseBeam(4, n=2, groups=2, penalty=0.7), seeded=False),
    "sibling_beam": Setting(SiblingBeam(3, n=2, rate=0.5), seeded=False),
    "stochastic_beam": Setting(StochasticBeam(3), seeded=None),
    "lexical_beam": Setting(LexicalBeam(4, n=2, longest=NEW, words=WORDS), seeded=False),
    "contrastive": Setting(Contrastive(3, 0.6), seeded=False),
    "tree": Setting(TreeSearch(1, 3, 16, n=2), seeded=False),
    "best_of": Setting(BestOf(3, 2), seeded=None),
    "self_consistency": Setting(SelfConsistency(3, Number(piece), 2), seeded=None),
    "mbr": Setting(MBR(3, ChrF(piece), 2), seeded=None),
    "gated": Setting(Gated(3, 3.4, 4, 3, 2), seeded=None),
    "cot": Setting(ChainOfThought(3, 2), seeded=False),
    "forced text": Setting(Force((4, 9, 2)), stops=(MaxNew(3),), seeded=False),
    "story": Setting(Story(two_phases, Reading(top=3, pick=False)), seeded=False),
    "beam, width 4 then 2": Setting(
        Scheduled(Beam(4, n=2), (("width", jumps((0, 4), (5, 2))),)), seeded=False),
    "beam >> sample": program(Stage(BEAM), Stage(Sample()), ends=[Tokens(4)], seeded=None),
    "sample, n=3 >> beam": program(
        Stage(Sample(3)), Stage(BEAM, takes=3), ends=[Tokens(4)], seeded=None),
}
Law = Callable[[Subject, str], None]
Change = Callable[[Setting], Setting]


def stopped(*stops: object) -> Change:
    """Another end before the usual ones."""
    return lambda s: replace(s, stops=(*stops, *s.stops))


def shaped(*rules: object) -> Change:
    return lambda s: replace(s, rules=(*rules, *s.rules))


def mixed(mix: object) -> Change:
    return lambda s: replace(s, mixes=(mix,))


def chosen(s: Setting) -> Setting:
    """One of a few texts. A program keeps what ends its stages."""
    marks = tuple(stop for stop in s.stops if stop not in STOPS)
    return replace(s, rules=(constrain(data=ONE_OF), *s.rules), stops=(*CHOSEN, *marks))


def as_it_is(s: Setting) -> Setting:
    return s


# ── laws of this table ───────────────────────────────────────────────────────────────────────────
def memory(name: str) -> Law:
    def memory_changes_nothing(subject: Subject, setting: str) -> None:
        [plain] = run(subject, EVERY[setting].request(), memory="none")
        [other] = run(subject, EVERY[setting].request(), memory=name)
        same(subject, plain, other, f"memory {name}")

    return memory_changes_nothing


def a_text_is_one_of_the_choices(subject: Subject, name: str) -> None:
    [job] = run(subject, EVERY[name].request())
    for tokens, _, _ in answers(job):
        written = [token for token in tokens if token != END]
        assert any(text[:len(written)] == written for text in TEXTS), written
    laws.score_is_true(subject, name)


def ends_at(cause: Callable[[list[Candidate]], bool]) -> Law:
    """A text ends where `cause` of its tokens is true first, in a batch as alone."""

    def it_ends_there_and_not_before(subject: Subject, name: str) -> None:
        [job] = run(subject, EVERY[name].request())
        for branch, _ in job.strategy.ranked(job):
            places = [i for i in range(1, branch.written + 1) if cause(branch.facts[:i])]
            assert branch.ended is not None and places in ([], [branch.written])
        laws.together_is_alone(subject, name)

    return it_ends_there_and_not_before


def one_of(*tokens: int) -> Callable[[list[Candidate]], bool]:
    return lambda facts: facts[-1].token in tokens


def turns_round(facts: list[Candidate]) -> bool:
    text = [fact.token for fact in facts]
    return any(text[-size:] == text[-2 * size:-size] for size in (1, 2, 3))


def as_many_answers_as_asked(subject: Subject, name: str) -> None:
    setting = EVERY[name]
    last = setting.program[-1].strategy if setting.program else setting.strategy
    last = getattr(last, "strategy", last)
    asked = {Story: 3, StochasticBeam: 3}.get(type(last)) or getattr(last, "n", 1)
    [job] = run(subject, setting.request())
    found = [tuple(tokens) for tokens, _, _ in answers(job)]
    assert len(set(found)) == len(found), "an answer comes twice"
    # Votes give no more answers than there are different ones, and a path given up gives none.
    fewer = isinstance(last, SelfConsistency | Gated)
    assert len(found) == asked or (fewer and 0 < len(found) < asked)
    laws.score_is_true(subject, name)


Columns = dict[str, tuple[Change, Law]]
RUNNING: Columns = {
    "batch": (as_it_is, laws.together_is_alone),
    "prompt in chunks": (as_it_is, laws.chunked_is_whole),
    **{f"memory {name}": (as_it_is, memory(name)) for name in MEMORIES},
    "streaming": (as_it_is, commits_join),
    "logprobs": (as_it_is, laws.score_is_true),
    "n": (as_it_is, as_many_answers_as_asked),
    "seeds": (as_it_is, laws.same_seed_same_text),
    "drafts": (as_it_is, laws.drafted_is_plain),
}
ENDING: Columns = {
    "end tokens": (stopped(EndTokens(frozenset({END, 3, 8}))), ends_at(one_of(END, 3, 8))),
    "token ids": (stopped(StopTokens(frozenset({3, 8}))), ends_at(one_of(END, 3, 8))),
    "strings": (stopped(StopStrings(("3", "8"), piece)), ends_at(one_of(END, 3, 8))),
    "length": (stopped(MaxNew(5)), ends_at(lambda facts: len(facts) == 5)),
    "time": (lambda s: replace(s, stops=(MaxTime(40.0, count().__next__), *s.stops)),
             memory("dense")),
    "repetition": (stopped(Repetition(3, 1, 2)), ends_at(turns_round)),
    "confidence": (stopped(Confidence(0.1)),
                   ends_at(lambda facts: exp(facts[-1].peak) < 0.1)),
    "choice complete": (chosen, ends_at(
        lambda facts: [fact.token for fact in facts] in TEXTS)),
}
SHAPING: Columns = {
    "rules with state": (shaped(*COUNTING, mirostat_2(4.0, 0.2)), laws.score_is_true),
    "schedule": (shaped(temperature(jumps((0, 1.3), (4, 0.8)))), laws.score_is_true),
    "choice": (chosen, a_text_is_one_of_the_choices),
    "guidance": (mixed(GUIDANCE), laws.score_is_true),
    "context": (mixed(ContextAware(0.7, ASIDE)), laws.score_is_true),
    "contrast": (mixed(Contrast(AMATEUR, 0.05, 0.8)), laws.score_is_true),
    "experts": (mixed(Experts(AMATEUR, ASIDE, 1.2, 0.95)), laws.score_is_true),
    "dola": (mixed(DOLA), laws.score_is_true),
    "ensemble": (mixed(ENSEMBLE), laws.score_is_true),
    "product": (mixed(Ensemble((2.0, 1.0), (AMATEUR,), "log")), laws.score_is_true),
    "attribute": (mixed(Attribute(BAG, 2.0, 12)), laws.score_is_true),
    "log-probabilities": (mixed(LogProbabilities()), laws.score_is_true),
    "boost": (mixed(BOOST), laws.score_is_true),
}
TABLES = {"How it runs": RUNNING, "What ends a text": ENDING, "What shapes it": SHAPING}
CELL = "composed"  # the name that a cell's setting has among those of the laws


def cell(subject: Subject, row: str, change: Change, law: Law) -> tuple[int, int] | str:
    """(tokens, forwards) of a pair that its law holds for, or the reason that the program says."""
    EVERY[CELL] = setting = change(ROWS[row])
    try:
        if isinstance(setting.strategy, Force) and change is not chosen:
            [own] = run(subject, replace(setting, strategy=Sample()).request())
            EVERY[CELL] = replace(setting, strategy=Force(tuple(answers(own)[0][0])))
        [job] = run(subject, EVERY[CELL].request())
        law(subject, CELL)
    except AssertionError as error:
        cause = error.__context__ or error
        refused = [job.error for job in engine_errors(subject)]
        if refused and isinstance(refused[0], ParameterError):
            return str(refused[0])
        raise AssertionError(f"{row}, {law.__name__}: {cause}") from error
    finally:
        del EVERY[CELL]
    return sum(len(tokens) for tokens, _, _ in answers(job)), job.usage.forwards


def engine_errors(subject: Subject):
    """The job of the last cell again, to see what ended it."""
    from runs import filled

    from unspool.engine.engine import Engine
    from unspool.engine.runner import Runner
    from unspool.memories import Dense

    engine = Engine(subject.model(), Dense())
    job = engine.add(filled(EVERY[CELL].request(), Runner(subject.other, Dense())))
    for _ in range(200):
        if engine.jobs:
            engine.step()
    return [job] if job.error is not None else []


def refusals() -> Iterator[tuple[str, str]]:
    """What a caller may ask for and the program refuses, with the reason it prints."""
    asked = [
        {"penalty_alpha": 0.6},
        {"strategy": "contrastive", "n": 2},
        {"strategy": "mbr:4,utility=states"},
        {"strategy": "beam:4", "coverage_penalty": 0.2},
        {"strategy": "beam:4", "temperature": 0.0},
        {"strategy": "beam:4", "watermark": {"kind": "gumbel"}},
        {"strategy": "beam:4", "xtc_probability": 0.5},
        {"dola_layers": "low"},
        {"amateur_model": "tiny"},
        {"expert_model": "a", "anti_expert_model": "b"},
        {"num_beams": 4, "must_contain": [[4, 9, 2]], "max_new_tokens": 2},
    ]
    tiny = Facts("this model", "reference", 24, 4096, None, frozenset({END}),
                 partner=lambda name, value: Partner(Facts(value, "reference", 30, 4096), None))
    for params in asked:
        try:
            resolve(tiny, [1, 2], params)
        except ParameterError as error:
            yield ", ".join(f"{k}={v!r}" for k, v in params.items()), str(error)
        else:
            raise AssertionError(f"{params} is not refused")


__all__ = ["PROMPTS", "ROWS", "TABLES", "WARM", "cell", "refusals"]
