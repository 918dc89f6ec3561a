"""The loop: the work it does and no more, faults that stay in their job, leases given back."""
import sys
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import pytest
from models_zoo import cycle, greedy, logits, markov, rand_ids, tiny

from unspool.core.branch import Ended
from unspool.core.edits import Draft, Drop, Extend, Fork, Replace
from unspool.core.errors import ParameterError, RowError
from unspool.core.events import Commit, Finished, Paused, Provisional
from unspool.core.prefix import Candidate
from unspool.core.request import Request
from unspool.engine.engine import Engine
from unspool.engine.scheduler import Scheduler
from unspool.memories import Dense, Nothing
from unspool.rules import RuleValue, rule, temperature
from unspool.rules import greedy as likeliest
from unspool.stops.length import MaxNew
from unspool.stops.tokens import EndTokens
from unspool.strategies import Beam, Force, Sample

VOCAB = 24
MODEL = tiny(vocab_size=VOCAB)
STEPS = 300


class Watched:
    """The real model, and what each of its forwards was asked. It may fail for the prompt that
    begins with `token`."""

    def __init__(self, model=MODEL, fault=None, token=None):
        self.model, self.fault, self.token = model, fault, token
        self.forwards = []
        for name in ("vocab", "context", "fingerprint", "numerics", "device", "notes",
                     "remembers"):
            setattr(self, name, getattr(model, name))

    def score(self, spans):
        self.forwards.append([len(span.tokens) for span in spans])
        bad = [span.start == 0 and span.tokens[0] == self.token for span in spans]
        if self.fault == "score" and any(bad):
            raise RuntimeError("this prompt breaks the forward")
        return Answer(self, spans, self.model.score(spans), bad)

    def close(self):
        self.model.close()


@dataclass
class Answer:
    model: Watched
    spans: list
    scores: object
    bad: list

    def rows(self):
        rows, at = self.scores.rows().copy(), 0
        if self.model.fault == "rows" and any(self.bad):
            raise RuntimeError("this prompt breaks the result")
        for span, bad in zip(self.spans, self.bad, strict=True):
            if bad and self.model.fault in ("nan", "inf"):
                rows[at:at + span.rows, 3] = np.nan if self.model.fault == "nan" else np.inf
            at += span.rows
        return rows


WARM = (temperature(0.9),)


def request(prompt=(1, 2, 3), new=6, strategy=None, rules=WARM, ends=(), **fields):
    stops = (EndTokens(frozenset(ends)), *fields.pop("stops", ()), MaxNew(new))
    return Request(tuple(prompt), strategy or Sample(), rules, stops, **{"seed": 3, **fields})


def finish(engine, steps=STEPS, told=None):
    """Run to the end; the events of each job."""
    told = {} if told is None else told
    for _ in range(steps):
        if not engine.jobs:
            return told
        for job, events in engine.step():
            told.setdefault(id(job), []).extend(events)
    raise AssertionError(f"more than {steps} steps")


def alone(asked, model=MODEL):
    engine = Engine(model, Dense())
    job = engine.add(asked)
    finish(engine)
    return answers(job)


def answers(job):
    out = [(b.tokens, b.logprob, b.score) for b, _ in job.strategy.ranked(job)]
    assert out and all(tokens for tokens, _, _ in out)
    return out


def same(job, want):
    got = answers(job)
    assert [g[0] for g in got] == [w[0] for w in want]
    assert [x for g in got for x in g[1:]] == pytest.approx(
        [x for w in want for x in w[1:]], abs=1e-9)


def idle(engine):
    """Nobody holds anything."""
    held = [b for b in getattr(engine.runner.memory, "buffers", {}).values() if b.held]
    return not engine.runner.held and not held and not engine.jobs and not engine.busy


# ── the work ─────────────────────────────────────────────────────────────────────────────────────
def test_five_prompts_of_24_tokens_take_24_forwards():
    model = Watched()
    engine = Engine(model, Dense())
    prompts = rand_ids(3, 3, 9, 1, 17, 5, vocab=VOCAB)
    jobs = [engine.add(request(p, 24)) for p in prompts]
    finish(engine)
    assert len(model.forwards) == 24 and model.forwards[0] == [3, 9, 1, 17, 5]
    assert model.forwards[1:] == [[1] * 5] * 23
    for job, prompt in zip(jobs, prompts, strict=True):
        assert job.usage.computed == len(prompt) + 24 - 1
        assert (job.usage.forwards, job.usage.cached) == (24, 0)
        same(job, alone(request(prompt, 24)))


