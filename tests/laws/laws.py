"""The laws: what must hold for every strategy with every memory, on tiny models in float64.

Each law is a function that raises AssertionError. Equal means the same tokens and scores within
1e-9. Every run has a step limit, and must have written something. `faults.py` plants faults and
shows which laws catch them.
"""
from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import engine_zoo
import numpy as np
from models_zoo import tiny

from unspool.core.branch import Ended
from unspool.core.events import Commit, Provisional, Revoke
from unspool.core.job import Job
from unspool.core.request import Request
from unspool.core.sockets import Span
from unspool.engine.engine import Engine
from unspool.engine.scheduler import Scheduler
from unspool.engine.shape import shape
from unspool.memories import MEMORIES, Nothing
from unspool.memories.none import Blank
from unspool.rules import greedy, rule, temperature, top_k, top_p
from unspool.stops.length import MaxNew
from unspool.stops.tokens import EndTokens
from unspool.strategies import Beam, Force, Sample

STEPS = engine_zoo.STEPS
NEW = 12
CLOSE = 1e-9
VOCAB = 24
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
def run(*requests, model=None, **how):
    return engine_zoo.run(model or tiny(vocab_size=VOCAB), *requests, **how)


def answers(job: Job):
    """(tokens, raw sum, score) of every answer, best first."""
    out = [(b.tokens, b.logprob, score) for b, score in job.strategy.ranked(job)]
    assert out and all(tokens for tokens, _, _ in out), "nothing was written"
    return out


def same(one: Job, other: Job, what: str) -> None:
    a, b = answers(one), answers(other)
    assert [x[0] for x in a] == [x[0] for x in b], f"{what}: the texts differ"
    for x, y in zip(a, b, strict=True):
        assert abs(x[1] - y[1]) < CLOSE, f"{what}: the log-probabilities differ"
        assert abs(x[2] - y[2]) < CLOSE, f"{what}: the scores differ"


def truth(model, prompt, text, rules=()):
    """Teacher-forced raw and processed log-probabilities, from one plain forward pass."""
    tokens = [*prompt, *text]
    rows = model.score([Span(Blank(), tokens[:-1], 0, len(text))]).rows().astype(np.float64)
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


# ── the laws ─────────────────────────────────────────────────────────────────────────────────────
def memory_changes_nothing(name: str) -> None:
    setting = EVERY[name]
    [plain] = run(setting.request(), memory="none")
    for memory in MEMORIES:
        [other] = run(setting.request(), memory=memory)
        same(plain, other, f"memory {memory}")
    [alone] = run(setting.request(remember=False))
    same(plain, alone, "a request that remembers nothing")


def together_is_alone(name: str) -> None:
    setting = EVERY[name]
    for prompt in PROMPTS:
        [alone] = run(setting.request(prompt))
        others = [s.request(p, seed=i) for i, (s, p) in
                  enumerate(itertools.product(EVERY.values(), PROMPTS))]
        jobs = run(*others[:9], setting.request(prompt), *others[9:18])
        same(alone, jobs[9], "in a batch")
        jobs = run(setting.request(prompt), joins=others[::5])
        same(alone, jobs[0], "when others join midway")


def chunked_is_whole(name: str) -> None:
    setting = EVERY[name]
    [whole] = run(setting.request(PROMPTS[2]))
    for chunk in (1, 7, 16):
        [job] = run(setting.request(PROMPTS[2]), scheduler=Scheduler(chunk=chunk))
        same(whole, job, f"in chunks of {chunk}")


def warm_is_cold(name: str) -> None:
    """A memory that knows this text, or others that begin alike, changes nothing."""
    setting = EVERY[name]
    model = tiny(vocab_size=VOCAB)
    base = tuple(i * i % 23 for i in range(40))
    memory = MEMORIES["dense"]()
    known = []
    for prompt in (base, (*base[:20], 22, 22), base[:37], (*base[:33], 21, 20, 19, 18), base):
        engine = Engine(model, memory)
        job = engine.add(setting.request(prompt))
        for _ in range(STEPS):
            if not engine.jobs:
                break
            engine.step()
        assert not engine.jobs and job.error is None
        [cold] = run(setting.request(prompt), model=model, memory="none")
        same(cold, job, "with a warm memory")
        known.append(job.usage.cached)
    assert known[0] == 0 and min(known[1:]) >= 20, f"the memory knew {known} tokens"


