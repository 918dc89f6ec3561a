"""SynthID-Text, a watermark by tournament (Dathathri et al. 2024, doi:10.1038/s41586-024-08025-4).

The last tokens and a token make one bit g for each key; depth by depth, tokens whose bit is 1 gain
from the others. Over keys the picks are draws from the distribution. Hash, bits and contexts are as
in transformers 5.24 (`SynthIDTextWatermarkLogitsProcessor`): the context holds written tokens only,
zeros before the first, and a row whose context came before is left alone.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unspool.core.prefix import Candidate
from unspool.kernels.reading.twister import numbers
from unspool.kernels.shaping import marks
from unspool.kernels.shaping.marks import MULTIPLIER
from unspool.kernels.shaping.recipe import Operation
from unspool.kernels.shaping.row import MAP, NEEDS_MASS
from unspool.rules.rows import Rows
from unspool.rules.rule import Packed, RuleValue, rule
from unspool.rules.watermarks.detection import NOTHING, THRESHOLD, Detection, above, verdict

Bits = NDArray[np.int8]
FIRST, LAST = 10.0, 1.0  # weights of the depths, before they are made to add up to their number


@dataclass(frozen=True, slots=True)
class Tournament:
    """The bits of a token. `ngram`: tokens that are hashed, itself included; `keys`: one for each
    depth; `table_seed`, `table_size`: the table of bits; `remembered`: contexts that are;
    `skips`: the first ngram - 1 tokens are not marked."""

    keys: tuple[int, ...] = field(repr=False)
    ngram: int = 5
    table_seed: int = field(default=0, repr=False)
    table_size: int = 2**16
    remembered: int = 1024
    skips: bool = False

    @property
    def table(self) -> Bits:
        return table_of(self.table_seed, self.table_size)

    def bits(self, context: int, tokens: NDArray[np.int64]) -> Bits:
        """[tokens, depth]: g of each token behind a context with this hash."""
        keys = np.array(self.keys, np.int64)
        hashes = hashed(hashed(np.int64(context), tokens)[:, None], keys)
        return np.asarray(self.table[hashes % self.table_size])


@lru_cache(maxsize=8)
def table_of(seed: int, size: int) -> Bits:
    return (numbers(seed, size) & 1).astype(np.int8)


def hashed(before: Any, number: Any) -> Any:
    """One step of the hash, int64 modulo 2^64."""
    with np.errstate(over="ignore"):
        return (before + number) * np.int64(MULTIPLIER) + np.int64(1)


def hash_of(tokens: Sequence[int]) -> int:
    out = np.int64(1)
    for token in tokens:
        out = hashed(out, np.int64(token))
    return int(out)


class State(NamedTuple):
    """What the rule remembers: the context and its hash, the hashes of those before it, the latest
    first, how many tokens were written, and whether this row is marked."""

    context: tuple[int, ...]
    hash: int
    seen: tuple[int, ...]
    written: int
    marks: bool


def state_of(rule: RuleValue, context: tuple[int, ...], seen: tuple[int, ...], written: int
             ) -> State:
    found = hash_of(context)
    return State(context, found, seen, written,
                 not skipped(rule.data, written) and found not in seen)


def skipped(tournament: Any, written: int) -> bool:
    return bool(tournament.skips) and written < tournament.ngram - 1


def start(rule: RuleValue, prompt: Sequence[int]) -> State:
    tournament: Tournament = rule.data  # type: ignore[assignment]
    return state_of(rule, (0,) * (tournament.ngram - 1), (0,) * tournament.remembered, 0)


def after(rule: RuleValue, state: State, token: int, fact: Candidate) -> State:
    tournament: Tournament = rule.data  # type: ignore[assignment]
    seen = state.seen
    if not skipped(tournament, state.written):
        seen = (state.hash, *seen)[:tournament.remembered]
    return state_of(rule, (*state.context, token)[1:], seen, state.written + 1)


def pack(rule: RuleValue) -> Packed:
    tournament: Tournament = rule.data  # type: ignore[assignment]
    keys, table = np.array(tournament.keys, np.int64), tournament.table
    return (keys.ctypes.data, len(keys), table.ctypes.data, len(table)), (keys, table)


def words(state: State) -> tuple[int, int]:
    return state.hash, int(state.marks)


@rule(Operation(marks.synthid, MAP, NEEDS_MASS), start=start, after=after, pack=pack, words=words)
def synthid(rows: Rows) -> Any:
    """At each depth p becomes p (1 + g - sum of g p), which is p (g + q), q being the sum of p
    where g is 0. The data are the Tournament."""
    out, tokens = [], np.arange(rows.values.shape[-1])
    for r, (state, tournament) in enumerate(zip(rows.states, rows.data, strict=True)):
        row = rows.values[r, :]
        if state.marks and tournament.keys:
            row = played(rows, r, rows.like(tournament.bits(state.hash, tokens).T))
        out.append(row)
    return rows.xp.stack(out)


def played(rows: Rows, r: int, bits: Any) -> Any:
    """The log-probabilities of row `r` after the tournament. `bits`: [depth, V]"""
    xp, row, probs = rows.xp, rows.logprobs[r, :], rows.probs[r, :]
    for depth in range(bits.shape[0]):
        won = bits[depth, :]
        factors = won + xp.sum((1 - won) * probs)
        with np.errstate(divide="ignore"):  # where nobody loses, no loser is left
            row, probs = row + xp.log(factors), probs * factors
    return row


def detect(ids: Sequence[int], tournament: Tournament, weighted: bool = True,
           threshold: float = THRESHOLD) -> Detection:
    """Look for the mark in token ids as they were written, without the prompt. The score is the
    mean of the bits, about 1/2 in unmarked text.

    `weighted`: earlier depths, which hold more of the mark, count more, from 10 to 1. A token
    counts if a whole context stands before it that did not come before.
    """
    width, depth = tournament.ngram - 1, len(tournament.keys)
    seen: tuple[int, ...] = (0,) * tournament.remembered
    found: list[Bits] = []
    for i in range(width, len(ids)):
        context = hash_of(ids[i - width:i])
        if context not in seen:
            found.append(tournament.bits(context, np.array([ids[i]]))[0])
        seen = (context, *seen)[:tournament.remembered]
    if not found:
        return NOTHING
    weights = np.linspace(FIRST, LAST, depth) if weighted else np.ones(depth)
    weights /= weights.sum()
    score = float((np.mean(found, axis=0) * weights).sum())
    deviation = 0.5 * sqrt((weights**2).sum() / len(found))
    z = (score - 0.5) / deviation
    return verdict(score, z, above(z), len(found), threshold)
