"""Loading: how long until an engine has loaded and until its first token, in fresh processes.

The weights' file is in the page cache. Our own engine is also started as it is right after its
installation, with an empty cache of compiled code.
"""
from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from unspool.bench.points import SHORT
from unspool.bench.prompts import Prompts
from unspool.bench.race import Race
from unspool.bench.runner import Runner
from unspool.bench.worker import Command

CALL, LOADED, FIRST, FRESH = "load alone", "loaded", "first token", "first use"
Fresh = Callable[[str], Command]  # from an empty cache folder


def loads(runner: Runner, engines: Sequence[Command], fresh: Mapping[str, Fresh], weights: Path,
          track: tuple[Prompts, int]) -> Race:
    """Seconds, by engine: `CALL` is of the engine's own clock, the rest count from the start of
    its process, `FRESH` to the first token.

    `fresh`: how to start an engine as after its installation; `track`: prompts and rounds.
    """
    found = Race()
    prompts, rounds = track
    read_once(weights)
    for turn in range(1, rounds + 1):
        runner.say(f"round {turn} of {rounds}")
        for command in engines:
            name = command.name
            if name in runner.missing:
                continue
            taken = once(runner, command, prompts, turn, found)
            if name in fresh and name not in runner.missing:
                with tempfile.TemporaryDirectory() as cache:
                    (Path(cache) / weights.name).symlink_to(weights.resolve())
                    again = once(runner, fresh[name](cache), prompts, turn, found)
                taken |= {FRESH: again[FIRST]} if again else {}
            for label, seconds in taken.items():
                found.samples.setdefault(name, {}).setdefault(label, []).append(seconds)
    for name in runner.missing:
        found.samples.pop(name, None)
    return found


def once(runner: Runner, command: Command, prompts: Prompts, turn: int, found: Race
         ) -> dict[str, float]:
    """One start, to the first token of a short prompt; empty when it failed."""
    worker = runner.start(command)
    if worker is None:
        return {}
    found.facts.setdefault(command.name, worker.facts)
    asked = prompts.rows(1, SHORT, turn)
    answer = runner.ask(command.name, "write", prompts=asked, new=1, sampled=False)
    whole = time.perf_counter() - worker.begun
    runner.stop(command.name)
    return {CALL: worker.load_s, LOADED: worker.started_s, FIRST: whole} if answer else {}


def read_once(path: Path) -> None:
    """Bring a file into the page cache."""
    with path.open("rb") as file:
        while file.read(2**24):
            pass
