"""Greedy parity, teacher-forced on the peer's own texts: of the reference and of the compiled path.

transformers writes greedily; our model reads each of those texts in one forward. The likeliest
token must be the same wherever the peer's two best logits differ by more than twice the logit
tolerance of the numerics. Where they differ by less, a difference is excused, counted and printed.
How far the logits of the compiled path may be in all is bounded in `bench/quality.py`.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

from bench.figure import Figure, at_most, exactly, seen
from bench.pair import Rows, ids, our_rows, peer
from bench.texts import TEXTS

TOLERANCE = {"reference": 1e-3, "default": 0.01}  # of a logit
EXCUSABLE = 0.01  # of all steps
NEW = 32


@dataclass(frozen=True, slots=True)
class Disagreement:
    """At `step` the peer's likeliest token is `theirs` by `gap` of a logit, ours is `mine`."""

    step: int
    theirs: int
    mine: int
    gap: float

    def excused(self, tolerance: float) -> bool:
        return self.gap <= 2 * tolerance


def disagreements(theirs: Rows, mine: Rows) -> list[Disagreement]:
    """Where the argmax of two [steps, vocabulary] arrays of logits differs."""
    found = []
    for step in np.flatnonzero(theirs.argmax(-1) != mine.argmax(-1)):
        second, first = np.partition(theirs[step], -2)[-2:]
        found.append(Disagreement(int(step), int(theirs[step].argmax()), int(mine[step].argmax()),
                                  float(first) - float(second)))
    return found


@cache
def written(prompt: tuple[int, ...], new: int) -> tuple[list[int], Rows]:
    """The `new` tokens that transformers writes greedily, and the logits it took them from."""
    out = peer().generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt)).long(),
                          max_new_tokens=new, do_sample=False, return_dict_in_generate=True,
                          output_logits=True)
    text = out.sequences[0].tolist()[len(prompt):]
    rows: Rows = torch.cat(out.logits).numpy()
    if len(text) != new or text != rows.argmax(-1).tolist():
        raise AssertionError(f"the peer wrote {len(text)} of {new} tokens, or not greedily")
    return text, rows


def compared(prompt: list[int], new: int, numerics: str) -> tuple[list[Disagreement], float]:
    """Where we disagree on one prompt's text, and the largest difference of two logits."""
    text, theirs = written(tuple(prompt), new)
    [mine] = our_rows([[*prompt, *text[:-1]]], [new], numerics)
    return disagreements(theirs, mine), float(np.abs(theirs - mine).max())


def measure(texts: Sequence[str], new: int, numerics: str = "reference") -> Iterator[Figure]:
    found, steps, worst, tolerance = [], 0, 0.0, TOLERANCE[numerics]
    for text in texts:
        differ, gap = compared(ids(text), new, numerics)
        steps, worst = steps + new, max(worst, gap)
        found += [(text, one) for one in differ]
    excused = sum(one.excused(tolerance) for _, one in found)
    for text, one in found:
        verdict = "excused" if one.excused(tolerance) else "WRONG"
        yield seen(f"{numerics}: step {one.step} after {text[-24:]!r}", one.gap, "gap",
                   f"{one.theirs}, we {one.mine}: {verdict}")
    yield exactly(f"{numerics}: steps compared", steps, len(texts) * new)
    yield exactly(f"{numerics}: unexcused disagreements", len(found) - excused, 0)
    yield at_most(f"{numerics}: excused steps", excused, EXCUSABLE * steps)
    largest = f"{numerics}: largest difference of a logit"
    yield at_most(largest, worst, tolerance) if numerics == "reference" else seen(largest, worst)


def figures() -> Iterator[Figure]:
    for numerics in TOLERANCE:
        yield from measure(TEXTS, NEW, numerics)
