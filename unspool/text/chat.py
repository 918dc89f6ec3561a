"""Renders a model's chat template within limits. Knows nothing of tokens.

A template comes with a model file, so it may be hostile. A sandbox keeps it from reaching out, but
not from working or growing without end, and a thread cannot be stopped; so it runs in a process of
its own (`template_worker.py`), started by the first render and kept for the next.
"""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from unspool.core.errors import TemplateError

TEMPLATE_BYTES = 256 * 1024
OUTPUT_CHARS = 1024 * 1024
RENDER_SECONDS = 1.0  # of the process's own work
MEMORY_BYTES = 96 * 1024 * 1024  # beyond what the process has at its start
_WAIT_SECONDS = 20.0  # on the clock, for a machine too busy to do a second's work
_WORKER = Path(__file__).with_name("template_worker.py")
_REASONS = {
    "output": f"it writes more than {OUTPUT_CHARS:,} characters",
    "memory": f"it needs more than {MEMORY_BYTES >> 20} MiB",
}


class ChatTemplate:
    """One Jinja template, rendered in a sandbox in a process of its own; safe under threads."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0  # the process that started it: after a fork the pipes are not ours
        self._end: weakref.finalize[..., ChatTemplate] | None = None

    def render(self, variables: Mapping[str, Any]) -> str:
        """The text for `variables`, which must be JSON data.

        Raises TemplateError naming the limit that the template breaks (size 256 KiB, 1 s of work,
        1 MiB of text, 96 MiB of memory), its own refusal, or the fault in it.
        """
        size = len(self.source.encode("utf-8", "replace"))
        if size > TEMPLATE_BYTES:
            raise TemplateError(
                f"the model's chat template has {size:,} bytes; at most {TEMPLATE_BYTES:,} are "
                f"rendered: pass the prompt as a string"
            )
        with self._lock:
            answer = self._ask(json.dumps(dict(variables)).encode() + b"\n")
        if "text" in answer:
            return _written(answer["text"])
        if "refused" in answer:
            raise TemplateError(
                f"the model's chat template refuses these messages: {answer['refused']}"
            )
        raise _broken(_REASONS.get(answer["error"], answer["error"]))

    def close(self) -> None:
        """Ends the process; a later render starts another."""
        with self._lock:
            self._stop()

    def _ask(self, line: bytes) -> dict[str, str]:
        process = self._process
        if process is None or self._owner != os.getpid():
            process = self._start()
            line = self._first() + line
        answer: Future[bytes] = Future()
        threading.Thread(target=_exchange, args=(process, line, answer), daemon=True).start()
        try:
            data = answer.result(_WAIT_SECONDS)
        except TimeoutError:
            self._stop()
            raise _broken(f"it took more than {_WAIT_SECONDS:g} s") from None
        except BaseException:  # interrupted: the answer to come would be read as the next one's
            self._stop()
            raise
        if data.endswith(b"\n"):
            found: dict[str, str] = json.loads(data)
            if found.get("error") == "memory":
                self._stop()
            return found
        code = process.wait(_WAIT_SECONDS)
        self._stop()
        raise _broken(_death(code))

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        try:
            process = subprocess.Popen(
                [sys.executable, "-S", "-P", "-X", "utf8", str(_WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                process_group=0,  # a Ctrl-C in the terminal is for us, not for it
            )
        except OSError as error:
            raise TemplateError(
                f"cannot start the process that renders chat templates ({error}); pass the prompt "
                f"as a string"
            ) from error
        self._process, self._owner = process, os.getpid()
        self._end = weakref.finalize(self, _end, process, os.getpid())
        return process

    def _first(self) -> bytes:
        """What a new process is told before the first render."""
        first = {
            "template": self.source,
            "seconds": RENDER_SECONDS,
            "memory": MEMORY_BYTES,
            "output": OUTPUT_CHARS,
        }
        return json.dumps(first).encode() + b"\n"

    def _stop(self) -> None:
        if self._end is not None:
            self._end()
        self._process = self._end = None


def _exchange(process: subprocess.Popen[bytes], line: bytes, answer: Future[bytes]) -> None:
    """One question and its answer; b"" if the process ended instead."""
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(line)
        process.stdin.flush()
        answer.set_result(process.stdout.readline())
    except (OSError, ValueError):
        answer.set_result(b"")


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    if owner != os.getpid():
        return
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:
                continue  # what was not yet written has no reader any more


def _written(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _broken(f"it writes half a character at position {error.start}") from None
    return text


def _death(code: int) -> str:
    if code < 0 and code == -getattr(signal, "SIGPROF", 0):
        return f"it works longer than {RENDER_SECONDS:g} s"
    return f"it ended its process (exit code {code})"


def _broken(reason: str) -> TemplateError:
    return TemplateError(
        f"the model's chat template cannot be rendered: {reason}; pass the prompt as a string, or "
        f"load the model with a working template"
    )