def test_without_memory_every_step_reads_the_whole_text():
    engine = Engine(MODEL, Nothing())
    job = engine.add(request(range(5), 10))
    finish(engine)
    assert job.usage.computed == sum(5 + i for i in range(10)) and job.usage.forwards == 10
    same(job, alone(request(range(5), 10)))


def test_samples_of_one_prompt_share_its_first_forward():
    model = Watched()
    engine = Engine(model, Dense())
    job = engine.add(request(range(8), 5, Sample(4), (temperature(2.0),)))
    finish(engine)
    assert model.forwards == [[8], *[[1] * 4] * 4] and job.usage.computed == 8 + 4 * 4
    assert len({tuple(a[0]) for a in answers(job)}) == 4


def test_a_perfect_draft_takes_fewer_forwards_and_counts_add_up():
    [(text, *_)] = alone(request(new=20))
    engine = Engine(MODEL, Dense())
    job = engine.add(request(new=20, drafter=Script(text, 4)))
    finish(engine)
    assert job.branches[0].tokens == text and job.usage.forwards == 5
    usage = job.usage
    assert (usage.drafted, usage.accepted, usage.rejected) == (16, 16, 0)
    assert usage.computed == 3 + 20  # the last token was drafted, so it was read


@dataclass
class Script:
    """Drafts a known text, `size` tokens at a time."""

    text: list
    size: int
    wrong: int = 0

    def guess(self, branch):
        return [t + self.wrong for t in self.text[branch.written:branch.written + self.size]]


def test_a_longer_prompt_that_joins_changes_no_row():
    """Rows as the model gives them, before and after it joins."""
    def rows_of(joins):
        engine = Engine(MODEL, Dense())
        job = engine.add(request(range(4), 10, keep_rows=True))
        rows = []
        for step in range(10):
            if step == joins:
                engine.add(request([5] * 40, 3))
            engine.draft()
            turns = engine.scheduler.admit(engine.jobs, engine.runner)
            engine.read(engine.score(turns, engine.runner), {})
            rows.append(job.slots[job.branches[0]][0].row.raw)
            for other in engine.jobs:
                engine.decide(other)
            engine.settle()
        return np.stack(rows), job.branches[0].tokens

    (rows, tokens), (joined, same_tokens) = rows_of(None), rows_of(4)
    assert tokens == same_tokens and len(rows) == 10
    assert np.abs(rows - joined).max() < 1e-12
    want = logits(MODEL, [*range(4), *tokens])[3:-1].numpy()
    assert np.abs(rows - want).max() < 1e-9


def test_prompts_are_read_in_chunks_beside_texts_that_go_on():
    model = Watched()
    engine = Engine(model, Dense(), Scheduler(chunk=8))
    first = engine.add(request(range(3), 12))
    engine.step()
    long = engine.add(request([7, 5] * 20, 4))
    for written in range(2, 7):
        engine.step()
        assert first.branches[0].written == written  # not one step is lost
    finish(engine)
    assert max(map(sum, model.forwards)) <= 8
    assert long.usage.computed == 40 + 4 - 1
    same(first, alone(request(range(3), 12)))
    same(long, alone(request([7, 5] * 20, 4)))


# ── faults ───────────────────────────────────────────────────────────────────────────────────────
class Boom(Exception):
    pass


def fails(after, state=0):
    """A function to be called so often before it raises."""
    calls = [0]

    def act(*_args):
        calls[0] += 1
        if calls[0] > after:
            raise Boom("on purpose")
        return state

    return act


@dataclass(frozen=True)
class Breaking(Sample):
    act: object = None
    where: str = "decide"

    def decide(self, job, slots):
        if self.where == "decide":
            self.act()
        return super().decide(job, slots)


@dataclass(frozen=True)
class BreakingRanks(Beam):
    act: object = None

    def ranked(self, job):
        self.act()
        return super().ranked(job)


@dataclass
class BreakingStop:
    act: object

    def start(self):
        return 0

    def after(self, state, branch):
        self.act()
        return 0, None


@dataclass
class BreakingDrafter:
    act: object

    def guess(self, branch):
        self.act()
        return [1, 2]


@rule(after=lambda rule, state, token, fact: rule.data())
def raising(rows):
    """A rule whose fold raises."""
    return rows.values


