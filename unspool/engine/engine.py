"""The engine: the one loop. Every strategy, rule, stop, memory and draft runs through `step`."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from typing import TypeVar

from unspool.core.branch import Branch, Ended
from unspool.core.edits import Draft
from unspool.core.errors import ParameterError, UnspoolError
from unspool.core.events import Event, Finished, Paused
from unspool.core.job import Job
from unspool.core.request import Request
from unspool.core.sockets import Memory, Model
from unspool.core.values import shown
from unspool.engine.read import Open, read
from unspool.engine.runner import Runner, Turn
from unspool.engine.scheduler import Scheduler
from unspool.engine.scored import Scored, scored, together

T = TypeVar("T")


class Engine:
    """Answers many requests at once. One step: draft, score, shape, read, decide, apply, settle."""

    def __init__(self, model: Model, memory: Memory, scheduler: Scheduler | None = None) -> None:
        self.runner = Runner(model, memory)
        self.scheduler = scheduler or Scheduler()
        self.jobs: list[Job] = []

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
        turns = self.scheduler.admit(self.jobs, self.runner)   # who takes part
        scored = self.score(turns)                             # one forward: a row per open slot
        self.read(scored)                                      # shape by rules, read small facts
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

    def score(self, turns: Sequence[Turn]) -> Scored | None:
        """The rows of every turn. When a forward fails each turn is tried alone, so that only the
        job at fault ends in an error."""
        if not turns:
            return None
        try:
            return scored(self.runner.score(turns), turns)
        except Exception as error:  # whatever a model raises is its job's error
            self.runner.distrust(turns)
            if len(turns) == 1:
                turns[0].job.error = error
                return None
            again = [self.runner.turn(t.job, t.branches, t.upto) for t in turns]
            alone = (self.score([turn]) for turn in again)
            return together(part for part in alone if part is not None)

    def read(self, rows: Scored | None) -> None:
        if rows is None:
            return
        opens = [Open(turn.job, branch, first, turn.rows) for turn, first in rows.placed()
                 if turn.scored and turn.job.error is None for branch in turn.branches]
        jobs = {o.branch: o.job for o in opens}
        for branch, slots in read(rows.logits, opens).items():
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
        for branch in [b for b in self.runner.held if b not in alive]:
            self.runner.release(branch)
        self.jobs = [job for job in self.jobs if job.live]

    def close(self) -> None:
        for job in self.jobs:
            job.end(Ended("cancelled"))
        self.jobs = []
        self.runner.close()


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
