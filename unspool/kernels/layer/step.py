"""The words of one forward, which every operation of a program may read, and those of its rows.

A forward reads ROWS tokens, packed one after the other whatever text they belong to. WANTED of
them get a row of logits. Behind the last word stands one more for each layer: WANTED where the
logits of this inner layer are asked for, else 0.
"""
from __future__ import annotations

ONE = 0  # always 1: operations whose work does not depend on the forward
ROWS = 1
WANTED = 2
ATTENDED = 3  # entries of the table at QUERIES
MERGED = 4  # entries of the table at MERGES
TOKENS = 5  # address: int64 [ROWS]
POSITIONS = 6  # address: int64 [ROWS], of each token in its own text
TABLES = 7  # address: int64 [ROWS], of the page table of each token's text, see `pages`
CHOSEN = 8  # address: int64 [WANTED], rows of the forward
QUERIES = 9  # address: int64 [ATTENDED, 4]: row, first segment, last segment, slot or -1
MERGES = 10  # address: int64 [MERGED, 3]: row, first slot, number of slots
MASKS = 11  # address: int64 [ROWS], each of a byte for each key (1: seen), or 0: all up to itself
WORDS = 16
