"""The caches of our own engine: what each costs in memory and in time, at several lengths."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from unspool.bench.points import SHORT, Measure, Point
from unspool.bench.race import Race, Track, one_round, warm, write
from unspool.bench.runner import Runner
from unspool.bench.worker import Command

USED = {  # every memory that `load` takes, and where it is used
    "none": "the slow truth that the others are held to; models that remember nothing",
    "dense": "the default: grows with the text, shares what texts begin with",
    "full": "room for the longest text from the first token on: nothing grows, nothing is copied",
}
Start = Callable[["Method"], Command]
Sizes = dict[str, dict[str, int]]  # bytes, by method and length


@dataclass(frozen=True, slots=True)
class Method:
    """A cache and the number type of its keys and values, as `load` takes them."""

    memory: str
    kv: str

    @property
    def name(self) -> str:
        return self.memory if self.kv == "f32" else f"{self.memory} {self.kv}"


def methods(kinds: Sequence[str]) -> list[Method]:
    """Every cache in f32, and those that keep something in the other `kinds` too."""
    return [Method(memory, kv) for memory in USED for kv in kinds
            if memory != "none" or kv == "f32"]


def points(lengths: Sequence[int], method: Method) -> Measure:
    """Some tokens after a prompt of each length: few where each of them reads all before it."""
    new = 3 if method.memory == "none" else 17
    found = tuple(Point(str(length), length, 1, length, new) for length in lengths)
    return Measure("decode", found, found[0].label, 2, "tokens before the one written")


def measure(runner: Runner, tracks: Mapping[Method, Track], start: Start) -> tuple[Race, Sizes]:
    """The tokens a second of each method in interleaved rounds, and its bytes at each length.

    A length's bytes are the most that a fresh process had in memory while it wrote there, less
    what it had after loading and a first short text; none on systems that do not tell.
    """
    found, sizes = Race(), Sizes()
    for method, track in tracks.items():
        for point in track.measure.points:
            if method.name not in runner.missing:
                weigh(runner, start(method), track, point, sizes)
    for method, track in tracks.items():
        if method.name not in runner.missing and (worker := runner.start(start(method))):
            found.facts[method.name] = worker.facts
            warm(runner, method.name, track, found)
    rounds = max(track.rounds for track in tracks.values())
    for turn in range(1, rounds + 1):
        runner.say(f"round {turn} of {rounds}")
        for method, track in tracks.items():
            if method.name in found.samples:
                one_round(runner, method.name, track, turn, found)
    for name in runner.missing:
        found.samples.pop(name, None)
    return found, sizes


def weigh(runner: Runner, command: Command, track: Track, point: Point, sizes: Sizes) -> None:
    """Note the bytes that a text of a point's length takes, in a process of its own."""
    name = command.name
    if runner.start(command) is None:
        return
    write(runner, name, track, Point("", 0, 1, SHORT, 2), 0, False)
    before = runner.ask(name, "memory")
    write(runner, name, track, point, 0, False)
    after = runner.ask(name, "memory")
    runner.stop(name)
    if before and after and before["now"] is not None:
        sizes.setdefault(name, {})[point.label] = after["most"] - before["now"]


def report(found: Race, sizes: Sizes, more: Mapping[str, Any]) -> dict[str, Any]:
    """The report, in the shape of the other verbs': milliseconds a token, and bytes."""
    rows = {}
    for name, points_of in found.samples.items():
        took = {label: [1000 / rate for rate in rates] for label, rates in points_of.items()}
        rows[name] = {
            "used": USED[name.split()[0]], "memory_bytes": sizes.get(name, {}),
            "points": {label: {"x": int(label), "median": median(samples), "samples": samples}
                       for label, samples in took.items()},
            **found.facts[name],
        }
    return {"measure": "cache", "unit": "ms/token", "roofline": {}, "ours": {"methods": rows},
            "variants": {}, "peers": {}, "ratios": {}, **more}
