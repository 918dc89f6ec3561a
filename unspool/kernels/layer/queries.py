"""Cuts the attention of one forward into units of work: the tables QUERIES and MERGES.

A forward of many rows has enough units; of a few rows, each long text is shared out by segments.
It knows positions and nothing of what is attended to.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.layer.attention import SEGMENT

Words = NDArray[np.int64]

ENOUGH = 4  # units for each thread
UNSPLIT = np.empty((0, 3), np.int64)


@dataclass(frozen=True, slots=True)
class Attended:
    """`queries` [n, 4]: row, first segment, last segment, slot or -1; `merges` [m, 3]: row, first
    slot, number of slots. `slots`: how many are used."""

    queries: Words
    merges: Words
    slots: int


ALONE = Attended(np.array([[0, 0, 0, -1]], np.int64), UNSPLIT, 0)  # one short text


def most_slots(kv_heads: int, threads: int, context: int) -> int:
    """More than any forward needs over texts of `context` tokens."""
    rows = -(-ENOUGH * threads // kv_heads) - 1
    return rows * -(-context // SEGMENT)


def attended(positions: Words, kv_heads: int, threads: int) -> Attended:
    """`positions` [rows] of the forward's tokens."""
    rows = len(positions)
    if rows == 1 and positions[0] < SEGMENT:
        return ALONE
    last = positions // SEGMENT
    if rows * kv_heads >= ENOUGH * threads or not last.any():
        queries = np.zeros((rows, 4), np.int64)
        queries[:, 0] = np.arange(rows)
        queries[:, 2] = last
        queries[:, 3] = -1
        return Attended(queries, UNSPLIT, 0)
    entries, merges, slots = [], [], 0
    for row, end in enumerate(last.tolist()):  # few rows
        if end == 0:
            entries.append((row, 0, 0, -1))
            continue
        entries += [(row, i, i, slots + i) for i in range(end + 1)]
        merges.append((row, slots, end + 1))
        slots += end + 1
    return Attended(np.array(entries, np.int64), np.array(merges, np.int64), slots)
