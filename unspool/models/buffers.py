"""The arrays that a forward of the compiled model works in. They grow and never shrink."""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.layer import step as words
from unspool.kernels.layer.attention import slot_bytes
from unspool.kernels.layer.rope import angle_table
from unspool.kernels.reading.facts import room_for
from unspool.kernels.weights.activations import BYTES, F32
from unspool.kernels.weights.matmul import ROWS
from unspool.models.config import Config

SLACK = 8  # floats that a vector may read or write behind a row


class Codes:
    """Rows of encoded activations in one form."""

    def __init__(self, form: int, rows: int, columns: int) -> None:
        self.form = form
        stride = -(-(columns + SLACK) * BYTES[form] // 64) * 64
        self.codes = np.zeros((rows, stride), np.uint8)
        blocks = 1 if form == F32 else -(-columns // 32)
        self.scales = np.zeros((rows, blocks), np.float32)
        self.sums = np.zeros((rows, blocks), np.float32)


class Buffers:
    """`rows`, `wanted`, `positions`: how much there is room for."""

    def __init__(self, config: Config, forms: set[int]) -> None:
        self.config, self.forms = config, forms
        self.most = max(config.width, config.inner, config.heads * config.size)
        self.vocab = config.vocab
        self.limits = (0, 0, 0)
        self.slots, self.states = 0, np.zeros(0, np.uint8)
        self.step = np.zeros(words.WORDS + config.layers, np.int64)
        self.step[words.ONE] = 1
        self.grow(1, 1, 1)

    def fit(self, rows: int, wanted: int, positions: int) -> bool:
        have = self.limits
        return rows <= have[0] and wanted <= have[1] and positions <= have[2]

    def grow(self, rows: int, wanted: int, positions: int) -> None:
        """Make room, and for more than was asked, so that growing is rare."""
        had = self.limits
        asked = zip((rows, wanted, positions), had, (16, 1, 256), strict=True)
        limits = tuple(h if n <= h else max(least, 1 << (n - 1).bit_length())
                       for n, h, least in asked)
        if limits[0] != had[0]:
            self._rows(limits[0])
        if limits[1] != had[1]:
            self.logits = floats(limits[1], padded(self.config.vocab))
            self.facts = room_for(limits[1], self.vocab)
            self.chosen = np.zeros(limits[1], np.int64)
            self.inner: dict[int, NDArray[np.float32]] = {}
            self.step[words.CHOSEN] = self.chosen.ctypes.data
        if limits[2] != had[2]:
            rope = self.config.rope
            self.cos, self.sin = angle_table(rope.frequencies, rope.factor, limits[2])
        self.limits = (limits[0], limits[1], len(self.cos))

    def _rows(self, rows: int) -> None:
        config = self.config
        heads = config.heads + 2 * config.kv_heads
        self.x = floats(rows, padded(config.width))
        self.qkv = floats(rows, padded(heads * config.size))
        self.seen = floats(rows, padded(config.heads * config.size))
        self.gated = floats(rows, padded(2 * config.inner))
        self.codes = {form: Codes(form, rows, self.most) for form in self.forms}
        self.hidden: NDArray[np.float32] | None = None
        self.tokens, self.positions, self.tables = (np.zeros(rows, np.int64) for _ in range(3))
        self.step[words.TOKENS] = self.tokens.ctypes.data
        self.step[words.POSITIONS] = self.positions.ctypes.data
        self.step[words.TABLES] = self.tables.ctypes.data

    def room_for_hidden(self) -> NDArray[np.float32]:
        """[rows, width]: last hidden states. Forwards that do not ask for them take no room."""
        if self.hidden is None:
            self.hidden = floats(self.limits[0], self.config.width)
        return self.hidden

    def room_for_inner(self, layer: int) -> NDArray[np.float32]:
        """[wanted, vocab]: logits of an inner layer, made when it is first asked for."""
        if layer not in self.inner:
            self.inner[layer] = floats(self.limits[1], padded(self.config.vocab))
        return self.inner[layer]

    def look_at(self, vocab: int) -> None:
        """Take facts over fewer tokens than the head has."""
        self.vocab = vocab
        self.facts = room_for(self.limits[1], vocab)

    def grow_slots(self, slots: int) -> None:
        """Room for the states of `slots` segments of attention."""
        config = self.config
        group = config.heads // config.kv_heads
        self.slots = max(slots, 2 * self.slots)
        self.states = np.zeros(self.slots * slot_bytes(group, config.size, config.kv_heads),
                               np.uint8)

    def close(self) -> None:
        self.__dict__.clear()


def floats(rows: int, columns: int) -> NDArray[np.float32]:
    return np.zeros((rows, columns + SLACK), np.float32)


def padded(columns: int) -> int:
    """What a product writes may end with rows of weights that are padding."""
    return -(-columns // ROWS) * ROWS


def address(array: Any) -> int:
    return int(array.ctypes.data)
