"""Says on stderr that something is going on, once it has taken longer than a second.

Knows nothing of what is going on. On a terminal the line counts seconds and goes away at the end;
elsewhere it is printed once.
"""

from __future__ import annotations

import threading
import time
from typing import Self, TextIO

PATIENCE = 1.0  # seconds before the first word
TICK = 0.5


class Progress:
    """`with Progress("loading smollm2", sys.stderr): ...`; silent when `quiet` or quickly done."""

    def __init__(self, what: str, file: TextIO, *, quiet: bool = False) -> None:
        self.what = what
        self.file = file
        self.done = threading.Event()
        self.thread = None if quiet else threading.Thread(target=self._tell, daemon=True)

    def _tell(self) -> None:
        started = time.monotonic()
        if self.done.wait(PATIENCE):
            return
        if not self.file.isatty():
            print(f"{self.what} ...", file=self.file, flush=True)
            return
        while not self.done.wait(TICK):
            seconds = time.monotonic() - started
            print(f"\r\x1b[K{self.what} ... {seconds:.0f} s", end="", file=self.file, flush=True)
        print("\r\x1b[K", end="", file=self.file, flush=True)

    def say(self, what: str) -> None:
        """What is going on now."""
        self.what = what

    def __enter__(self) -> Self:
        if self.thread:
            self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.done.set()
        if self.thread:
            self.thread.join()