def broken(where):
    if where == "strategy":
        return request(strategy=Breaking(act=fails(2)))
    if where == "ranks":
        return request(strategy=BreakingRanks(2, act=fails(0)))
    if where == "stop":
        return request(stops=(BreakingStop(fails(2)),))
    if where == "first token's stop":
        return request(stops=(BreakingStop(fails(0)),))
    if where == "drafter":
        return request(drafter=BreakingDrafter(fails(1)))
    if where == "fold":
        return request(rules=(raising(data=fails(2)),))
    if where == "number":
        return request(rules=(RuleValue("top_k", ()), temperature(0.9)))  # no number
    return request([13, 4])  # for the faults of the model


PLACES = ["strategy", "ranks", "stop", "first token's stop", "drafter", "fold", "number"]
KIND = {"score": RuntimeError, "rows": RuntimeError, "nan": RowError, "inf": RowError,
        "number": TypeError}


@pytest.mark.parametrize("memory", [Dense, Nothing])
@pytest.mark.parametrize("where", [*PLACES, "score", "rows", "nan", "inf"])
def test_a_fault_ends_its_own_job_and_changes_no_other(where, memory):
    fault = where if where in ("score", "rows", "nan", "inf") else None
    clean = [request((1, 2, 3), 9), request([5] * 7, 9, Beam(3, n=3)),
             request((4, 4), 5, Sample(2), ends=(6,)), request((9, 8), 4, Force((1, 2, 3, 4)))]
    want = [alone(r) for r in clean]
    engine = Engine(Watched(fault=fault, token=13 if fault else None), memory())
    jobs = [engine.add(r) for r in clean[:2]]
    bad = engine.add(broken(where))
    jobs += [engine.add(r) for r in clean[2:]]
    told = finish(engine)
    assert type(bad.error) is KIND.get(where, Boom)
    assert all(b.ended is not None for b in bad.branches)
    if where != "ranks":  # which fails when all has ended
        assert {b.ended.reason for b in bad.branches} == {"error"}
        assert {b.ended.which for b in bad.branches} == {type(bad.error).__name__}
    assert told[id(bad)][-1] == Finished(bad.error)
    for job, answer in zip(jobs, want, strict=True):
        assert job.error is None
        same(job, answer)
        assert told[id(job)][-1] == Finished(None)
    for job in [bad, *jobs]:
        assert sum(isinstance(e, Finished) for e in told[id(job)]) == 1
    assert idle(engine)


@pytest.mark.parametrize("where", [p for p in PLACES if p not in ("number", "ranks")])
def test_what_was_written_before_the_fault_was_told(where):
    engine = Engine(MODEL, Dense())
    job = engine.add(broken(where))
    told = finish(engine)[id(job)]
    tokens = [c for e in told if isinstance(e, Commit) for c in e.tokens]
    assert tokens == job.branches[0].facts
    assert len(tokens) > 0 or where == "first token's stop"


def test_a_strategy_that_cannot_open_raises_to_its_caller_alone():
    class Closed(Sample):
        def open(self, job):
            raise Boom("at the door")

    engine = Engine(MODEL, Dense())
    job = engine.add(request())
    with pytest.raises(Boom):
        engine.add(request(strategy=Closed()))
    finish(engine)
    same(job, alone(request()))


def test_a_fault_in_one_forward_costs_one_forward_for_each():
    model = Watched(fault="score", token=13)
    engine = Engine(model, Dense())
    jobs = [engine.add(request(p)) for p in ((1, 2), (13,), (4, 5, 6))]
    engine.step()
    assert model.forwards == [[2, 1, 3], [2], [1], [3]]
    assert isinstance(jobs[1].error, RuntimeError) and jobs[0].error is jobs[2].error is None
    finish(engine)


def test_a_token_outside_the_vocabulary_harms_nobody_else():
    engine = Engine(MODEL, Dense())
    good, bad = engine.add(request()), engine.add(request((1, VOCAB)))
    finish(engine)
    assert isinstance(bad.error, ParameterError) and f"token {VOCAB} is outside" in str(bad.error)
    same(good, alone(request()))


def elsewhere(edit):
    """A strategy that edits the branches of every job but its own."""
    return lambda engine, job, slots: [
        edit(b) for j in engine.jobs if j is not job for b in j.live]


def here(edit):
    return lambda engine, job, slots: [edit(b) for b in job.live]


