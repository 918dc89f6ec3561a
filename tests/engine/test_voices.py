"""Several readers of one text: their rows in the same step, whatever the chunks, the memory, the
draft; a voice that fails, is closed, or reads in another thread; leases in both models."""
import threading
from dataclasses import dataclass, field

import numpy as np
import pytest
from models_zoo import Held, logits, span, tiny

from unspool.core.branch import Ended
from unspool.core.job import Job
from unspool.core.request import Request
from unspool.core.sockets import Voice
from unspool.core.stage import Stage
from unspool.engine.engine import Engine
from unspool.engine.runner import OWN, Runner
from unspool.engine.scheduler import Scheduler
from unspool.engine.voices import turns_of
from unspool.memories import MEMORIES, Dense
from unspool.rules import greedy, temperature
from unspool.stops.length import MaxNew
from unspool.stops.stage import EndOfStage, Tokens
from unspool.strategies import Beam, Sample

VOCAB, STEPS = 24, 200
MODEL, OTHER = (tiny(vocab_size=VOCAB, seed=seed) for seed in (0, 3))
LONG, SHORT = tuple(i * 7 % VOCAB for i in range(40)), (3, 1, 2)


@dataclass(frozen=True)
class Noted:
    """A mix that adds the rows of its voices to the own row, and notes what it heard."""

    voices: tuple
    layers: tuple = ()
    reads_text: bool = True
    heard: list = field(default_factory=list, compare=False)

    def blend(self, heard):
        rows = [np.array(rows) for rows in (heard.own, *heard.others)]
        self.heard.append((rows, {j: np.array(r) for j, r in heard.inner.items()}, heard.texts))
        return sum(rows)


class Broken:
    """The other model, whose forward fails for a text of so many tokens, or after it was closed."""

    def __init__(self, length=0, model=OTHER):
        self.model, self.length, self.closed = model, length, False
        for name in ("vocab", "context", "fingerprint", "numerics", "device", "notes",
                     "remembers", "layers", "width", "tied"):
            setattr(self, name, getattr(model, name))

    def score(self, spans):
        if self.closed or any(s.start + len(s.tokens) == self.length for s in spans):
            raise RuntimeError("this model is broken")
        return self.model.score(spans)

    def close(self):
        self.closed = True


LIKELIEST = (greedy(),)


def request(mix=None, prompt=SHORT, new=8, strategy=None, rules=LIKELIEST, **fields):
    return Request(tuple(prompt), strategy or Sample(), rules, (MaxNew(new),), seed=5,
                   mixes=() if mix is None else (mix,), **fields)


def finish(engine, steps=STEPS):
    for _ in range(steps):
        if not engine.jobs:
            return
        engine.step()
    raise AssertionError(f"more than {steps} steps")


def run(asked, memory="dense", chunk=512):
    engine = Engine(MODEL, MEMORIES[memory](MODEL.context), Scheduler(chunk=chunk))
    job = engine.add(asked)
    finish(engine)
    assert job.error is None
    return job


def held(runner):
    buffers = getattr(runner.memory, "buffers", {})
    return len(runner.held) + sum(buffer.held for buffer in buffers.values())


def greedy_text(mixed, prompt, new):
    """The likeliest tokens of the summed rows, by whole forwards."""
    text = []
    for _ in range(new):
        rows = sum(logits(model, [*begins, *text])[-1] for model, begins in mixed)
        text.append(int(rows.argmax()))
    return text


# ── the rows ─────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("memory", list(MEMORIES))
@pytest.mark.parametrize("chunk", [1, 7, 64])
@pytest.mark.parametrize(("own", "aside"), [(SHORT, LONG), (LONG, SHORT), (LONG, LONG[:25])])
def test_every_voice_has_its_own_rows_in_any_chunk_and_memory(own, aside, chunk, memory):
    other = Runner(OTHER, MEMORIES[memory](OTHER.context))
    mix = Noted((Voice(aside), Voice(model=other), Voice(aside, other)), layers=(1,))
    job = run(request(mix, own), memory, chunk)
    [(branch, _)] = job.strategy.ranked(job)
    readers = [(MODEL, own), (MODEL, aside), (OTHER, own), (OTHER, aside)]
    assert branch.tokens == greedy_text(readers, own, 8)
    assert len(mix.heard) == 8
    for i, (rows, inner, texts) in enumerate(mix.heard):
        text = branch.tokens[:i]
        for (model, begins), row in zip(readers, rows, strict=True):
            assert row == pytest.approx(logits(model, [*begins, *text])[-1:].numpy(), abs=1e-9)
        whole = span([*own, *text], rows=1)
        whole.layers = (1,)
        want = MODEL.score([whole]).inner(0, 1)
        assert inner[1] == pytest.approx(np.array(want), abs=1e-9) and texts == [[*own, *text]]
    if memory != "none":
        assert job.usage.computed == sum(len(begins) + 7 for _, begins in readers)


