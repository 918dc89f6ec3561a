"""The counters of the default model's work: nothing is computed twice, and rows keep apart."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.figure import Figure, at_least, at_most, exactly
from bench.pair import asked, ids, ours
from bench.texts import LONG
from unspool.core.job import Job
from unspool.core.sockets import Memory, Model
from unspool.engine.engine import Engine
from unspool.files import store
from unspool.memories import Dense, Nothing
from unspool.models.load import load_model

NEW = 24
CLOSE = 1e-9
PROMPTS = ("The color of sky is", "The", "def add(a, b):\n    return",
           "Once upon a time, in a village by the sea, there lived", "2, 3, 5, 7, 11,")
JOINER = LONG * 3  # longer than one chunk of the scheduler


def answered(model: Model, memory: Memory, joiner: str | None = None) -> tuple[list[Job], int]:
    """The jobs of PROMPTS and the forwards they took; `joiner` begins after three steps."""
    engine = Engine(model, memory)
    jobs = [engine.add(asked(ids(text), NEW)) for text in PROMPTS]
    for step in range(4 * NEW):
        if step == 3 and joiner is not None:
            engine.add(asked(ids(joiner), NEW))
        if not engine.jobs:
            break
        engine.step()
    for job in jobs:
        if job.error is not None:
            raise job.error
        if job.live or job.branches[0].written != NEW:
            raise AssertionError(f"{job.branches[0].written} of {NEW} tokens were written")
    return jobs, engine.runner.forwards


def figures() -> Iterator[Figure]:
    model = ours().model
    dense, forwards = answered(model, Dense())
    total = computed(dense)
    fresh = sum(job.usage.prompt + NEW - 1 for job in dense)
    what = f"{len(PROMPTS)} prompts x {NEW} tokens: "
    yield at_most(f"{what}forwards", forwards, NEW, note="the prompts' chunk is the first of them")
    yield exactly(f"{what}computed, dense", total, fresh, note="prompt + new - 1, summed")
    none, _ = answered(model, Nothing())
    yield exactly(f"{what}computed, none",
                  computed(none), sum(NEW * job.usage.prompt + NEW * (NEW - 1) // 2
                                      for job in none))
    yield at_least("computed, none / dense", computed(none) / total, 5)
    yield exactly("texts that differ, none and dense", differing(none, dense), 0)
    yield from joined()


def joined() -> Iterator[Figure]:
    """In float64, where the order in which numbers are summed shows in no logit."""
    model = load_model(store.find(store.DEFAULT), dtype="float64")
    calm, _ = answered(model, Dense())
    disturbed, _ = answered(model, Dense(), JOINER)
    note = f"{len(ids(JOINER))} tokens join after 3 steps; float64"
    yield exactly("texts that a longer prompt changes", differing(calm, disturbed), 0, note=note)
    worst = max(abs(a.logprob - b.logprob) for one, other in zip(calm, disturbed, strict=True)
                for a, b in zip(one.branches[0].facts, other.branches[0].facts, strict=True))
    yield at_most("largest change of a log-probability", worst, CLOSE)
    model.close()


def computed(jobs: Sequence[Job]) -> int:
    return sum(job.usage.computed for job in jobs)


def differing(jobs: Sequence[Job], others: Sequence[Job]) -> int:
    return sum(one.branches[0].tokens != other.branches[0].tokens
               for one, other in zip(jobs, others, strict=True))
