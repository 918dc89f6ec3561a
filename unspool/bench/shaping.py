"""Shaping: milliseconds to shape rows of logits by their rules and to pick a token of each.

The rows are the model's own, after texts of the benchmark; each text is also what the penalties
count. Beside ours stand transformers' processors, in the order and with the numbers of ours.
"""
from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from unspool.bench.engines import PACKAGE, interpreter, script
from unspool.bench.peers import OFFLINE, PASSIVE, SHARED
from unspool.bench.prompts import Prompts
from unspool.bench.race import Race
from unspool.bench.runner import Runner
from unspool.bench.worker import Command, WorkerError
from unspool.core.errors import ModelError

ONE, MIXED = "1 row", "64 mixed rows"
OURS, PEER = "unspool", "transformers"
ROWS, TEXT = 64, 200
Numbers = Mapping[str, float]

# What one row is shaped by; a penalty counts the whole text.
USUAL: Numbers = {"repetition_penalty": 1.1, "temperature": 0.8, "top_k": 50, "top_p": 0.95,
                  "min_p": 0.05}


def mixed() -> list[dict[str, float]]:
    """ROWS recipes, no two of them equal: the usual rules with other numbers, or without some."""
    out = []
    for i in range(ROWS):
        numbers = {"repetition_penalty": 1.02 + 0.005 * i, "temperature": 0.5 + 0.02 * i,
                   "top_k": 20 + i, "top_p": 0.85 + 0.002 * i, "min_p": 0.01 + 0.002 * i}
        for place, name in enumerate(USUAL):
            if i >> place & 1 and i != ROWS // 2 - 1:  # nothing at all comes once
                numbers.pop(name)
        out.append(numbers)
    return out


def save_rows(model: str | None, prompts: Prompts, folder: Path) -> Path:
    """The rows of the model's logits, the texts before them and the recipes, as files."""
    from unspool.llm.load import load

    texts = prompts.rows(ROWS, TEXT, 1)
    with load(model) as lm:
        rows = np.stack([lm.next(text).logits for text in texts]).astype(np.float32)
    rows.tofile(folder / "rows.f32")
    told = {"texts": texts, "usual": USUAL, "mixed": mixed()}
    (folder / "told.json").write_text(json.dumps(told))
    return folder


def commands(runner: Runner, folder: Path, peers: Sequence[str], python: str | None
             ) -> list[Command]:
    """Ours, and transformers' processors where they are asked for and installed."""
    settings = {"folder": str(folder), "threads": 1}
    env = {**PASSIVE, **OFFLINE, "OMP_NUM_THREADS": "1"}
    found = [Command(OURS, (sys.executable, script("shaping")), settings,
                     {**env, "PYTHONPATH": str(PACKAGE)})]
    for name in peers:
        if name != PEER:
            runner.drop(name, "it is measured by decoding only: it shapes within its own loop")
    if PEER in peers:
        here = find_spec("torch") is not None and find_spec("transformers") is not None
        try:
            other = sys.executable if here else interpreter(SHARED, python)
        except WorkerError as error:
            runner.drop(PEER, str(error))
        else:
            found.append(Command(PEER, (other, script("processors")), settings,
                                 {**env, "PYTHONPATH": None}))
    return found


def shapes(runner: Runner, engines: Sequence[Command], rounds: int) -> Race:
    """Milliseconds, by engine and point, in interleaved rounds after one that is not counted."""
    found = Race()
    for command in engines:
        if worker := runner.start(command):
            found.facts[command.name] = worker.facts
            found.samples[command.name] = {ONE: [], MIXED: []}
    for turn in range(rounds + 1):
        runner.say(f"round {turn} of {rounds}" if turn else "warming up")
        for name in list(found.samples):
            for label, way in ((ONE, "usual"), (MIXED, "mixed")):
                answer = runner.ask(name, "shape", way=way, seed=turn)
                if answer is None:
                    found.samples.pop(name, None)
                    break
                expect(answer["picks"], way)
                if turn:
                    found.samples[name][label].append(answer["ms"])
    return found


def expect(picks: Sequence[int], way: str) -> None:
    """Every row was picked from. Raises ModelError otherwise."""
    if len(picks) != ROWS or min(picks) < 0:
        raise ModelError(f"shaping {way}: {len(picks)} picks for {ROWS} rows")