FACT = Candidate(1, -1.0, -1.0, 1, -1.0)
GARBAGE = {
    "extends another's": elsewhere(lambda b: Extend(b, FACT)),
    "forks another's": elsewhere(lambda b: Fork(b, FACT)),
    "drafts for another": elsewhere(lambda b: Draft(b, (1, 2))),
    "replaces another's": elsewhere(lambda b: Replace(b, (1,), ())),
    "drops another's": elsewhere(Drop),
    "no edit": here(lambda b: "x"),
    "no list": lambda engine, job, slots: None,
    "edits without end": lambda engine, job, slots: repeat(Extend(job.live[0], FACT)),
    "no candidate": here(lambda b: Extend(b, None)),
    "a cut number": here(lambda b: Extend(b, FACT._replace(token=1.5))),
    "a negative token": here(lambda b: Extend(b, FACT._replace(token=-1))),
    "a token too high": here(lambda b: Extend(b, FACT._replace(token=VOCAB))),
    "a draft of nothing": here(lambda b: Draft(b, None)),
    "a draft of lists": here(lambda b: Draft(b, ([1],))),
    "a draft too long": here(lambda b: Draft(b, (1,) * 10_000)),
    "a draft of unknown tokens": here(lambda b: Draft(b, (VOCAB,))),
    "parents of nothing": here(lambda b: Draft(b, (1, 2), ("x", "y"))),
    "a text too long": here(lambda b: Replace(b, (1,) * 10_000, ())),
    "drops all": here(Drop),
    "never ends": lambda engine, job, slots: (),
    "drafts for ever": here(lambda b: Draft(b, [1])),
    "turns round": here(lambda b: Replace(b, (1, 2), (FACT,))),
    "wants to end the program": lambda engine, job, slots: sys.exit(3),
}


@pytest.mark.parametrize("answer", GARBAGE.values(), ids=GARBAGE.keys())
def test_what_a_strategy_answers_amiss_ends_its_own_job(monkeypatch, answer):
    monkeypatch.setattr("unspool.core.job.PATIENCE", 20)
    monkeypatch.setattr("unspool.core.job.MOST_EDITS", 50)
    engine = Engine(MODEL, Dense())

    class Amiss(Sample):
        def decide(self, job, slots):
            return answer(engine, job, slots)

    first = engine.add(request())
    bad = engine.add(request(strategy=Amiss(), new=30))
    last = engine.add(request((4, 5)))
    told = finish(engine)
    assert bad.error is not None and told[id(bad)][-1] == Finished(bad.error)
    same(first, alone(request()))
    same(last, alone(request((4, 5))))
    assert idle(engine)


# ── drafts at the borders ────────────────────────────────────────────────────────────────────────
def test_a_guess_is_cut_where_the_model_could_not_read_it():
    """At the end of the context, and at an id that does not exist; the text is as without it."""
    model = tiny(vocab_size=VOCAB, max_position_embeddings=12)
    asked = request(range(3), 9, rules=(likeliest(),))
    [(text, *_)] = want = alone(asked, model)
    longest = []

    class Counting(Watched):
        def score(self, spans):
            longest.extend(s.start + len(s.tokens) for s in spans)
            return super().score(spans)

    for script in (Script([*text, 1, 2, 3, 4, 5], 8), Script([*text[:3], VOCAB, *text[4:]], 5),
                   Script([-1] * 9, 3)):
        engine = Engine(Counting(model), Dense())
        job = engine.add(request(range(3), 9, rules=(likeliest(),), drafter=script))
        finish(engine)
        assert job.error is None
        same(job, want)
    assert max(longest) <= 11  # the last of 12 tokens is written, never read


def test_a_wrong_guess_is_never_seen_in_the_text():
    want = alone(request(new=12))
    engine = Engine(MODEL, Dense())
    job = engine.add(request(new=12, drafter=Script([0] * 12, 5)))
    finish(engine)
    same(job, want)
    assert job.usage.rejected > 0


def test_an_end_inside_a_right_draft_ends_the_text():
    model = markov(cycle(12))
    engine = Engine(model, Dense())
    drafter = Script(list(range(1, 12)), 8)
    job = engine.add(request((0,), 20, rules=(likeliest(),), ends=(6,), drafter=drafter))
    finish(engine)
    assert job.branches[0].tokens == [1, 2, 3, 4, 5, 6]
    assert job.branches[0].ended == Ended("stop", 6)
    assert job.usage.accepted == 5


