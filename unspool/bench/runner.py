"""Runs engines one at a time, in interleaved rounds, and watches that nobody else works meanwhile.

Knows engines by name and requests as they are handed in; knows nothing of what is measured.
"""
from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from unspool.bench.worker import Command, Worker, WorkerError, cpu_of_machine

Say = Callable[[str], None]
IDLE_SHARE = 0.05  # of a core, above which a waiting engine disturbs the working one
FOREIGN_SHARE = 0.10  # of all cores
WATCHED_S = 1.0  # less says nothing: the system counts CPU time in hundredths


class Runner:
    """The engines of one run. What fails is ended and stands in `missing` with the reason.

    `idle` and `foreign` add up CPU seconds that waiting engines and other programs used while one
    engine worked, for `watched_s` seconds.
    """

    def __init__(self, say: Say) -> None:
        self.say = say
        self.workers: dict[str, Worker] = {}
        self.missing: dict[str, str] = {}
        self.idle: dict[str, float] = {}
        self.foreign = 0.0
        self.watched_s = 0.0

    def start(self, command: Command) -> Worker | None:
        """Start an engine and wait until it has loaded."""
        self.say(f"loading {command.name}")
        try:
            worker = Worker(command)
        except WorkerError as error:
            self.drop(command.name, str(error))
            return None
        self.workers[command.name] = worker
        return worker

    def ask(self, name: str, do: str, **request: Any) -> dict[str, Any] | None:
        """The answer of one engine, None when it failed or is missing."""
        worker = self.workers.get(name)
        if worker is None:
            return None
        before, machine, begun = self._used(), cpu_of_machine(), time.perf_counter()
        try:
            return worker.ask(do, **request)
        except WorkerError as error:
            self.drop(name, str(error))
            return None
        finally:
            self._watch(name, before, machine, time.perf_counter() - begun)

    def stop(self, name: str) -> None:
        """End an engine that has done its part."""
        worker = self.workers.pop(name, None)
        if worker is not None:
            worker.close()

    def drop(self, name: str, reason: str) -> None:
        self.say(f"{name} is left out: {reason}")
        self.missing[name] = reason
        self.stop(name)

    def notes(self) -> list[str]:
        """What disturbed the measurement."""
        if cpu_of_machine() is None:
            return ["this system does not tell whether other programs or waiting engines worked"]
        if self.watched_s < WATCHED_S:
            return []
        found = [
            f"{name} used {used / self.watched_s:.0%} of a core while it waited"
            for name, used in self.idle.items() if used / self.watched_s > IDLE_SHARE
        ]
        foreign = self.foreign / self.watched_s / cores()
        if foreign > FOREIGN_SHARE:
            found.append(f"other programs used {foreign:.0%} of the cores meanwhile: measure again "
                         "on a quiet machine")
        return found

    def _used(self) -> Mapping[str, float]:
        return {name: worker.cpu_s() for name, worker in self.workers.items()}

    def _watch(self, name: str, before: Mapping[str, float], machine: float | None,
               spent: float) -> None:
        after, now = self._used(), cpu_of_machine()
        used = {other: after[other] - before[other] for other in after if other in before}
        for other, seconds in used.items():
            if other != name:
                self.idle[other] = self.idle.get(other, 0.0) + max(seconds, 0.0)
        if machine is not None and now is not None and name in used:
            self.foreign += max(now - machine - sum(used.values()), 0.0)
            self.watched_s += spent

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        for name in list(self.workers):
            self.stop(name)


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
