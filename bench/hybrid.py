"""Beams that hand over to sampling, beside each alone: how texts repeat, vary and are worth.

40 prompts, 128 tokens after each, end tokens not written before that. `python -m bench.hybrid`
prints the table, `--write FILE.svg` draws the texts too.
"""
from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, quantiles

import unspool
from bench.figure import Figure, exactly, seen
from bench.scatter import Group, scatter
from bench.texts import TEXTS
from unspool.bench.prompts import Prompts

NEW, BEGUN, WIDTH = 128, 20, 5
SAMPLE = "sample:t=.8,top_p=.95"
WAYS = {"beam": f"beam:{WIDTH}", "sample": SAMPLE, "hybrid": f"beam:{WIDTH}@{BEGUN} >> {SAMPLE}"}
REPEATED, LIKELY = "repeated 4-grams", "log-probability a token"
WINDOWS, WINDOW = 8, 32  # prompts that are parts of one story, beside the short ones


@dataclass(frozen=True, slots=True)
class Text:
    """What was written, with the model's own log-probability of each token."""

    tokens: Sequence[int]
    logprobs: Sequence[float]


def repeated(tokens: Sequence[int], size: int = 4) -> float:
    """The share of n-grams that occurred before in the same text."""
    return 1 - distinct(tokens, size)


def distinct(tokens: Sequence[int], size: int) -> float:
    """Different n-grams by all n-grams of the text. Raises ValueError where there is none."""
    grams = [tuple(tokens[i:i + size]) for i in range(len(tokens) - size + 1)]
    if not grams:
        raise ValueError(f"{len(tokens)} tokens have no n-gram of {size}")
    return len(set(grams)) / len(grams)


MEASURES: Mapping[str, Callable[[Text], float]] = {
    REPEATED: lambda text: repeated(text.tokens),
    "distinct-1": lambda text: distinct(text.tokens, 1),
    "distinct-2": lambda text: distinct(text.tokens, 2),
    "distinct-3": lambda text: distinct(text.tokens, 3),
    LIKELY: lambda text: fmean(text.logprobs),
    f"the same, first {BEGUN}": lambda text: fmean(text.logprobs[:BEGUN]),
    f"the same, the other {NEW - BEGUN}": lambda text: fmean(text.logprobs[BEGUN:]),
}


def prompts(lm: unspool.LLM) -> list[list[int]]:
    words = lm.facts.needs_text("a measurement")
    short = [words.encode(text, specials=True) for text in TEXTS]
    return short + Prompts(words).rows(WINDOWS, WINDOW, 0)


def written(lm: unspool.LLM, prompt: list[int], strategy: str, seed: int, new: int = NEW) -> Text:
    out = lm.generate(prompt, strategy=strategy, seed=seed, max_new_tokens=new,
                      min_new_tokens=new)
    return Text(out.token_ids, [token.logprob for token in out.tokens])


def texts(lm: unspool.LLM, asked: Sequence[list[int]]) -> dict[str, list[Text]]:
    """The text of each way after each prompt; the prompt's number is the seed."""
    return {name: [written(lm, prompt, way, seed) for seed, prompt in enumerate(asked)]
            for name, way in WAYS.items()}


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median, upper quartile."""
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return low, middle, high


def table(found: Mapping[str, Sequence[Text]]) -> str:
    """Medians over the prompts, with quartiles, as Markdown."""
    lines = ["| | " + " | ".join(f"`{WAYS[name]}`" for name in found) + " |",
             "| --- |" + " --- |" * len(found)]
    for label, measure in MEASURES.items():
        cells = []
        for those in found.values():
            low, middle, high = spread([measure(text) for text in those])
            cells.append(f"**{middle:.2f}** ({low:.2f} to {high:.2f})")
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def drawn(found: Mapping[str, Sequence[Text]]) -> str:
    """Each text as a point, as SVG."""
    across, up = REPEATED, LIKELY
    groups = [Group(f"{name}: {WAYS[name]}", [MEASURES[across](text) for text in those],
                    [MEASURES[up](text) for text in those]) for name, those in found.items()]
    return scatter(groups, f"{across}, share", f"{up}, nats")


def figures() -> Iterator[Figure]:
    with unspool.load() as lm:
        asked = prompts(lm)
        found = texts(lm, asked)
        begun = [written(lm, prompt, WAYS["beam"], 0, BEGUN).tokens for prompt in asked]
    parted = sum(list(text.tokens[:BEGUN]) != list(start)
                 for text, start in zip(found["hybrid"], begun, strict=True))
    yield exactly(f"hybrids that do not begin as a beam of {BEGUN}", parted, 0)
    for label, measure in MEASURES.items():
        for name, those in found.items():
            yield seen(f"{name}: {label}", median(map(measure, those)), "",
                       f"median of {len(those)} texts")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.hybrid", description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE.svg", help="draw the texts too")
    asked = parser.parse_args()
    begun = time.perf_counter()
    with unspool.load() as lm:
        found = texts(lm, prompts(lm))
    print(table(found))
    print(f"\n{sum(map(len, found.values()))} texts in {time.perf_counter() - begun:.0f} s")
    if asked.write:
        asked.write.write_text(drawn(found), encoding="utf-8")


if __name__ == "__main__":
    main()
