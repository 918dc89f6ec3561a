"""Texts in pages, forwards over them, and the attention of the reference on what was stored."""
from dataclasses import dataclass

import numpy as np
import torch

from unspool.kernels import reference
from unspool.kernels.layer import attention, keys, pages, queries, rope, step
from unspool.kernels.layer.step import WORDS
from unspool.kernels.machine.team import Program, Team
from unspool.kernels.machine.words import word_of
from unspool.models.blocks import Pool
from unspool.models.pages import Pages

FREQUENCIES = 10_000.0


def noise(*shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


@dataclass
class Shape:
    """One layer's heads, and how its keys are stored."""

    group: int = 3
    kv_heads: int = 2
    size: int = 16
    kind: int = pages.F32
    layers: int = 2
    window: int = 0
    threads: int = 1
    layer: int = 1
    scale: float = 0.3
    norms: tuple = ()  # weights of the norms of q and of k
    eps: float = 1e-6
    factor: float = 1.0
    positions: int = 2560

    @property
    def heads(self):
        return self.group * self.kv_heads

    @property
    def layout(self):
        return pages.Layout(self.layers, self.kv_heads, self.size, self.kind)

    def text(self, reserve=0):
        """In a pool of its own, with slabs of a few pages."""
        slab = 4 * self.layout.page
        return Pages(Pool(self.layout, slab, slab), reserve)

    def rows(self, count, seed=0):
        """Projected rows: [q | k | v]."""
        return noise(count, (self.heads + 2 * self.kv_heads) * self.size, seed=seed)

    def angles(self):
        frequencies = [FREQUENCIES ** (-2 * i / self.size) for i in range(self.size // 2)]
        return rope.angle_table(frequencies, self.factor, self.positions)


def address(array):
    return 0 if array is None else array.ctypes.data


class Forward:
    """Rows of some texts, each (pages, position), and optionally a mask of bytes for each."""

    def __init__(self, shape, rows, places, masks=None, split=None):
        self.shape, self.rows = shape, np.ascontiguousarray(rows, np.float32)
        for text, position in places:
            text.room(position, 1)
        self.positions = np.array([position for _, position in places], np.int64)
        self.tables = np.array([text.table for text, _ in places], np.int64)
        threads = {None: shape.threads, True: 1 << 20, False: 0}[split]
        self.work = queries.attended(self.positions, shape.kv_heads, threads)
        self.masks = None if masks is None else np.array([address(m) for m in masks], np.int64)
        self.words = np.zeros(WORDS, np.int64)
        self.words[step.ONE] = 1
        for word, value in (
            (step.ROWS, len(self.positions)), (step.ATTENDED, len(self.work.queries)),
            (step.MERGED, len(self.work.merges)), (step.POSITIONS, address(self.positions)),
            (step.TABLES, address(self.tables)), (step.QUERIES, address(self.work.queries)),
            (step.MERGES, address(self.work.merges)), (step.MASKS, address(self.masks)),
        ):
            self.words[word] = value
        self.team = Team(shape.threads, attention.scratch_bytes(shape.group, shape.size))

    def write(self):
        """Turn the queries and store keys and values."""
        shape, args = self.shape, np.zeros(keys.WORDS, np.int64)
        cos, sin = shape.angles()
        norms = shape.norms or (None, None)
        args[:] = (
            address(self.rows), self.rows.strides[0], address(cos), address(sin),
            address(norms[0]), address(norms[1]), word_of(shape.eps), shape.layer, shape.heads,
            shape.kv_heads, shape.size, shape.kind,
        )
        self.run((keys.write_keys.address, address(args), step.ROWS, 1, 1))
        return self

    def attend(self):
        """[rows, heads * size]."""
        shape, args = self.shape, np.zeros(attention.WORDS, np.int64)
        out = np.full((len(self.rows), shape.heads * shape.size + 3), 7.0, np.float32)
        slot = attention.slot_bytes(shape.group, shape.size, shape.kv_heads)
        slots = np.full((self.work.slots, slot // 4), np.nan, np.float32)
        args[:] = (
            address(self.rows), self.rows.strides[0], address(out), out.strides[0], address(slots),
            shape.layer, shape.group, shape.size, shape.kv_heads, shape.window,
            word_of(shape.scale),
        )
        operation = attention.attend(shape.group, shape.size, shape.kind)
        self.run(
            (operation.address, address(args), step.ATTENDED, shape.kv_heads, 1),
            (attention.merge.address, address(args), step.MERGED, shape.kv_heads, 1),
        )
        assert (out[:, -3:] == 7.0).all(), "written beyond the row"
        return out[:, :-3]

    def run(self, *operations):
        self.team.run(Program(operations), self.words)
        self.team.close()
        self.team = Team(self.shape.threads, len(self.team.scratch[0]))


def written(shape, count, text=None, seed=0):
    """A text whose first `count` tokens are stored; also the rows as they then are."""
    text = text or shape.text()
    forward = Forward(shape, shape.rows(count, seed), [(text, i) for i in range(count)]).write()
    return text, forward.rows


def blocks_of(text, layer):
    """All pages' bytes at one layer: [kv_heads, keys and values, pages, bytes of a block]."""
    return np.stack([text.pool.view(page)[layer] for page in text.numbers], axis=2)


def stored(shape, text, count):
    """The keys and values of `count` tokens as they are stored: two [count, heads, size]."""
    wide, many = shape.layout.padded, -(-count // pages.PAGE)
    blocks = blocks_of(text, shape.layer)[:, :, :many]
    numbers = floats(blocks[..., : pages.PAGE * wide * pages.BYTES[shape.kind]], shape.kind)
    k = numbers[:, 0].reshape(-1, many, wide, pages.PAGE).transpose(1, 3, 0, 2)
    v = numbers[:, 1].reshape(-1, many, pages.PAGE, wide).transpose(1, 2, 0, 3)
    k, v = (np.ascontiguousarray(x).reshape(-1, shape.kv_heads, wide)[:count] for x in (k, v))
    if shape.kind == pages.INT8:
        scales = np.ascontiguousarray(blocks[..., pages.PAGE * wide :]).view(np.float32)
        scales = scales.transpose(1, 2, 3, 0).reshape(2, -1, shape.kv_heads, 1)[:, :count]
        k, v = k * scales[0], v * scales[1]
    assert (v[..., shape.size :] == 0).all() and (k[..., shape.size :] == 0).all()
    return k[..., : shape.size], v[..., : shape.size]


def floats(data, kind):
    data = np.ascontiguousarray(data)
    if kind == pages.F32:
        return data.view(np.float32)
    if kind == pages.BF16:
        return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return data.view(np.int8).astype(np.float32)


def expected(shape, text, rows, first):
    """The reference's answer for rows at positions first, first + 1, ..."""
    k, v = stored(shape, text, first + len(rows))
    q = rows[:, : shape.heads * shape.size].reshape(len(rows), shape.heads, shape.size)
    wide = [torch.from_numpy(x.astype(np.float64)) for x in (q, k, v)]
    out = reference.attend(*wide, first, window=shape.window or None, scale=shape.scale)
    return out.flatten(1).numpy()
