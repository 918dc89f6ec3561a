"""The laws: what must hold for every strategy with every memory, on the models of `subjects.py`.

Each law is a function of a subject, and of the name of a setting where it is held for all of them,
that raises AssertionError. Equal means the same tokens, and scores as equal as the subject
promises: bit for bit on the compiled path. Every run has a step limit, and must have written
something. `faults.py` plants faults and shows which laws catch them.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

from program_laws import PROGRAMMED
from runs import (
    COMPANY,
    EVERY,
    PROMPTS,
    STEPS,
    Script,
    Setting,
    answers,
    filled,
    run,
    same,
)
from search_laws import SEARCHING
from single_laws import EXACT, SINGLE, wide_beam_is_exhaustive
from stream_laws import STREAMING, commits_join
from subjects import CLOSE, ROUNDED, Subject
from truth import truth

from unspool.engine.engine import Engine
from unspool.engine.runner import Runner
from unspool.engine.scheduler import Scheduler
from unspool.memories import MEMORIES
from unspool.strategies import Force, Sample

__all__ = ["EVERY", "commits_join", "matrix", "wide_beam_is_exhaustive"]


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
    others = [EVERY[other].request(PROMPTS[i % 4], seed=i) for i, other in enumerate(COMPANY)]
    for prompt in setting.prompts[::3]:
        [alone] = run(subject, setting.request(prompt))
        jobs = run(subject, *others[:6], setting.request(prompt), *others[6:])
        same(subject, alone, jobs[6], "in a batch")
        jobs = run(subject, setting.request(prompt), joins=others[::4])
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
            warmed_is_cold(subject, EVERY[name], memory, Runner(subject.other, make(1024)))


def warmed_is_cold(subject: Subject, setting: Setting, memory, other) -> None:
    base = tuple(i * i % 23 for i in range(40))
    known = []
    for prompt in (base, (*base[:20], 22, 22), base[:37], (*base[:33], 21, 20, 19, 18), base):
        engine = Engine(subject.model(), memory)
        job = engine.add(filled(setting.request(prompt), other))
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
        request = setting.request(prompt)
        [job] = run(subject, request)
        answers(job)
        for branch, _ in job.strategy.ranked(job):
            diary = branch.watch[-1]
            raw, processed = truth(subject, request, branch.tokens, diary)
            bound = ROUNDED if subject.exact and setting.rules else CLOSE
            assert near(branch.logprob, sum(raw), CLOSE), "raw"
            assert near(branch.score, sum(processed), bound), "processed"
            for fact, r, p in zip(branch.facts, raw, processed, strict=True):
                assert near(fact.logprob, r, CLOSE), "raw, of one token"
                assert near(fact.processed, p, bound), "processed, of one token"
            [forced] = run(subject, dictated(request, branch.tokens, diary))
            [(tokens, logprob, score)] = answers(forced)
            assert tokens == branch.tokens
            assert setting.program or setting.mixes or forced.usage.forwards == 1
            assert subject.equal(branch.logprob, logprob), "raw, forced"
            assert subject.equal(branch.score, score), "processed, forced"


def near(a: float, b: float, bound: float) -> bool:
    """Also of what was removed: a text that is given may have such a token."""
    return a == b or abs(a - b) < bound


def dictated(request, text, diary):
    """The same request for one given text; `diary`: the stage of each token of it."""
    parts = [Force(tuple(token for token, (stage, _) in zip(text, diary, strict=True)
                         if stage == number)) for number in range(len(request.stages))]
    stages = tuple(replace(stage, strategy=part, takes=1)
                   for stage, part in zip(request.program, parts, strict=False))
    return replace(request, strategy=parts[0], program=stages)


def drafted_is_plain(subject: Subject, name: str) -> None:
    """A draft, right, wrong or random, never changes the text, its scores or why it ended."""
    setting = EVERY[name]
    one_text = setting.strategy == Sample() and not setting.program
    many = setting.plain and (one_text or isinstance(setting.strategy, Force))
    for prompt, seed in itertools.product(setting.prompts, (0, 5, 9) if many else (5,)):
        [plain] = run(subject, setting.request(prompt, seed))
        text = answers(plain)[0][0] + [11, 3, 3]
        for kind in ("right", "wrong", "random"):
            [job] = run(subject, setting.request(prompt, seed, drafter=Script(kind, text)))
            same(subject, plain, job, f"with a {kind} draft")
            reasons = [[b.ended for b, _ in j.strategy.ranked(j)] for j in (plain, job)]
            assert reasons[0] == reasons[1], "the reason differs"
            usage = job.usage
            assert usage.accepted + usage.rejected == usage.drafted
            if one_text and len(text) > 5:
                assert kind != "right" or usage.accepted, "no right guess was taken"
                assert kind != "right" or usage.forwards < plain.usage.forwards
                assert kind != "wrong" or usage.accepted == 0


def same_seed_same_text(subject: Subject, name: str) -> None:
    """The slot, the neighbours' seeds and the number of choices do not matter; the seed does."""
    setting = EVERY[name]
    [alone] = run(subject, setting.request(seed=7))
    jobs = run(subject, *(setting.request(seed=s) for s in (1, 2, 7, 3)))
    same(subject, alone, jobs[2], "in slot 2")
    if setting.seeded is not None:
        jobs = [run(subject, setting.request(seed=s))[0] for s in range(6 if setting.seeded else 2)]
        texts = {tuple(tuple(a[0]) for a in answers(job)) for job in jobs}
        least = (len(jobs) if setting.plain else 3) if setting.seeded else 1
        assert least <= len(texts) <= (len(jobs) if setting.seeded else 1), "seeds"
    if isinstance(setting.strategy, Sample) and not setting.program:
        few, many = (replace(setting, strategy=Sample(n)) for n in (4, 8))
        first, every = (answers(run(subject, s.request(seed=7))[0]) for s in (few, many))
        assert [a[0] for a in first] == [a[0] for a in every[:4]], "n=4 of n=8"
        different = len({tuple(a[0]) for a in every})
        assert not setting.seeded or different >= (8 if setting.plain else 4), "choices are equal"


# ── what only bits can show ──────────────────────────────────────────────────────────────────────
def threads_change_nothing(subject: Subject, name: str) -> None:
    setting = EVERY[name]
    [plain] = run(subject, setting.request(PROMPTS[2]))
    for threads in (1, 2, 3):
        model = subject.model(threads=threads)
        [other] = run(subject, setting.request(PROMPTS[2]), model=model)
        same(subject, plain, other, f"on {threads} threads")


MATRIX = (memory_changes_nothing, together_is_alone, chunked_is_whole, warm_is_cold, score_is_true,
          drafted_is_plain, same_seed_same_text, commits_join)
EXACT_MATRIX = (threads_change_nothing,)


def matrix(exact: bool) -> Iterator[tuple[Callable[..., None], tuple[str, ...]]]:
    """Every law with every setting it is held for. `exact`: also the laws of bits."""
    laws = MATRIX + EXACT_MATRIX * exact
    yield from ((law, (name,)) for name in EVERY for law in laws)
    yield from ((law, ()) for law in (*SINGLE, *SEARCHING, *PROGRAMMED, *STREAMING, *EXACT * exact))
