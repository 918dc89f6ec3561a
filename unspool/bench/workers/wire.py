"""The engine's end of a benchmark: loads once, then answers requests, one JSON line each.

The scripts of this folder are started by path, each in the environment of the engine that it
measures, so this file needs nothing but Python. They import no unspool, and unspool imports none of
them. The lines go over the standard streams as they were at the start: what an engine prints later
goes to stderr.

Request {"do": name, ...} -> the answer of that action, or {"error": text}.
"""
from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Action = Callable[..., Any]
STATUS, REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def serve(load: Callable[[dict[str, Any]], tuple[dict[str, Any], Mapping[str, Action]]]) -> None:
    """Load with the settings of the command line, say what was loaded, answer until the input ends.

    `load(settings)` gives the engine's facts and its actions by name. The first line told is
    {"facts", "load_s", "resident": bytes before and after}, or {"error"} if it could not load.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(answer: Mapping[str, Any]) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    before, begun = resident()["now"], time.perf_counter()
    try:
        facts, actions = load(json.loads(sys.argv[1]))
    except Exception as error:
        tell({"error": named(error)})
        return
    spent = time.perf_counter() - begun
    tell({"facts": facts, "load_s": spent, "resident": [before, resident()["now"]]})
    known: dict[str, Action] = {"memory": resident, **actions}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            tell(known[request.pop("do")](**request))
        except Exception as error:
            tell({"error": named(error)})


def named(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"


class Clock:
    """Times one request of several rows from the moment that it is made.

    An engine calls `wrote` whenever tokens of a row are known. The reading of the prompts ends
    when every row has its first token; what is written from there on is decoding.
    """

    def __init__(self, rows: int) -> None:
        self.begun = time.perf_counter()
        self.written = [0] * rows
        self.first: float | None = None
        self.last = self.begun
        self.after = 0

    def wrote(self, row: int, tokens: int = 1) -> None:
        if not tokens:
            return
        self.last = time.perf_counter()
        self.written[row] += tokens
        if self.first is not None:
            self.after += tokens
        elif all(self.written):
            self.first = self.last

    def step(self) -> None:
        """Every row has one token more."""
        for row in range(len(self.written)):
            self.wrote(row)

    def answer(self, token_ids: list[list[int]]) -> dict[str, Any]:
        """Seconds to the first token of every row and from there to the last, with the tokens
        written in the latter. Raises RuntimeError when the rows have not the tokens told.
        """
        if self.first is None or [len(ids) for ids in token_ids] != self.written:
            lengths = [len(ids) for ids in token_ids]
            raise RuntimeError(f"rows of {lengths} tokens, told were {self.written}")
        return {"first_s": self.first - self.begun, "rest_s": self.last - self.first,
                "after": self.after, "token_ids": token_ids}


def resident() -> dict[str, int | None]:
    """Bytes of this process in memory: now, and at most since the last call. None but on Linux."""
    if not REFS.exists():
        return {"now": None, "most": None}
    text = STATUS.read_text()
    now, most = (re.search(rf"{name}:\s*(\d+)", text) for name in ("VmRSS", "VmHWM"))
    REFS.write_text("5")  # forget the most
    return {"now": now and int(now[1]) * 1024, "most": most and int(most[1]) * 1024}
