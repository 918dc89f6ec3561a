"""Packs a checkpoint's matrices for the compiled kernels, several one below the other if alike.

It knows names of weights and formats, and nothing of the decoder that uses them.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.weights.formats import FORMATS, Format
from unspool.kernels.weights.matmul import GROUPS, ROWS
from unspool.models.arena import Arena
from unspool.models.config import Config
from unspool.models.weights import Stored, gguf_name, row_order

INT8 = "Q8_0"  # what matrices of floats become on request
FLOATS = ("F64", "F32", "F16", "BF16")


@dataclass(frozen=True, slots=True)
class Matrix:
    """`data`: records; `rows` x `columns` are the matrix's own, without padding."""

    format: Format
    data: NDArray[np.uint8]
    rows: int
    columns: int

    @property
    def blocks(self) -> int:
        return self.columns // self.format.block

    @property
    def units(self) -> int:
        """Of a product."""
        return -(-self.rows // ROWS)


@dataclass(frozen=True, slots=True)
class Part:
    """One stored matrix: its format, and its bytes as [rows, bytes of a row] in order."""

    format: Format
    raw: NDArray[np.uint8]
    order: NDArray[np.int64] | None
    columns: int


class Packer:
    """Reads matrices and vectors by their names in transformers' spelling.

    `quantize`: None, or "int8" to round matrices of floats to Q8_0. `notes` collects what was
    unpacked or rounded.
    """

    def __init__(self, config: Config, stored: Mapping[str, Stored], gguf: bool,
                 quantize: str | None) -> None:
        self.config, self.stored, self.gguf, self.quantize = config, stored, gguf, quantize
        self.unpacked: set[str] = set()
        self.rounded = self.kept = 0
        self.arena = Arena()
        self.pool = ThreadPoolExecutor(len(os.sched_getaffinity(0))
                                       if hasattr(os, "sched_getaffinity") else os.cpu_count())

    def tensor(self, name: str) -> Stored:
        return self.stored[gguf_name(name) if self.gguf else name]

    def vector(self, name: str) -> NDArray[np.float32]:
        """A norm's weight or a bias."""
        values = np.ascontiguousarray(self.tensor(name).dequantised(), np.float32)
        order = row_order(name, self.config) if self.gguf else None
        return values if order is None else np.ascontiguousarray(values[order])

    def part(self, name: str) -> Part:
        tensor = self.tensor(name)
        order = row_order(name, self.config) if self.gguf else None
        rows, columns = tensor.shape
        if self.quantize and tensor.type in FLOATS:
            if columns % 32 == 0:
                self.rounded += 1
                return Part(FORMATS[INT8], to_int8(tensor.dequantised()), order, columns)
            self.kept += 1
        if tensor.type in FORMATS:
            return Part(FORMATS[tensor.type], tensor.raw.reshape(rows, -1), order, columns)
        self.unpacked.add(tensor.type)
        values = np.ascontiguousarray(tensor.dequantised(), np.float32)
        return Part(FORMATS["F32"], values.view(np.uint8).reshape(rows, -1), order, columns)

    def matrices(self, names: Sequence[str]) -> list[Callable[[], Matrix]]:
        """The named matrices below each other; those of one format in a row become one.

        They are packed by other threads; call what is returned for the result.
        """
        runs: list[list[Part]] = []
        for name in names:
            part = self.part(name)
            if runs and runs[-1][0].format is part.format:
                runs[-1].append(part)
            else:
                runs.append([part])
        return [self.pool.submit(pack, run, self.arena.take(shape_of(run))).result
                for run in runs]

    def notes(self) -> tuple[str, ...]:
        self.pool.shutdown()
        out = []
        if self.unpacked:
            out.append(f"weights of type {', '.join(sorted(self.unpacked))} have no kernel of "
                       "their own: unpacked exactly to float32")
        if self.rounded:
            out.append(f"{self.rounded} matrices of floats were rounded to 8 bits, as asked")
        if self.kept:
            out.append(f"{self.kept} matrices keep their floats: their columns are no multiple "
                       "of 32")
        return tuple(out)


def shape_of(parts: Sequence[Part]) -> tuple[int, int, int]:
    """Groups, blocks and bytes of a record of parts that become one matrix."""
    format, rows = parts[0].format, sum(len(part.raw) for part in parts)
    return -(-rows // ROWS) * GROUPS, parts[0].columns // format.block, format.record


def pack(parts: Sequence[Part], data: NDArray[np.uint8]) -> Matrix:
    """One matrix of the parts, all of one format, in `data`: zeros of `shape_of(parts)`."""
    format, columns = parts[0].format, parts[0].columns
    addresses = np.concatenate([_addresses(part) for part in parts])
    rows, groups = len(addresses), len(data)
    padded = np.concatenate([addresses, np.zeros(8 * groups - rows, np.int64)])
    format.pack(padded.ctypes.data, data.shape[1], 0, groups, data.ctypes.data)
    return Matrix(format.prepare(), data, rows, columns)


def _addresses(part: Part) -> NDArray[np.int64]:
    raw = part.raw
    out = raw.ctypes.data + raw.strides[0] * np.arange(len(raw), dtype=np.int64)
    return out if part.order is None else out[part.order]


def to_int8(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Floats [rows, columns] as raw Q8_0: of every 32, the largest size is 127 times the scale."""
    blocks = values.reshape(len(values), -1, 32)
    scale = (np.abs(blocks).max(-1) / 127).astype(np.float16)
    wide = scale.astype(np.float32)[..., None]
    codes = np.rint(np.divide(blocks, wide, out=np.zeros_like(blocks), where=wide > 0))
    raw = np.empty((*scale.shape, 34), np.uint8)
    raw[..., :2] = scale[..., None].view(np.uint8)
    raw[..., 2:] = codes.clip(-127, 127).astype(np.int8).view(np.uint8)
    return raw.reshape(len(values), -1)
