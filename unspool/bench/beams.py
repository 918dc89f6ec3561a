"""Beam search: seconds to write one text by beams, and so many texts by sampling.

Both read as many rows a step, so their ratio is what the search costs beside the model. Knows
engines by name; beside ours stands transformers' `generate`.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from unspool.bench.points import SHORT
from unspool.bench.prompts import Prompts
from unspool.bench.race import Race
from unspool.bench.runner import Runner
from unspool.bench.worker import Command
from unspool.core.errors import ModelError

PEER = "transformers"
WARM = 8  # tokens of a request that no figure counts
Way = Mapping[str, float]


def ways(beams: int) -> dict[str, Way]:
    """The points by name, each with the parameters of its request. The first is the main one."""
    return {main(beams): {"num_beams": beams},
            f"{beams} samples": {"n": beams, "temperature": 0.8, "top_p": 0.95}}


def main(beams: int) -> str:
    return f"{beams} beams"


def searches(runner: Runner, engines: Sequence[Command], prompts: Prompts, beams: int,
             new: int, rounds: int) -> Race:
    """Seconds of whole requests, by engine and point, in interleaved rounds."""
    found, asked = Race(), ways(beams)
    for command in engines:
        if worker := runner.start(command):
            found.facts[command.name] = worker.facts
            found.samples[command.name] = {label: [] for label in asked}
    for turn in range(rounds + 1):
        runner.say(f"round {turn} of {rounds}" if turn else "warming up")
        [prompt] = prompts.rows(1, SHORT, turn)
        for name in list(found.samples):
            for label, way in asked.items():
                count = new if turn else min(new, WARM)
                answer = runner.ask(name, "search", prompt=prompt, new=count, way=way)
                if answer is None:
                    found.samples.pop(name, None)
                    found.texts.pop(name, None)
                    break
                expect(name, answer["token_ids"], int(way.get("n", 1)), count)
                if turn:
                    found.samples[name][label].append(answer["seconds"])
                    if label == main(beams):  # of the last round
                        found.texts[name] = answer["token_ids"][0]
    return found


def expect(name: str, texts: Sequence[Sequence[int]], count: int, new: int) -> None:
    """Raises ModelError unless `count` texts of `new` tokens were written."""
    lengths = [len(text) for text in texts]
    if lengths != [new] * count:
        raise ModelError(f"{name}: asked for {count} texts of {new} tokens, it wrote {lengths}")


def costs(found: Race) -> dict[str, float]:
    """How many times longer the beams take than the samples, by engine: the median of the rounds'
    ratios."""
    out = {}
    for name, points in found.samples.items():
        beams, samples = points.values()
        out[name] = median(one / other for one, other in zip(beams, samples, strict=True))
    return out

