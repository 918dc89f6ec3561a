"""The rows of raw logits of one forward, and what rules and picks ask of them.

Two implementations of one interface: `Compiled` for float32 rows, by kernels that pass over a row
without a copy; `plain.Plain` for all others, in numpy and float64.
Rows are named by their number, `members` being several. They belong to the model and are valid
until its next forward.
"""
from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.reading.facts import RowFacts, facts_of
from unspool.kernels.reading.plain import Floats, Ids, Members, Plain
from unspool.kernels.reading.top import DIGITS, look_at_rows, sorted_rows, top_of_rows

MOST = 512  # tokens for which `top_of_rows` is the faster way


class Logits(Protocol):
    """`values` [R, V]; `table` [R, TABLE]: the facts of each row, see `facts`."""

    values: NDArray[Any]

    @property
    def table(self) -> Floats: ...
    @property
    def facts(self) -> list[list[float]]:
        """The table as plain numbers."""
        ...
    def top(self, members: Members, count: int) -> tuple[Ids, Floats]:
        """Ids and logits of the `count` likeliest tokens, [n, count] each, best first; equal ones
        by the lower id."""
        ...
    def look(self, members: Members, tokens: Sequence[int]) -> list[list[float]]:
        """The logit and the rank of one token for each row named. Rank 1 is the likeliest."""
        ...
    def wide(self, members: Members) -> Floats:
        """A float64 copy of some rows, [n, V]."""
        ...
    def alone(self, row: int) -> Logits:
        """A copy of one row, which outlives the forward."""
        ...


def logits_of(values: NDArray[Any], facts: RowFacts | None = None) -> Logits:
    """Rows [R, V] as Logits. `facts`: what the model that made them knows of them already."""
    if values.dtype == np.float32:
        return Compiled(values, facts)
    return Plain(np.asarray(values, dtype=np.float64))


class Compiled:
    """Float32 rows."""

    def __init__(self, values: NDArray[np.float32], facts: RowFacts | None = None) -> None:
        self.values = values if values[:1].flags.c_contiguous else np.ascontiguousarray(values)
        self.known = facts_of(self.values) if facts is None else facts

    @cached_property
    def addresses(self) -> NDArray[np.int64]:
        """[R, 3]: where each row, its records and its table lie."""
        every, blocks = np.arange(len(self.values)), (self.values, self.known.records, self.table)
        return np.stack([b.ctypes.data + b.strides[0] * every for b in blocks], -1)

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """[R, 2]: where each row and its records lie."""
        return np.ascontiguousarray(self.addresses[:, :2])

    @property
    def table(self) -> Floats:
        return self.known.table

    @cached_property
    def facts(self) -> list[list[float]]:
        return self.known.table.tolist()

    def top(self, members: Members, count: int) -> tuple[Ids, Floats]:
        vocab = self.values.shape[1]
        count, rows = min(count, vocab), self.rows[members]
        ids = np.empty((len(members), count), np.int64)
        values = np.empty(ids.shape)
        if count <= MOST:
            top_of_rows(rows.ctypes.data, len(rows), vocab, count, ids.ctypes.data,
                        values.ctypes.data)
            return ids, values
        room = np.empty(2 * vocab + DIGITS, np.int64)
        sorted_rows(rows.ctypes.data, len(rows), vocab, count, room.ctypes.data, ids.ctypes.data,
                    values.ctypes.data)
        return ids, values

    def look(self, members: Members, tokens: Sequence[int]) -> list[list[float]]:
        rows, ids = self.rows[members], np.array(tokens, np.int64)
        out = np.empty((len(ids), 2))
        look_at_rows(rows.ctypes.data, len(ids), self.values.shape[1], ids.ctypes.data,
                     out.ctypes.data)
        return out.tolist()

    def wide(self, members: Members) -> Floats:
        return self.values[members].astype(np.float64)

    def alone(self, row: int) -> Logits:
        own = slice(row, row + 1)
        facts = RowFacts(self.known.table[own].copy(), self.known.records[own].copy())
        return Compiled(self.values[own].copy(), facts)
