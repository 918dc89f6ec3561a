"""Speed: all engines loaded, then rounds in which each does the same in turn.

Knows engines by name. The readers of memory take part in every round, so that the roofline is of
the same minutes as the figures.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unspool.bench.points import Measure, Point
from unspool.bench.prompts import Prompts
from unspool.bench.runner import Runner
from unspool.bench.worker import Command

Samples = dict[str, dict[str, list[float]]]  # tokens a second, by engine and point


@dataclass(slots=True)
class Race:
    """What one run found. `texts`: each engine's greedy ids after the first prompt."""

    samples: Samples = field(default_factory=dict)
    read: dict[str, list[float]] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    texts: dict[str, list[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Track:
    """What is run: the measure, its prompts, and how often."""

    measure: Measure
    prompts: Prompts
    rounds: int
    sampled: bool = False


def race(runner: Runner, engines: Sequence[Command], readers: Sequence[Command], track: Track
         ) -> Race:
    """Load everything, warm each engine up, then run the rounds.

    What fails is left out, with its reason in `runner.missing`.
    """
    found = Race()
    for command in readers:
        if worker := runner.start(command):
            found.unread |= worker.facts["missing"]
    for command in engines:
        if worker := runner.start(command):
            found.facts[command.name] = worker.facts | {"load_s": worker.load_s}
            warm(runner, command.name, track, found)
    for turn in range(1, track.rounds + 1):
        runner.say(f"round {turn} of {track.rounds}")
        for name in list(found.samples):
            one_round(runner, name, track, turn, found)
        for command in readers:
            for reader, passes in (runner.ask(command.name, "read") or {}).items():
                found.read.setdefault(reader, []).extend(passes)
    for name in runner.missing:
        found.samples.pop(name, None)
    found.unread = {name: why for name, why in found.unread.items() if name not in found.read}
    return found


def warm(runner: Runner, name: str, track: Track, found: Race) -> None:
    """Requests that no figure counts: a greedy text, which can be compared, and each point begun,
    since an engine may compile what a size needs when it first meets it.
    """
    measure = track.measure
    main = replace(measure.first, rows=1, new=measure.warm)
    answer = write(runner, name, track, main, 0, False)
    for point in measure.points:
        write(runner, name, track, replace(point, new=min(point.new, 2)), 0, track.sampled)
    if answer is not None and name in runner.workers:
        found.samples[name] = {point.label: [] for point in measure.points}
        found.texts[name] = answer["token_ids"][0]


def one_round(runner: Runner, name: str, track: Track, turn: int, found: Race) -> None:
    for point in track.measure.points:
        answer = write(runner, name, track, point, turn, track.sampled)
        if answer is None:
            return
        found.samples[name][point.label].append(point.rate(answer))


def write(runner: Runner, name: str, track: Track, point: Point, turn: int, sampled: bool
          ) -> Mapping[str, Any] | None:
    """The answer to a point's request; None, and the engine left out, when it did less."""
    prompts = track.prompts.rows(point.rows, point.prompt, turn)
    answer = runner.ask(name, "write", prompts=prompts, new=point.new, sampled=sampled)
    if answer is None:
        return None
    lengths = sorted({len(ids) for ids in answer["token_ids"]})
    if lengths != [point.new] or len(answer["token_ids"]) != point.rows:
        runner.drop(name, f"asked for {point.rows} texts of {point.new} tokens, it wrote "
                          f"{len(answer['token_ids'])} of {lengths}")
        return None
    return answer