@pytest.mark.parametrize("chunk", [3, 7, 64])
def test_a_forward_reads_at_most_a_chunk_of_all_voices_prompts(chunk):
    runner, other = Runner(MODEL, Dense()), Runner(OTHER, Dense())
    job = Job(request(Noted((Voice(LONG), Voice(LONG[:11], other)))))
    [branch] = job.branches
    read = dict.fromkeys((OWN, 0, 1), 0)
    for _ in range(STEPS):
        turns = turns_of(runner, job, [branch], chunk)
        assert turns and sum(turn.upto - turn.start for turn in turns) <= max(chunk, 3)
        for turn in turns:
            assert turn.start == read[turn.voice]  # nothing is read twice, nothing left out
            read[turn.voice] = turn.upto
        for each in (runner, other):
            mine = [turn for turn in turns if turn.runner is each]
            if mine:
                each.score(mine)
        if any(turn.scored for turn in turns):
            assert all(turn.scored for turn in turns) and len(turns) == 3
            break
    assert read == {OWN: 3, 0: 40, 1: 11} and job.usage.computed == 54


class Knows:
    """A drafter that guesses this text, wrong at every third token."""

    def __init__(self, text):
        self.text = text

    def guess(self, branch):
        done = branch.written
        return [(t + (i % 3 == 2)) % VOCAB for i, t in enumerate(self.text)][done:done + 4]


@pytest.mark.parametrize("memory", list(MEMORIES))
def test_every_voice_reads_every_slot_of_a_draft(memory):
    def asked(**fields):
        other = Runner(OTHER, MEMORIES[memory](OTHER.context))
        return request(Noted((Voice(LONG), Voice(model=other))), new=12, **fields)

    plain = run(asked(), memory)
    text = plain.branches[0].tokens
    drafted = asked(drafter=Knows(text))
    job = run(drafted, memory)
    assert job.branches[0].tokens == text and job.usage.accepted
    assert job.usage.forwards < plain.usage.forwards
    assert job.branches[0].score == pytest.approx(plain.branches[0].score, abs=1e-9)
    assert max(len(rows[0]) for rows, _, _ in drafted.mixes[0].heard) == 5
    assert all(len(row) == len(rows[0]) == len(texts)
               for rows, _, texts in drafted.mixes[0].heard for row in rows)


def test_a_voice_that_is_not_in_force_is_not_read():
    other = Runner(OTHER, Dense())
    mix = Noted((Voice(model=other),))
    stages = (Stage(Sample(), mixes=()), Stage(Sample()), Stage(Sample(), mixes=()))
    stops = tuple(EndOfStage(i, Tokens(3)) for i in range(2))
    asked = request(mix, new=9, program=stages)
    job = run(Request(**{**{f: getattr(asked, f) for f in asked.__slots__},
                         "stops": (*asked.stops, *stops)}))
    assert len(mix.heard) == 3 and other.forwards == 3
    assert job.usage.computed == (len(SHORT) + 8) + (len(SHORT) + 5)


# ── leases ───────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("memory", ["dense", "full"])
def test_dead_branches_hold_nothing_in_either_model(memory):
    other = Runner(OTHER, MEMORIES[memory](OTHER.context))
    engine = Engine(MODEL, MEMORIES[memory](MODEL.context))
    job = engine.add(request(Noted((Voice(LONG), Voice(model=other))), strategy=Beam(4, n=4),
                             rules=(temperature(0.9),)))
    for _ in range(STEPS):
        if not engine.jobs:
            break
        engine.step()
        live = set(job.live)
        assert set(engine.runner.held) <= live and set(other.held) <= live
    assert job.error is None and other.forwards == engine.runner.forwards == 8
    assert held(engine.runner) == held(other) == 0 and not engine.readers


@pytest.mark.parametrize("after", [1, 2, 5])
def test_a_cancelled_request_holds_nothing(after):
    """Also one whose prompts are half read, of which one voice still waits."""
    engine, other = Engine(MODEL, Dense(), Scheduler(chunk=8)), Runner(OTHER, Dense())
    job = engine.add(request(Noted((Voice(LONG, other),)), LONG))
    for _ in range(after):
        engine.step()
    job.end(Ended("cancelled"))
    engine.step()
    assert held(engine.runner) == held(other) == 0 and not engine.readers and not engine.jobs