def score_is_true(name: str) -> None:
    """A reported score is the teacher-forced one, before and after the rules."""
    setting = EVERY[name]
    model = tiny(vocab_size=VOCAB)
    for prompt in PROMPTS[:2]:
        [job] = run(setting.request(prompt), model=model)
        answers(job)
        for branch, _ in job.strategy.ranked(job):
            raw, processed = truth(model, prompt, branch.tokens, setting.rules)
            assert abs(branch.logprob - sum(raw)) < CLOSE, "raw"
            assert abs(branch.score - sum(processed)) < CLOSE, "processed"
            for fact, r in zip(branch.facts, raw, strict=True):
                assert abs(fact.logprob - r) < CLOSE, "raw, of one token"


def drafted_is_plain(name: str) -> None:
    """A draft, right, wrong or random, never changes the text, its scores or why it ended."""
    setting = EVERY[name]
    if not isinstance(setting.strategy, Sample) or setting.strategy.n > 1:
        return
    for prompt, seed in itertools.product(PROMPTS, (0, 5, 9)):
        [plain] = run(setting.request(prompt, seed))
        text = answers(plain)[0][0] + [11, 3, 3]
        for kind in ("right", "wrong", "random"):
            [job] = run(setting.request(prompt, seed, drafter=Script(kind, text)))
            same(plain, job, f"with a {kind} draft")
            assert job.branches[0].ended == plain.branches[0].ended, "the reason differs"
            usage = job.usage
            assert usage.accepted + usage.rejected == usage.drafted
            if kind == "right" and len(text) > 5:
                assert usage.accepted and usage.forwards < plain.usage.forwards
            if kind == "wrong":
                assert usage.accepted == 0


def same_seed_same_text(name: str) -> None:
    """The slot, the neighbours' seeds and the number of choices do not matter; the seed does."""
    setting = EVERY[name]
    [alone] = run(setting.request(seed=7))
    jobs = run(*(setting.request(seed=s) for s in (1, 2, 7, 3)))
    same(alone, jobs[2], "in slot 2")
    if isinstance(setting.strategy, Sample):
        few, many = (run(Setting(Sample(n), setting.rules).request(seed=7))[0] for n in (4, 8))
        assert [a[0] for a in answers(few)] == [a[0] for a in answers(many)[:4]], "n=4 of n=8"
        if setting.rules[:1] != (greedy(),):
            assert len({tuple(a[0]) for a in answers(many)}) == 8, "choices are equal"
            seeds = {tuple(answers(run(setting.request(seed=s))[0])[0][0]) for s in range(6)}
            assert len(seeds) == 6, "seeds are equal"


def commits_join(name: str) -> None:
    """Joined commits are the final tokens; what is provisional is shown, taken back, or final."""
    setting = EVERY[name]
    engine = Engine(tiny(vocab_size=VOCAB), MEMORIES["dense"]())
    job = engine.add(setting.request())
    final: dict[int, list[int]] = {}
    lead: list[int] = []
    for _ in range(STEPS):
        if not engine.jobs:
            break
        for _, events in engine.step():
            for event in events:
                match event:
                    case Commit(choice, tokens):
                        fresh_ids = [t.token for t in tokens]
                        if choice == 0:
                            shown = lead[:len(fresh_ids)]
                            assert shown == fresh_ids[:len(shown)], "another token became final"
                            lead = lead[len(fresh_ids):]
                        final.setdefault(choice, []).extend(fresh_ids)
                    case Provisional(_, tokens):
                        lead += [t.token for t in tokens]
                    case Revoke(_, count):
                        assert count <= len(lead)
                        lead = lead[:len(lead) - count]
    assert not engine.jobs and not lead
    assert [final[i] for i in sorted(final)] == [a[0] for a in answers(job)]