# ── cancel, hold, close ──────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("strategy", [Sample(), Sample(3), Beam(3)], ids=str)
@pytest.mark.parametrize("after", [0, 1, 4])
def test_cancel_gives_the_lease_back_within_two_steps(strategy, after):
    engine = Engine(MODEL, Dense())
    job, other = engine.add(request(new=50, strategy=strategy)), engine.add(request(new=9))
    told = {}
    for _ in range(after):
        for j, events in engine.step():
            told.setdefault(id(j), []).extend(events)
    job.end(Ended("cancelled"))
    for _ in range(2):
        for j, events in engine.step():
            told.setdefault(id(j), []).extend(events)
    assert not any(b in engine.runner.held for b in job.branches)
    assert told[id(job)][-1] == Finished(None) and job not in engine.jobs
    assert {b.ended.reason for b in job.branches} == {"cancelled"}
    finish(engine, told=told)
    same(other, alone(request(new=9)))
    for choice, (branch, _) in enumerate(job.strategy.ranked(job)):
        commits = [c for e in told[id(job)] if isinstance(e, Commit) and e.choice == choice
                   for c in e.tokens]
        assert commits == branch.facts  # also what was provisional until then
    assert idle(engine)


def test_a_held_job_waits_until_it_is_released():
    engine = Engine(MODEL, Dense())
    job = engine.add(request(new=2, held=True))
    [(_, [event])] = engine.step()
    assert event == Paused() and job.ready and not engine.busy
    assert engine.step() == []  # it is said once
    assert engine.runner.forwards == 1
    job.held = False
    [(_, [event])] = engine.step()
    assert isinstance(event, Commit) and not job.ready and engine.busy
    [(_, [event])] = engine.step()
    assert event == Paused()
    job.held = False
    [(_, events)] = engine.step()
    assert [type(e) for e in events] == [Commit, Finished]
    same(job, alone(request(new=2)))
    assert idle(engine)


def test_a_held_job_that_is_cancelled_ends():
    engine = Engine(MODEL, Dense())
    job = engine.add(request(held=True))
    engine.step()
    job.end(Ended("cancelled"))
    assert engine.busy
    assert engine.step() == [(job, [Finished(None)])]
    assert idle(engine)


def test_a_held_job_stops_no_other():
    engine = Engine(MODEL, Dense())
    held, other = engine.add(request(held=True)), engine.add(request())
    for _ in range(8):
        engine.step()
    assert other not in engine.jobs and held in engine.jobs and not engine.busy
    same(other, alone(request()))


@pytest.mark.parametrize("ended", ["stop", "length", "error"])
def test_no_lease_is_held_when_idle(ended):
    engine = Engine(MODEL, Dense())
    [(text, *_)] = alone(request(new=6))
    fields = {"stop": {"ends": (text[2],)}, "length": {}, "error": {"strategy": Breaking(
        act=fails(2))}}[ended]
    job = engine.add(request(new=6, **fields))
    finish(engine)
    assert {b.ended.reason for b in job.branches} == {ended}
    assert idle(engine) and engine.step() == []


def test_close_ends_every_job_and_frees_all():
    model, memory = tiny(vocab_size=VOCAB), Dense()
    engine = Engine(model, memory)
    jobs = [engine.add(request(new=50)), engine.add(request(new=50, strategy=Beam(2)))]
    engine.step()
    engine.close()
    assert all(b.ended.reason == "cancelled" for j in jobs for b in j.branches)
    assert memory.buffers == {} and model.stack == [] and idle(engine)


# ── what is told ─────────────────────────────────────────────────────────────────────────────────
def test_a_search_tells_what_leads_before_it_is_final():
    engine = Engine(MODEL, Dense())
    job = engine.add(request(new=8, strategy=Beam(4, n=2), rules=()))
    told = finish(engine)[id(job)]
    assert any(isinstance(e, Provisional) for e in told)
    for choice, (branch, _) in enumerate(job.strategy.ranked(job)):
        tokens = [c for e in told if isinstance(e, Commit) and e.choice == choice
                  for c in e.tokens]
        assert tokens == branch.facts


def test_greedy_is_the_argmax_of_the_model():
    engine = Engine(MODEL, Dense())
    job = engine.add(request(range(6), 12, rules=(likeliest(),)))
    finish(engine)
    assert job.branches[0].tokens == greedy(MODEL, range(6), 12)
    assert job.branches[0].score == 0.0 and job.branches[0].logprob < 0


def test_rows_are_there_for_those_who_ask():
    engine = Engine(MODEL, Dense())
    job = engine.add(request(new=1, keep_rows=True, held=True, others=3))
    engine.step()
    [slot] = job.slots[job.branches[0]]
    row = logits(MODEL, [1, 2, 3])[-1].numpy()
    assert slot.row.raw == pytest.approx(row)
    assert [i for i, _ in slot.pick.others] == np.argsort(-row)[:3].tolist()
    job.end(Ended("cancelled"))
    finish(engine)