def test_an_engine_that_is_closed_gives_the_other_model_its_leases_back():
    engine, other = Engine(tiny(vocab_size=VOCAB), Dense()), Runner(OTHER, Dense())
    engine.add(request(Noted((Voice(model=other),))))
    engine.step()
    assert held(other)
    engine.close()
    assert not held(other)


def test_the_other_models_own_engine_leaves_our_leases_alone():
    """It answers requests of its own and is not told of ours."""
    theirs, ours = Engine(OTHER, Dense()), Engine(MODEL, Dense())
    job = ours.add(request(Noted((Voice(LONG, theirs.runner),))))
    ours.step()
    assert list(theirs.runner.held) == job.branches
    theirs.add(request())
    finish(theirs)
    assert list(theirs.runner.held) == job.branches
    finish(ours)
    assert job.error is None and held(theirs.runner) == held(ours.runner) == 0


# ── faults ───────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("new", [2, 6])
def test_a_voice_that_fails_ends_its_own_request_alone(new):
    """At its prompt, or in the middle of the text; the others go on, also those it speaks in."""
    broken = Runner(Broken(len(LONG) + new - 2), Dense())
    engine = Engine(MODEL, Dense())
    bad = engine.add(request(Noted((Voice(LONG, broken),))))
    fine = engine.add(request(Noted((Voice(SHORT, broken),))))
    plain = engine.add(request())
    finish(engine)
    assert isinstance(bad.error, RuntimeError) and bad.branches[0].written == new - 2
    assert fine.error is None and plain.error is None
    assert fine.branches[0].tokens == greedy_text([(MODEL, SHORT), (OTHER, SHORT)], SHORT, 8)
    assert plain.branches[0].tokens == greedy_text([(MODEL, SHORT)], SHORT, 8)
    assert held(engine.runner) == held(broken) == 0 and not engine.readers


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_voice_that_was_closed_is_an_error_and_no_more(after):
    engine, partner = Engine(MODEL, Dense()), Engine(Broken(), Dense())
    job = engine.add(request(Noted((Voice(model=partner.runner),))))
    other = engine.add(request())
    for _ in range(after):
        engine.step()
    partner.close()
    finish(engine)
    assert isinstance(job.error, RuntimeError) and other.error is None
    assert job.branches[0].written == after
    assert held(engine.runner) == held(partner.runner) == 0


def test_a_mix_that_raises_ends_its_own_request_alone():
    class Raises(Noted):
        def blend(self, heard):
            if len(heard.texts[0]) == 5:
                raise ValueError("a mix of a user's own")
            return Noted.blend(self, heard)

    engine = Engine(MODEL, Dense())
    bad, fine = engine.add(request(Raises((Voice(LONG),)))), engine.add(request())
    finish(engine)
    assert isinstance(bad.error, ValueError) and fine.error is None
    assert held(engine.runner) == 0


@pytest.mark.timeout(120)
def test_two_models_that_are_voices_of_each_other_in_two_threads():
    """No deadlock, no row of another text, nothing held in the end."""
    engines = [Engine(model, Dense(256), Scheduler(chunk=8)) for model in (MODEL, OTHER)]
    jobs, faults = [[], []], []

    def write(mine):
        other, readers = engines[1 - mine], [MODEL, OTHER][::(-1) ** mine]
        try:
            for i in range(6):
                prompt, aside = LONG[i:i + 3 + 4 * i], LONG[20 - i:22 + i]
                made = [engines[mine].add(request(Noted((Voice(aside, other.runner),)), prompt)),
                        engines[mine].add(request(None, aside, strategy=Beam(3)))]
                finish(engines[mine])
                jobs[mine].append((made[0], [(readers[0], prompt), (readers[1], aside)]))
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=write, args=(i,), daemon=True) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert not any(thread.is_alive() for thread in threads), "they wait for each other"
    assert not faults and list(map(len, jobs)) == [6, 6]
    for job, readers in jobs[0] + jobs[1]:
        assert job.error is None
        assert job.branches[0].tokens == greedy_text(readers, (), 8)
    assert all(held(engine.runner) == 0 and not engine.readers for engine in engines)


def test_a_lease_is_of_one_voice():
    """The voices of one branch with the same model and the same text do not share a store."""
    runner = Runner(MODEL, Dense())
    job = Job(request(Noted((Voice(), Voice()))))
    turns = turns_of(runner, job, job.branches, 512)
    runner.score(turns)
    stores = {id(lease.store) for _, lease, _ in runner.held[job.branches[0]].values()}
    assert len(turns) == len(stores) == 3 and Held().store is None
