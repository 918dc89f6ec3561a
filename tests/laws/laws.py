"""The laws: what must hold for every strategy with every memory, on the models of `subjects.py`.

Each law is a function of a subject that raises AssertionError. Equal means the same tokens, and
scores as equal as the subject promises: bit for bit on the compiled path. Every run has a step
limit, and must have written something. `faults.py` plants faults and shows which laws catch them.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
from models_zoo import rand_ids
from runs import EVERY, PROMPTS, STEPS, Script, Setting, answers, rows_of, run, same, truth
from subjects import CLOSE, ROUNDED, VOCAB, Subject

from unspool.core.branch import Ended
from unspool.core.events import Commit, Provisional, Revoke
from unspool.engine.engine import Engine
from unspool.engine.scheduler import Scheduler
from unspool.memories import MEMORIES, Dense, Nothing
from unspool.rules import greedy
from unspool.stops.length import MaxNew
from unspool.stops.tokens import EndTokens
from unspool.strategies import Beam, Force, Sample


# ── the laws ─────────────────────────────────────────────────────────────────────────────────────
def memory_changes_nothing(subject: Subject, name: str) -> None:
    setting = EVERY[name]
    [plain] = run(subject, setting.request(), memory="none")
    for memory in MEMORIES:
        [other] = run(subject, setting.request(), memory=memory)
        same(subject, plain, other, f"memory {memory}")
    [alone] = run(subject, setting.request(remember=False))
    same(subject, plain, alone, "a request that remembers nothing")


def together_is_alone(subject: Subject, name: str) -> None:
    setting = EVERY[name]
    for prompt in PROMPTS:
        [alone] = run(subject, setting.request(prompt))
        others = [s.request(p, seed=i) for i, (s, p) in
                  enumerate(itertools.product(EVERY.values(), PROMPTS))]
        jobs = run(subject, *others[:9], setting.request(prompt), *others[9:18])
        same(subject, alone, jobs[9], "in a batch")
        jobs = run(subject, setting.request(prompt), joins=others[::5])
        same(subject, alone, jobs[0], "when others join midway")


def chunked_is_whole(subject: Subject, name: str) -> None:
    setting = EVERY[name]
    [whole] = run(subject, setting.request(PROMPTS[2]))
    for chunk in (1, 7, 16):
        [job] = run(subject, setting.request(PROMPTS[2]), scheduler=Scheduler(chunk=chunk))
        same(subject, whole, job, f"in chunks of {chunk}")


def warm_is_cold(subject: Subject, name: str) -> None:
    """A memory that knows this text, or others that begin alike, changes nothing."""
    for make in MEMORIES.values():
        memory = make(subject.model().context)
        if memory.keeps:
            warmed_is_cold(subject, EVERY[name], memory)


def warmed_is_cold(subject: Subject, setting: Setting, memory) -> None:
    base = tuple(i * i % 23 for i in range(40))
    known = []
    for prompt in (base, (*base[:20], 22, 22), base[:37], (*base[:33], 21, 20, 19, 18), base):
        engine = Engine(subject.model(), memory)
        job = engine.add(setting.request(prompt))
        for _ in range(STEPS):
            if not engine.jobs:
                break
            engine.step()
        assert not engine.jobs and job.error is None
        [cold] = run(subject, setting.request(prompt), memory="none")
        same(subject, cold, job, "with a warm memory")
        known.append(job.usage.cached)
    assert known[0] == 0 and min(known[1:]) >= 20, f"the memory knew {known} tokens"


def score_is_true(subject: Subject, name: str) -> None:
    """A reported score is the teacher-forced one, before and after the rules: by another formula,
    which may differ in the last bits, and by the engine's own, where all is read in one forward."""
    setting = EVERY[name]
    for prompt in PROMPTS[:2]:
        [job] = run(subject, setting.request(prompt))
        answers(job)
        for branch, _ in job.strategy.ranked(job):
            raw, processed = truth(subject.model(), prompt, branch.tokens, setting.rules)
            near = ROUNDED if subject.exact and setting.rules else CLOSE
            assert abs(branch.logprob - sum(raw)) < CLOSE, "raw"
            assert abs(branch.score - sum(processed)) < near, "processed"
            for fact, r in zip(branch.facts, raw, strict=True):
                assert abs(fact.logprob - r) < CLOSE, "raw, of one token"
            force = Setting(Force(tuple(branch.tokens)), setting.rules, (MaxNew(branch.written),))
            [forced] = run(subject, force.request(prompt))
            [(tokens, logprob, score)] = answers(forced)
            assert tokens == branch.tokens and forced.usage.forwards == 1
            assert subject.equal(branch.logprob, logprob), "raw, forced"
            assert subject.equal(branch.score, score), "processed, forced"


