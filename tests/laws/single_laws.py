"""Laws that are held once for each subject: of beams, of what a text may know, of work."""
from __future__ import annotations

import itertools

import numpy as np
from models_zoo import rand_ids
from runs import EVERY, PROMPTS, STEPS, Setting, answers, rows_of, run, same
from subjects import CLOSE, VOCAB, Subject
from truth import truth

from unspool.core.branch import Ended
from unspool.engine.engine import Engine
from unspool.engine.scheduler import Scheduler
from unspool.memories import Nothing
from unspool.stops.length import MaxNew
from unspool.stops.tokens import EndTokens
from unspool.strategies import Beam, Force, Sample


def beam_of_one_is_greedy(subject: Subject) -> None:
    for prompt in PROMPTS:
        [beam] = run(subject, Setting(Beam(1)).request(prompt))
        [best] = run(subject, EVERY["greedy"].request(prompt))
        assert answers(beam)[0][0] == answers(best)[0][0]


def wide_beam_is_exhaustive(subject: Subject) -> None:
    """A beam that holds every text finds the best ones, in their order."""
    model = subject.model(5)
    for penalty, ends in itertools.product((0.0, 1.0, 2.0), (frozenset({4}), frozenset({2, 4}))):
        found = []
        request = Setting(Sample()).request((1, 0))
        for text in texts(5, 4, ends):
            raw, _ = truth(subject, request, text, model=model)
            found.append((sum(raw) / len(text) ** penalty, list(text)))
        found.sort(key=lambda f: -f[0])
        beam = Beam(625, n=5, length_penalty=penalty, early_stopping="never", longest=4,
                    ends=len(ends))
        [job] = run(subject, Setting(beam, stops=(EndTokens(ends), MaxNew(4))).request((1, 0)),
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


def future_is_hidden(subject: Subject) -> None:
    """log p(x) is the sum over its steps, and a later token changes no earlier distribution."""
    model = subject.model()
    text = [3, 9, 4, 4, 8, 1, 2]
    [job] = run(subject, Setting(Force(tuple(text)), stops=(MaxNew(7),)).request((6, 2)))
    total = 0.0
    for i in range(len(text)):
        setting = Setting(Force((text[i],)), stops=(MaxNew(1),))
        [step] = run(subject, setting.request((6, 2, *text[:i])))
        total += answers(step)[0][1]
    assert subject.equal(answers(job)[0][1], total)
    rows = rows_of(model, [6, 2, *text])
    for t in range(len(text)):
        other = [6, 2, *text]
        other[2 + t] = (other[2 + t] + 5) % VOCAB
        changed = rows_of(model, other)
        assert np.abs(changed[:2 + t] - rows[:2 + t]).max() == 0
        assert np.abs(changed[2 + t:] - rows[2 + t:]).max() > 1e-6


def work_is_counted(subject: Subject) -> None:
    """The counters show what was computed: no token twice with a memory, many without."""
    jobs = run(subject, *(Setting(Sample(), stops=(MaxNew(24),)).request((*p, i)) for i, p in
                 enumerate((*PROMPTS, PROMPTS[0]))))
    assert all(j.usage.forwards == 24 and j.usage.computed == j.usage.prompt + 23 for j in jobs)
    [plain] = run(subject, Setting(Sample(), stops=(MaxNew(24),)).request(), memory="none")
    assert plain.usage.computed == sum(range(5, 29))


def neighbour_error_harms_nobody(subject: Subject) -> None:
    class Broken(MaxNew):
        def after(self, state, branch):
            if branch.written == 3:
                raise RuntimeError("a stop that fails")
            return state, Ended("length") if branch.written > 9 else None

    setting = EVERY["sample"]
    [alone] = run(subject, setting.request())
    engine = Engine(subject.model(), Nothing())
    job = engine.add(setting.request())
    bad = engine.add(Setting(Sample(), stops=(Broken(9),)).request(PROMPTS[2]))
    for _ in range(STEPS):
        engine.step()
    assert isinstance(bad.error, RuntimeError) and job.error is None
    same(subject, alone, job, "beside a request that fails")


# ── what only bits can show ──────────────────────────────────────────────────────────────────────
def company_changes_no_bit(subject: Subject) -> None:
    """The rows of a text are its own: in any slot, beside any number of others."""
    texts = rand_ids(2, *range(1, 17), vocab=VOCAB)
    alone = [rows_of(subject.model(), text) for text in texts]
    for count in (5, 16, 64):
        order = [(7 * i + count) % len(texts) for i in range(count)]
        together = rows_of(subject.model(), *(texts[i] for i in order))
        want = np.concatenate([alone[i] for i in order])
        differ = int((together.view(np.int32) != want.view(np.int32)).any(-1).sum())
        assert not differ, f"{differ} of {len(want)} rows differ in a batch of {count}"


def long_text_is_one(subject: Subject) -> None:
    """Over several segments of attention: read whole, in chunks, by other teams, remembered."""
    [text] = rand_ids(4, 700, vocab=VOCAB)
    for name in ("greedy", "sample, cut"):
        setting = EVERY[name]
        [whole] = run(subject, setting.request(text), scheduler=Scheduler(chunk=1000))
        for how in ({"scheduler": Scheduler(chunk=97)}, {"memory": "none"}, {"memory": "full"},
                    {"model": subject.model(threads=1)}, {"model": subject.model(threads=3)}):
            [job] = run(subject, setting.request(text), **how)
            same(subject, whole, job, f"a long text, {', '.join(how)}")


SINGLE = (beam_of_one_is_greedy, wide_beam_is_exhaustive, future_is_hidden, work_is_counted,
          neighbour_error_harms_nobody)
EXACT = (company_changes_no_bit, long_text_is_one)
