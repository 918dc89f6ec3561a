"""The worker: one thread that runs the engine for all callers.

`Worker` is the callers' side: what they want goes into an inbox. `Loop` is the thread's side: it
alone touches the engine, so nothing else needs a lock. The thread does not know the worker, so a
model that nobody refers to any more is found by the garbage collector and ends.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from queue import Empty, SimpleQueue
from weakref import finalize

from unspool.core.branch import Ended
from unspool.core.edits import Extend
from unspool.core.errors import UnspoolError
from unspool.core.events import Event, Finished
from unspool.core.job import Job
from unspool.core.prefix import Candidate
from unspool.core.request import Request
from unspool.engine.engine import Engine, fault

Tell = Callable[[Job | None, list[Event]], None]  # told on the engine's thread; never raises
Wish = Callable[[], None]


class Worker:
    """Safe from any thread. Every request that was submitted is told a `Finished`, come what may.
    """

    def __init__(self, engine: Engine) -> None:
        self.loop = Loop(engine)
        self.lock = threading.RLock()  # a signal may come within and cancel
        self.closed = False
        self.thread: threading.Thread | None = None

    def submit(self, asked: Sequence[tuple[Request, Tell]]) -> None:
        """Begin these requests, all with the same step. Raises UnspoolError when closed."""
        with self.lock:
            self.check_open()
            if self.thread is None:
                thread = threading.Thread(target=self.loop.run, name="unspool-engine", daemon=True)
                thread.start()
                finalize(self, end, self.loop.inbox, thread)
                self.thread = thread
            self.loop.inbox.put(lambda: self.loop.begin(asked))

    def check_open(self) -> None:
        if self.closed:
            raise UnspoolError("this model is closed: load it again")
        if self.thread is not None and not self.thread.is_alive():
            raise UnspoolError("this model's engine runs in the process that this one was forked "
                               "from: load the model here")

    def release(self, job: Job, chosen: Candidate | None = None) -> None:
        """Let a held job go on: with this token, or as its strategy decides."""
        self.post(lambda: self.loop.release(job, chosen))

    def post(self, wish: Wish) -> None:
        """Have the loop do something between two steps. Once closed there is nothing left to do."""
        with self.lock:
            if not self.closed:
                self.loop.inbox.put(wish)

    def close(self) -> None:
        """Cancel every job, stop the thread, give the memory and the weights back."""
        with self.lock:
            first, self.closed = not self.closed, True
        if self.thread is not None:
            end(self.loop.inbox, self.thread)
        elif first:
            self.loop.engine.close()


def end(inbox: SimpleQueue[Wish | None], thread: threading.Thread) -> None:
    """Stop the loop after the step it is in. Also run when the interpreter exits."""
    inbox.put(None)
    if thread is not threading.current_thread():
        thread.join()


class Loop:
    """What the thread does: wishes first, then one step of the engine, again and again."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.inbox: SimpleQueue[Wish | None] = SimpleQueue()
        self.tells: dict[Job, Tell] = {}

    def run(self) -> None:
        while self.turn():
            continue
        for job in self.engine.jobs:
            job.end(Ended("cancelled"))
            self.tell(job, [Finished(job.error)])
        self.engine.close()

    def turn(self) -> bool:
        """Fulfil a wish, or run a step if there is none. False when it is time to end."""
        try:
            wish = self.inbox.get(block=not self.engine.busy)
        except Empty:
            self.step()
            return True
        if wish is not None:
            wish()
        return wish is not None

    def step(self) -> None:
        try:
            told = self.engine.step()
        except BaseException as error:  # no single job's fault that the engine knows of
            for job in self.engine.jobs:
                job.end(Ended("error", type(error).__name__))
                self.tell(job, [Finished(fault(error))])
            self.engine.jobs = []
            return
        for job, events in told:
            self.tell(job, events)

    def tell(self, job: Job, events: list[Event]) -> None:
        last = bool(events) and isinstance(events[-1], Finished)
        tell = self.tells.pop(job) if last else self.tells[job]
        tell(job, events)

    def begin(self, asked: Iterable[tuple[Request, Tell]]) -> None:
        for request, tell in asked:
            try:
                job = self.engine.add(request)
            except BaseException as error:  # a strategy or stop that fails to open
                tell(None, [Finished(fault(error))])
            else:
                self.tells[job] = tell
                tell(job, [])

    def release(self, job: Job, chosen: Candidate | None) -> None:
        job.paused = False
        if chosen is None or not job.live:
            job.held = False
            return
        job.slots = {}
        try:
            job.apply([Extend(job.live[0], chosen)])
            job.hand_over()
            events = job.events()
        except BaseException as error:  # a stop or a rule that fails on the caller's token
            job.error = fault(error)
        else:
            self.tell(job, events)
