"""The engine: the one loop. Every strategy, rule, stop, memory and draft runs through `step`."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, takewhile
from typing import TypeVar

import numpy as np

from unspool.core.branch import Branch, Ended
from unspool.core.edits import Draft
from unspool.core.errors import ParameterError, UnspoolError
from unspool.core.events import Event, Finished, Paused
from unspool.core.job import Job
from unspool.core.request import Request
from unspool.core.sockets import Memory, Model
from unspool.core.values import shown
from unspool.engine.read import Open, read
from unspool.engine.runner import OWN, Runner, Turn
from unspool.engine.scheduler import Scheduler
from unspool.engine.scored import Scored, scored, together
from unspool.engine.voices import Key, Rows, mixed, mixes_of, rows_by_voice
from unspool.kernels.reading.logits import Logits, logits_of

T = TypeVar("T")


class Engine:
    """Answers many requests at once. One step: draft, score, shape, read, decide, apply, settle."""

    def __init__(self, model: Model, memory: Memory, scheduler: Scheduler | None = None) -> None:
        self.runner = Runner(model, memory)
        self.scheduler = scheduler or Scheduler()
        self.jobs: list[Job] = []
        self.readers: dict[Branch, set[Runner]] = {}  # what may hold a part of the branch

    def add(self, request: Request) -> Job:
        job = Job(request, held=request.held)
        self.jobs.append(job)
        return job

    @property
    def busy(self) -> bool:
        """Some job can go on without anybody's leave."""
        return any(not (job.held and job.ready) or not job.live for job in self.jobs)

    def step(self) -> list[tuple[Job, list[Event]]]:
        """One forward for all jobs. Returns what each of them has to tell."""
        self.draft()                                           # tentative tails
        for job in self.jobs:
            self.readers |= dict.fromkeys(job.live, readers(job, self.runner))
        turns = self.scheduler.admit(self.jobs, self.runner)   # who takes part
        heard = self.listen(turns)                             # what other models say
        own = [turn for turn in turns if turn.runner is self.runner]
        with self.runner.lock:  # the rows are the model's until its next forward
            scored = self.score(own, self.runner)              # one forward: a row per open slot
            self.read(scored, heard)                           # mix, shape, read small facts
        told = [(job, self.decide(job)) for job in self.jobs]  # edits, applied in the job alone
        self.settle()                                          # the finished leave
        return [(job, events) for job, events in told if events]

    def draft(self) -> None:
        """Drafters fill the tentative tails of branches that are about to be scored."""
        for job in self.jobs:
            for branch in job.live if job.request.drafter else ():
                if branch not in job.slots and not branch.draft and branch.written:
                    attempt(job, partial(self.guess, job, branch))

    def guess(self, job: Job, branch: Branch) -> None:
        """Draft what is guessed, as far as the model can read it and write one token more."""
        model, drafter = self.runner.model, job.request.drafter
        room = max(model.context - branch.settled.length - 1, 0)
        guess = drafter.guess(branch)[:room] if drafter else ()
        job.apply([Draft(branch, tuple(takewhile(range(model.vocab).__contains__, guess)))])

    def listen(self, turns: Sequence[Turn]) -> dict[Key, Rows]:
        """The rows of voices that are other models, copied: one forward of each model."""
        heard: dict[Key, Rows] = {}
        for other in dict.fromkeys(turn.runner for turn in turns):
            if other is self.runner:
                continue
            theirs = [turn for turn in turns if turn.runner is other]
            with other.lock:
                part = self.score(theirs, other)
                heard |= rows_by_voice(part) if part is not None else {}
        return heard

    def score(self, turns: Sequence[Turn], runner: Runner) -> Scored | None:
        """The rows of every turn of one model. When a forward fails each turn is tried alone, so
        that only the job at fault ends in an error."""
        if not turns:
            return None
        try:
            return scored(runner.score(turns), turns)
        except Exception as error:  # whatever a model raises is its job's error
            runner.distrust(turns)
            if len(turns) == 1:
                turns[0].job.error = error
                return None
            again = [runner.turn(t.job, t.branches, t.upto, t.voice) for t in turns]
            for turn, before in zip(again, turns, strict=True):
                turn.upto = min(turn.upto, before.upto)
            alone = (self.score([turn], runner) for turn in again)
            return together(part for part in alone if part is not None)

    def read(self, rows: Scored | None, heard: dict[Key, Rows]) -> None:
        """Put what was read into the jobs' slots: of rows as they are, and of rows that are mixed.
        """
        if rows is None:
            return
        own = [(turn, first) for turn, first in rows.placed()
               if turn.voice == OWN and turn.scored and turn.job.error is None]
        plain = [(turn, first) for turn, first in own if not mixes_of(turn)]
        self.slots(rows.logits, plain)
        blends = [turn for turn, _ in own if mixes_of(turn)]
        if blends:
            heard |= rows_by_voice(rows)
            made = [(turn, attempt(turn.job, partial(mixed, turn, heard))) for turn in blends]
            sound = [(turn, out) for turn, out in made if out is not None]
            starts = accumulate((turn.rows for turn, _ in sound), initial=0)
            if sound:
                self.slots(logits_of(np.concatenate([out for _, out in sound])),
                           list(zip((turn for turn, _ in sound), starts, strict=False)))

    def slots(self, logits: Logits, placed: Sequence[tuple[Turn, int]]) -> None:
        opens = [Open(turn.job, branch, first, turn.rows, turn)
                 for turn, first in placed for branch in turn.branches]
        jobs = {o.branch: o.job for o in opens}
        for branch, slots in read(logits, opens).items():
            if isinstance(slots, Exception):
                jobs[branch].error = slots
            else:
                jobs[branch].slots[branch] = slots

    def decide(self, job: Job) -> list[Event]:
        """Let the strategy answer when every live branch has its slots."""
        if job.live and job.error is None and job.ready:
            if job.held:
                fresh, job.paused = not job.paused, True
                return [Paused()] if fresh else []
            attempt(job, job.decide)
            job.held, job.paused = job.request.held, False
        if not job.branches and job.error is None:
            job.error = ParameterError(f"strategy={shown(job.strategy)}: it dropped every text, "
                                       "so there is no answer; keep one", "strategy")
        if job.error is not None:
            job.end(Ended("error", type(job.error).__name__))
        events = attempt(job, job.events) or []
        return events if job.live else [*events, Finished(job.error)]

    def settle(self) -> None:
        """Branches that ended or were dropped hold nothing more."""
        alive: set[Branch] = {branch for job in self.jobs for branch in job.live}
        self.release([branch for branch in self.readers if branch not in alive])
        self.jobs = [job for job in self.jobs if job.live]

    def release(self, branches: Sequence[Branch]) -> None:
        for branch in branches:
            for reader in self.readers.pop(branch):
                reader.release(branch)

    def close(self) -> None:
        for job in self.jobs:
            job.end(Ended("cancelled"))
        self.jobs = []
        self.release(list(self.readers))
        self.runner.close()


def readers(job: Job, own: Runner) -> set[Runner]:
    """The models that a job's texts are read by."""
    return {own, *(voice.model for voice in job.request.voices if voice.model is not None)}


def fault(error: BaseException) -> Exception:
    """What a job's caller is told, also of what is meant to end a program."""
    if isinstance(error, Exception):
        return error
    return UnspoolError(f"a strategy, rule or stop raised {error!r}: it must not end the program")


def attempt(job: Job, act: Callable[[], T]) -> T | None:
    """Do it; what a job's strategy, stop, rule or drafter raises ends that job, and no other."""
    try:
        return act()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        job.error = fault(error)
        job.end(Ended("error", type(error).__name__))
        return None