def drafted_is_plain(subject: Subject, name: str) -> None:
    """A draft, right, wrong or random, never changes the text, its scores or why it ended."""
    setting = EVERY[name]
    if not isinstance(setting.strategy, Sample) or setting.strategy.n > 1:
        return
    for prompt, seed in itertools.product(PROMPTS, (0, 5, 9)):
        [plain] = run(subject, setting.request(prompt, seed))
        text = answers(plain)[0][0] + [11, 3, 3]
        for kind in ("right", "wrong", "random"):
            [job] = run(subject, setting.request(prompt, seed, drafter=Script(kind, text)))
            same(subject, plain, job, f"with a {kind} draft")
            assert job.branches[0].ended == plain.branches[0].ended, "the reason differs"
            usage = job.usage
            assert usage.accepted + usage.rejected == usage.drafted
            if kind == "right" and len(text) > 5:
                assert usage.accepted and usage.forwards < plain.usage.forwards
            if kind == "wrong":
                assert usage.accepted == 0


def same_seed_same_text(subject: Subject, name: str) -> None:
    """The slot, the neighbours' seeds and the number of choices do not matter; the seed does."""
    setting = EVERY[name]
    [alone] = run(subject, setting.request(seed=7))
    jobs = run(subject, *(setting.request(seed=s) for s in (1, 2, 7, 3)))
    same(subject, alone, jobs[2], "in slot 2")
    if isinstance(setting.strategy, Sample):
        [few], [many] = (run(subject, Setting(Sample(n), setting.rules).request(seed=7))
                         for n in (4, 8))
        assert [a[0] for a in answers(few)] == [a[0] for a in answers(many)[:4]], "n=4 of n=8"
        if setting.seeded and greedy() not in setting.rules:
            assert len({tuple(a[0]) for a in answers(many)}) == 8, "choices are equal"
            first = [answers(run(subject, setting.request(seed=s))[0])[0][0] for s in range(6)]
            assert len(set(map(tuple, first))) == 6, "seeds are equal"


def commits_join(subject: Subject, name: str) -> None:
    """Joined commits are the final tokens; what is provisional is shown, taken back, or final."""
    setting = EVERY[name]
    engine = Engine(subject.model(), Dense())
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
        for text in texts(5, 4, ends):
            raw, _ = truth(model, (1, 0), text)
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
def threads_change_nothing(subject: Subject, name: str) -> None:
    setting = EVERY[name]
    [plain] = run(subject, setting.request(PROMPTS[2]))
    for threads in (1, 2, 3):
        model = subject.model(threads=threads)
        [other] = run(subject, setting.request(PROMPTS[2]), model=model)
        same(subject, plain, other, f"on {threads} threads")


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


MATRIX = (memory_changes_nothing, together_is_alone, chunked_is_whole, warm_is_cold, score_is_true,
          drafted_is_plain, same_seed_same_text, commits_join)
SINGLE = (beam_of_one_is_greedy, wide_beam_is_exhaustive, future_is_hidden, work_is_counted,
          neighbour_error_harms_nobody)
EXACT_MATRIX = (threads_change_nothing,)
EXACT = (company_changes_no_bit, long_text_is_one)


def matrix(exact: bool) -> Iterator[tuple[Callable[..., None], tuple[str, ...]]]:
    """Every law with every setting it is held for. `exact`: also the laws of bits."""
    laws = MATRIX + EXACT_MATRIX * exact
    yield from ((law, (name,)) for name in EVERY for law in laws)
    yield from ((law, ()) for law in SINGLE + EXACT * exact)