def beam_of_one_is_greedy() -> None:
    for prompt in PROMPTS:
        [beam] = run(Setting(Beam(1)).request(prompt))
        [best] = run(EVERY["greedy"].request(prompt))
        assert answers(beam)[0][0] == answers(best)[0][0]


def wide_beam_is_exhaustive() -> None:
    """A beam that holds every text finds the best ones, in their order."""
    model = tiny(vocab_size=5)
    for penalty, ends in itertools.product((0.0, 1.0, 2.0), (frozenset({4}), frozenset({2, 4}))):
        found = []
        for text in texts(5, 4, ends):
            raw, _ = truth(model, (1, 0), text)
            found.append((sum(raw) / len(text) ** penalty, list(text)))
        found.sort(key=lambda f: -f[0])
        beam = Beam(625, n=5, length_penalty=penalty, early_stopping="never", longest=4,
                    ends=len(ends))
        [job] = run(Setting(beam, stops=(EndTokens(ends), MaxNew(4))).request((1, 0)),
                    model=model, scheduler=Scheduler(rows=625))
        got = answers(job)
        assert [a[0] for a in got] == [t for _, t in found[:5]]
        assert all(abs(a[2] - f[0]) < CLOSE for a, f in zip(got, found, strict=False))


def texts(vocab: int, most: int, ends: frozenset[int], text: tuple[int, ...] = ()):
    if len(text) == most or (text and text[-1] in ends):
        yield text
    else:
        for token in range(vocab):
            yield from texts(vocab, most, ends, (*text, token))


def future_is_hidden() -> None:
    """log p(x) is the sum over its steps, and a later token changes no earlier distribution."""
    model = tiny(vocab_size=VOCAB)
    text = [3, 9, 4, 4, 8, 1, 2]
    [job] = run(Setting(Force(tuple(text)), stops=(MaxNew(7),)).request((6, 2)), model=model)
    total = 0.0
    for i in range(len(text)):
        [step] = run(Setting(Force((text[i],)), stops=(MaxNew(1),)).request((6, 2, *text[:i])),
                     model=model)
        total += answers(step)[0][1]
    assert abs(answers(job)[0][1] - total) < CLOSE
    rows = model.score([Span(Blank(), [6, 2, *text], 0, 9)]).rows()
    for t in range(len(text)):
        other = [6, 2, *text]
        other[2 + t] = (other[2 + t] + 5) % VOCAB
        changed = model.score([Span(Blank(), other, 0, 9)]).rows()
        assert np.abs(changed[:2 + t] - rows[:2 + t]).max() == 0
        assert np.abs(changed[2 + t:] - rows[2 + t:]).max() > 1e-6


def work_is_counted() -> None:
    """The counters show what was computed: no token twice with a memory, many without."""
    jobs = run(*(Setting(Sample(), stops=(MaxNew(24),)).request((*p, i)) for i, p in
                 enumerate((*PROMPTS, PROMPTS[0]))))
    assert all(j.usage.forwards == 24 and j.usage.computed == j.usage.prompt + 23 for j in jobs)
    [plain] = run(Setting(Sample(), stops=(MaxNew(24),)).request(), memory="none")
    assert plain.usage.computed == sum(range(5, 29))


def neighbour_error_harms_nobody() -> None:
    class Broken(MaxNew):
        def after(self, state, branch):
            if branch.written == 3:
                raise RuntimeError("a stop that fails")
            return state, Ended("length") if branch.written > 9 else None

    setting = EVERY["sample"]
    [alone] = run(setting.request())
    engine = Engine(tiny(vocab_size=VOCAB), Nothing())
    job = engine.add(setting.request())
    bad = engine.add(Setting(Sample(), stops=(Broken(9),)).request(PROMPTS[2]))
    for _ in range(STEPS):
        engine.step()
    assert isinstance(bad.error, RuntimeError) and job.error is None
    same(alone, job, "beside a request that fails")


MATRIX = (memory_changes_nothing, together_is_alone, chunked_is_whole, warm_is_cold, score_is_true,
          drafted_is_plain, same_seed_same_text, commits_join)
SINGLE = (beam_of_one_is_greedy, wide_beam_is_exhaustive, future_is_hidden, work_is_counted,
          neighbour_error_harms_nobody)
