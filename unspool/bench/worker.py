"""One engine in a process of its own: start it, ask it, see what it costs, end it.

Knows nothing of what is asked. The other end is `workers/wire.py`: a JSON line each way.
"""
from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from unspool.core.errors import UnspoolError

START_LIMIT_S = 900.0  # one of the engines compiles for minutes
ANSWER_LIMIT_S = 900.0
END_LIMIT_S = 5.0
PROC = Path("/proc")


class WorkerError(UnspoolError):
    """An engine could not start, refused a request, fell silent or died."""


@dataclass(frozen=True, slots=True)
class Command:
    """How to start an engine. `env` is laid over this process's environment; None removes.

    `notes`: what is to be known of the engine besides what it says itself.
    """

    name: str
    words: Sequence[str]
    settings: Mapping[str, Any]
    env: Mapping[str, str | None] = field(default_factory=dict)
    notes: Sequence[str] = ()


class Worker:
    """A started engine. `facts` is what it says of itself.

    Seconds: `started_s` from the start of the process to loaded, `load_s` the load alone, as the
    engine's own process measured it. Raises WorkerError when it cannot load.
    """

    def __init__(self, command: Command) -> None:
        self.name = command.name
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self.answers: SimpleQueue[str] = SimpleQueue()
        self.begun = time.perf_counter()
        try:
            self.process = subprocess.Popen(
                [*command.words, json.dumps(command.settings)], env=laid(command.env),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                text=True, encoding="utf-8", start_new_session=True,
            )
        except OSError as error:
            self.log.close()
            raise WorkerError(f"{command.words[0]} cannot be run: {error.strerror}") from None
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()
        try:
            hello = self._answer(START_LIMIT_S)
        except BaseException:
            self.close()
            raise
        self.started_s = time.perf_counter() - self.begun
        said: dict[str, Any] = hello["facts"]
        self.facts = {**said, "notes": [*said.get("notes", ()), *command.notes]}
        self.load_s: float = hello["load_s"]
        self.resident: list[int | None] = hello["resident"]

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """The answer to one request. Raises WorkerError; the engine may be dead then."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"do": do, **request}) + "\n")
            self.process.stdin.flush()
        except OSError:
            raise WorkerError(self._last_words()) from None
        return self._answer(ANSWER_LIMIT_S)

    def cpu_s(self) -> float:
        """CPU seconds that the process and its children have used so far; 0 but on Linux."""
        return cpu_of_session(self.process.pid)

    def close(self) -> None:
        """End the process: it is asked by the end of its input, then made to."""
        assert self.process.stdin is not None
        with suppress(OSError):  # it may have died with a request unread
            self.process.stdin.close()
        self.listener.join(END_LIMIT_S)
        self._kill()
        self.log.close()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.answers.put(line)
        self.answers.put("")

    def _answer(self, limit_s: float) -> dict[str, Any]:
        try:
            line = self.answers.get(timeout=limit_s)
        except Empty:
            self._kill()
            raise WorkerError(f"{self.name}: no answer after {limit_s:.0f} s") from None
        if not line:
            raise WorkerError(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer

    def _kill(self) -> int:
        """End what is left of its session, children too; the status of the process."""
        if self.process.returncode is None:  # once waited for, its id may be another's
            if hasattr(os, "killpg"):
                with suppress(ProcessLookupError, PermissionError):  # already ending
                    os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
        return self.process.wait()

    def _last_words(self) -> str:
        try:
            status = self.process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            status = self._kill()
        self.log.seek(0)
        lines = self.log.read().decode("utf-8", "replace").strip().splitlines()
        said = lines[-1] if lines else "without a word"
        return f"{self.name} ended with status {status}: {said}"


def laid(changes: Mapping[str, str | None]) -> dict[str, str]:
    """This process's environment with the changes."""
    merged = {**os.environ, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def cpu_of_session(session: int) -> float:
    """CPU seconds of all living processes of a session, by Linux's /proc."""
    total = 0
    for path in PROC.glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (OSError, UnicodeDecodeError):  # it ended meanwhile
            continue
        if int(fields[3]) == session:
            total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK") if total else 0.0


def cpu_of_machine() -> float | None:
    """CPU seconds that everything on this machine has used since it started; None but on Linux."""
    try:
        fields = (PROC / "stat").read_text().split("\n", 1)[0].split()[1:]
    except OSError:
        return None
    user, nice, system, _idle, _wait, irq, soft, *_ = map(int, fields)
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")
