"""The worker: one thread that runs the engine for all callers.

Callers leave what they want in an inbox; only the worker touches the engine, so nothing else
needs a lock. Whoever submitted a job is told its events on the worker's thread.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from threading import Event as Flag
from threading import Thread

from unspool.core.branch import Ended
from unspool.core.edits import Edit
from unspool.core.errors import UnspoolError
from unspool.core.events import Event, Finished
from unspool.core.job import Job
from unspool.core.request import Request
from unspool.engine.engine import Engine

Tell = Callable[[Job | None, list[Event]], None]


class Worker:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.inbox: deque[Callable[[], None]] = deque()
        self.wake = Flag()
        self.tells: dict[int, Tell] = {}
        self.closed = False
        self.thread: Thread | None = None

    def post(self, wish: Callable[[], None]) -> None:
        """Have the worker do something between two steps."""
        self.inbox.append(wish)
        self.wake.set()

    def submit(self, request: Request, tell: Tell) -> None:
        if self.closed:
            raise UnspoolError("this model is closed: load it again")
        if self.thread is None:
            self.thread = Thread(target=self.run, name="unspool-engine", daemon=True)
            self.thread.start()
        self.post(lambda: self.begin(request, tell))

    def begin(self, request: Request, tell: Tell) -> None:
        try:
            job = self.engine.add(request)
        except Exception as error:  # a strategy or stop that fails to open
            tell(None, [Finished(error)])
            return
        self.tells[id(job)] = tell
        tell(job, [])

    def cancel(self, job: Job) -> None:
        self.post(lambda: job.end(Ended("cancelled")))

    def release(self, job: Job, edits: Iterable[Edit] | None = None) -> None:
        """Let a held job go on: by these edits, or as its strategy decides."""
        def go() -> None:
            if edits is not None and job.live:
                job.slots = {}
                job.apply(edits)
                self.tell(job, job.events())
            else:
                job.held = False
            job.paused = False
        self.post(go)

    def run(self) -> None:
        while not self.closed:
            self.wake.clear()
            while self.inbox:
                self.inbox.popleft()()
            if not self.engine.busy:
                self.wake.wait()
                continue
            for job, events in self.engine.step():
                self.tell(job, events)

    def tell(self, job: Job, events: list[Event]) -> None:
        tell = self.tells[id(job)]
        if events and isinstance(events[-1], Finished):
            del self.tells[id(job)]
        tell(job, events)

    def close(self) -> None:
        """End every job, stop the thread, give the memory and the weights back."""
        if self.closed:
            return
        self.closed = True
        self.wake.set()
        if self.thread is not None:
            self.thread.join()
        for job in list(self.engine.jobs):
            job.end(Ended("cancelled"))
            self.tell(job, [*job.events(), Finished()])
        while self.inbox:  # what was submitted but never begun
            self.inbox.popleft()()
        for job in list(self.engine.jobs):
            job.end(Ended("cancelled"))
            self.tell(job, [Finished()])
        self.engine.close()
