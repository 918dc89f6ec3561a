"""The watermark of green lists (Kirchenbauer et al. 2023, arXiv:2301.10226 and 2306.04634).

Each context makes some tokens green, and these are raised; a text in which too many tokens are
green was marked. Everything is as in transformers 5.24 on a CPU (`WatermarkLogitsProcessor`), down
to the generator, so that its `WatermarkDetector` finds what is written here, and `detect` what it
wrote.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import repeat
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.core.prefix import Candidate
from unspool.kernels.reading.twister import BITS, randperm
from unspool.kernels.shaping import marks
from unspool.kernels.shaping.marks import SLOTS, TRIED
from unspool.kernels.shaping.recipe import Operation
from unspool.kernels.shaping.row import MAP
from unspool.rules.rows import Rows
from unspool.rules.rule import Packed, RuleValue, rule
from unspool.rules.watermarks.detection import NOTHING, THRESHOLD, Detection, above, verdict


@dataclass(frozen=True, slots=True)
class Greens:
    """Which tokens of the ids 0 .. vocab - 1 are green, a share `ratio` of them.

    `selfhash` False (lefthash): those that the last token says, by key times token. True: each
    likeliest token says itself whether it is green, by the least product of hashes in the window
    that it ends. `width`: tokens that a text must have; with selfhash, of the window.
    """

    vocab: int
    ratio: float = 0.25
    key: int = field(default=15485863, repr=False)
    selfhash: bool = False
    width: int = 1

    @property
    def count(self) -> int:
        return int(self.vocab * self.ratio)

    @property
    def window(self) -> int:
        """Tokens that say whether the last of them is green."""
        return self.width + (not self.selfhash)

    def seed(self, window: Sequence[int]) -> int:
        """What the generator is seeded with, of which the low 32 bits count. `window`: the context,
        which with selfhash ends in the token that is judged."""
        if not self.selfhash:
            return self.key * window[-1] % (2**64 - 1)
        hashes = hashes_of(self.key, window)
        with np.errstate(over="ignore"):  # as torch multiplies
            return int((np.int64(self.key) * hashes * hashes[-1]).min()) % (2**64 - 1)

    def green(self, window: Sequence[int]) -> bool:
        """Whether the last token of a window is green."""
        context = window if self.selfhash else window[:-1]
        token = window[-1]
        return token < self.vocab and bool(mask_of(self, self.seed(context) & BITS)[token])


@lru_cache(maxsize=128)
def mask_of(greens: Greens, seed: int) -> NDArray[np.int8]:
    """int8 [vocab]: 1 for the green tokens of a seed."""
    mask = np.zeros(greens.vocab, np.int8)
    mask[randperm(seed, greens.vocab, greens.count)] = 1
    return mask


@lru_cache(maxsize=4)
def table_of(key: int) -> NDArray[np.int32]:
    return randperm(key, SLOTS)


def hashes_of(key: int, tokens: Sequence[int]) -> NDArray[np.int64]:
    """What selfhash makes of each token."""
    return table_of(key)[np.array(tokens, np.int64) % SLOTS].astype(np.int64) + 1


@dataclass(frozen=True)
class Context:
    """What the rule remembers: the last `width` tokens, fewer where the text is shorter."""

    greens: Greens
    tokens: tuple[int, ...]

    @cached_property
    def known(self) -> NDArray[Any] | None:
        """For lefthash the mask of the green tokens, for selfhash the hashes of the window and
        first their number; None where the text is too short."""
        greens = self.greens
        if len(self.tokens) < greens.width:
            return None
        if not greens.selfhash:
            return mask_of(greens, greens.seed(self.tokens) & BITS)
        rest = self.tokens[1:]  # the token that is judged ends the window
        return np.array([len(rest), *hashes_of(greens.key, rest)], np.int64)

    def lifted(self, likeliest: Iterable[int]) -> NDArray[Any]:
        """The tokens that are raised. `likeliest`: those that selfhash asks."""
        if self.known is None:
            return np.zeros(0, np.int64)
        if not self.greens.selfhash:
            return np.flatnonzero(self.known)
        return np.array([t for t in likeliest if self.greens.green((*self.tokens[1:], t))],
                        np.int64)


def start(rule: RuleValue, prompt: Sequence[int]) -> Context:
    greens: Greens = rule.data  # type: ignore[assignment]
    return Context(greens, tuple(prompt[-greens.width:]))


def after(rule: RuleValue, state: Context, token: int, fact: Candidate) -> Context:
    return Context(state.greens, (*state.tokens, token)[-state.greens.width:])


def pack(rule: RuleValue) -> Packed:
    greens: Greens = rule.data  # type: ignore[assignment]
    table = table_of(greens.key) if greens.selfhash else None
    address = 0 if table is None else table.ctypes.data
    return (*rule.numbers, greens.vocab, greens.count, greens.key, address), table


def words(state: Context) -> tuple[int]:
    return (0 if state.known is None else state.known.ctypes.data,)


@rule(Operation(marks.kgw, MAP), start=start, after=after, pack=pack, words=words)
def kgw(rows: Rows, bias: Any) -> Any:
    """Add the bias to the green tokens; with selfhash only to those of the 40 likeliest.

    The data are the Greens. Ids beyond their vocabulary are never green.
    """
    mask = np.zeros(rows.values.shape)
    asked = any(state.greens.selfhash for state in rows.states)
    likeliest = rows.order_by(-rows.values)[:, :TRIED].tolist() if asked else repeat(())
    for own, state, first in zip(mask, rows.states, likeliest, strict=False):
        found = state.lifted(first)
        own[found[found < len(own)]] = 1
    return rows.values + bias * rows.like(mask)


def detect(ids: Sequence[int], greens: Greens, context: Sequence[int] = (), repeats: bool = False,
           threshold: float = THRESHOLD) -> Detection:
    """Look for the mark in token ids. The score is the share of green tokens.

    `context`: the tokens before, which are not judged themselves. `repeats`: count a window each
    time it comes, as transformers does unless told; repeated text then looks marked more easily.
    A token without a whole window before it is not counted.
    """
    text = [*context, *ids]
    first = max(len(context), greens.window - 1)
    windows = Counter(tuple(text[i + 1 - greens.window:i + 1]) for i in range(first, len(text)))
    if not windows:
        return NOTHING
    times = {w: n if repeats else 1 for w, n in windows.items()}
    counted = sum(times.values())
    found = sum(n for window, n in times.items() if greens.green(window))
    ratio = greens.ratio
    z = (found - ratio * counted) / sqrt(counted * ratio * (1 - ratio))
    return verdict(found / counted, z, above(z), counted, threshold)
