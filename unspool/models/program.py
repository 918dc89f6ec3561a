"""The forward of a decoder of the Llama families, as a program of kernels.

One list of operations, written as one would say it: embed; in each layer norm, project, turn and
store the keys, attend, project, norm, gate, project; then norm and the head. Where hidden states or
inner layers are asked for, another list has a few operations more. It knows no spans.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unspool.kernels.layer import attention, keys, rowwise
from unspool.kernels.layer import step as words
from unspool.kernels.layer.pages import Layout
from unspool.kernels.machine.jit import Kernel
from unspool.kernels.machine.team import Program
from unspool.kernels.machine.words import word_of
from unspool.kernels.weights import embed, matmul, projection
from unspool.kernels.weights.activations import F32
from unspool.models.buffers import SLACK, Buffers, address
from unspool.models.config import Config
from unspool.models.native_weights import Layer, Linear, Weights, form_of
from unspool.models.packed import Matrix

LEAST = 2**15  # bytes of weights that are worth the taking


def scratch_bytes(config: Config) -> int:
    group = config.heads // config.kv_heads
    longest = max(config.width, config.inner, config.heads * config.size) + SLACK
    return max(attention.scratch_bytes(group, config.size), 4 * longest)


class Operations:
    """A program in the making."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, ...]] = []
        self.keep: list[Any] = []

    def add(self, kernel: Kernel, args: Sequence[int], kind: int, units: int,
            least: int = 1) -> None:
        """`units` of work for each of what the step's word `kind` counts."""
        own = np.array(args, np.int64)
        self.keep.append(own)
        self.rows.append((kernel.address, address(own), kind, units, least))


class Forward:
    """The programs of a model: with the head, and without for forwards that want no logits; with
    hidden states of every row, and with logits of inner layers, once these are asked for."""

    def __init__(self, config: Config, weights: Weights, buffers: Buffers, layout: Layout,
                 numerics: str) -> None:
        self.config, self.weights, self.buffers = config, weights, buffers
        self.layout, self.numerics = layout, numerics
        self.deep: dict[tuple[bool, bool, bool], Program] = {}
        self.inner: frozenset[int] = frozenset()  # layers that were ever asked for
        self.build()

    def program(self, wanted: int, hidden: bool = False, layers: Sequence[int] = ()) -> Program:
        """For `wanted` rows of logits; `layers`: inner ones whose logits these want too."""
        if hidden or (wanted and layers):
            return self._deeper(wanted > 0, hidden, layers if wanted else ())
        return self.whole if wanted else self.silent

    def build(self) -> None:
        """Again, after the buffers have moved."""
        self.deep.clear()
        ops = self._stack(frozenset(), hidden=False)
        self.silent = Program(ops.rows, ops.keep)
        self._head(ops)
        self.whole = Program(ops.rows, ops.keep)

    def _deeper(self, head: bool, hidden: bool, layers: Sequence[int]) -> Program:
        """One program serves whatever layers are asked for, and words of the step leave out those
        that are not: there are few programs, and threads may look at an old one for ever."""
        if not self.inner.issuperset(layers):
            self.inner |= frozenset(layers)
            self.deep.clear()
        which = head, hidden, bool(layers)
        if which not in self.deep:
            ops = self._stack(self.inner if layers else frozenset(), hidden)
            if head:
                self._head(ops)
            self.deep[which] = Program(ops.rows, ops.keep)
        return self.deep[which]

    def _stack(self, inner: frozenset[int], hidden: bool) -> Operations:
        """All that comes before the head."""
        ops = Operations()
        self._embed(ops)
        for index, layer in enumerate(self.weights.layers):
            if index in inner:
                self._inner(ops, index)
            self._layer(ops, index, layer)
        if hidden:
            self._hidden(ops)
        return ops

    def _embed(self, ops: Operations) -> None:
        matrix, x = self.weights.embedding, self.buffers.x
        args = [address(matrix.data), matrix.blocks, address(x), x.strides[0]]
        ops.add(embed.embedding(matrix.format.id), args, words.ROWS, 1)

    def _layer(self, ops: Operations, index: int, layer: Layer) -> None:
        config, buffers = self.config, self.buffers
        self._norm(ops, layer.norm, layer.qkv, words.ROWS)
        self._linear(ops, layer.qkv, buffers.qkv, words.ROWS)
        self._attention(ops, index, layer)
        self._encode(ops, rowwise.copy, layer.out, buffers.seen, config.heads * config.size)
        self._linear(ops, layer.out, buffers.x, words.ROWS, add=1)
        self._norm(ops, layer.mlp_norm, layer.gate_up, words.ROWS)
        self._linear(ops, layer.gate_up, buffers.gated, words.ROWS)
        self._encode(ops, rowwise.gate, layer.down, buffers.gated, config.inner)
        self._linear(ops, layer.down, buffers.x, words.ROWS, add=1)

    def _attention(self, ops: Operations, index: int, layer: Layer) -> None:
        config, buffers = self.config, self.buffers
        group, qkv, seen = config.heads // config.kv_heads, buffers.qkv, buffers.seen
        norms = [0 if weight is None else address(weight)
                 for weight in (layer.q_norm, layer.k_norm)]
        ops.add(keys.write_keys, [
            address(qkv), qkv.strides[0], address(buffers.cos), address(buffers.sin), *norms,
            word_of(config.eps), index, config.heads, config.kv_heads, config.size,
            self.layout.kind,
        ], words.ROWS, 1)  # fmt: skip
        args = [
            address(qkv), qkv.strides[0], address(seen), seen.strides[0], address(buffers.states),
            index, group, config.size, config.kv_heads, config.windows[index] or 0,
            word_of(config.size**-0.5),
        ]  # fmt: skip
        attend = attention.attend(group, config.size, self.layout.kind)
        ops.add(attend, args, words.ATTENDED, config.kv_heads)
        ops.add(attention.merge, args, words.MERGED, config.kv_heads)

    def _inner(self, ops: Operations, index: int) -> None:
        """Logits of what `index` layers made of the rows that are wanted: no norm, as DoLa has it
        (arXiv:2309.03883). The product is the head's, so a row's bits are its own."""
        head, x, count = self.weights.head, self.buffers.x, words.WORDS + index
        for form in head.forms(self.numerics):
            ops.add(rowwise.chosen, self._row(x, self.config.width, form), count, 1)
        self._linear(ops, head, self.buffers.room_for_inner(index), count)

    def _hidden(self, ops: Operations) -> None:
        """The last norm of every row, as floats: what the head would multiply."""
        config, x, out = self.config, self.buffers.x, self.buffers.room_for_hidden()
        args = [address(x), x.strides[0], config.width, F32, address(out), out.strides[0], 0, 0, 0,
                address(self.weights.norm), word_of(config.eps), 0]
        ops.add(rowwise.norm, args, words.ROWS, 1)

    def _head(self, ops: Operations) -> None:
        """Norm, logits and their facts, of the rows that are wanted."""
        head, facts = self.weights.head, self.buffers.facts
        self._norm(ops, self.weights.norm, head, words.WANTED)
        piece, segments = head.pieces[0], facts.records.shape[1]
        args = [*self._product(head, piece, 0, self.buffers.logits, words.WANTED),
                self.buffers.vocab, segments, address(facts.records), address(facts.table)]
        form = form_of(piece, self.numerics)
        ops.add(projection.projection(piece.format.id, form), args, words.ONE, segments)
        ops.add(projection.gather_facts, args, words.WANTED, 1)

    def _norm(self, ops: Operations, weight: Any, linear: Linear, count: int) -> None:
        """RMS norm of the residual stream, in the forms that a product wants."""
        config, x = self.config, self.buffers.x
        gather = int(count == words.WANTED)
        for form in linear.forms(self.numerics):
            args = [*self._row(x, config.width, form), address(weight), word_of(config.eps), gather]
            ops.add(rowwise.norm, args, count, 1)

    def _encode(self, ops: Operations, kernel: Kernel, linear: Linear, rows: Any,
                size: int) -> None:
        parts = 4 if kernel is rowwise.gate and size % 128 == 0 else 1
        for form in linear.forms(self.numerics):
            args = [*self._row(rows, size, form), parts]
            ops.add(kernel, args, words.ROWS, parts)

    def _row(self, rows: Any, size: int, form: int) -> list[int]:
        """The words that the operations on rows have in common."""
        to = self.buffers.codes[form]
        return [address(rows), rows.strides[0], size, form, address(to.codes), to.codes.strides[0],
                address(to.scales), address(to.sums), to.scales.strides[0]]

    def _linear(self, ops: Operations, linear: Linear, out: Any, count: int, add: int = 0) -> None:
        """Products with encoded rows; each piece writes below the one before."""
        above = 0
        for piece in linear.pieces:
            args = self._product(linear, piece, above, out, count, add)
            least = max(1, LEAST * piece.units // piece.data.nbytes)
            product = matmul.product(piece.format.id, form_of(piece, self.numerics))
            ops.add(product, args, words.ONE, piece.units, least)
            above += piece.rows

    def _product(self, linear: Linear, piece: Matrix, above: int, out: Any, count: int,
                 add: int = 0) -> list[int]:
        """The words of a product that writes from column `above` on."""
        x = self.buffers.codes[form_of(piece, self.numerics)]
        bias = 0 if linear.bias is None else address(linear.bias) + 4 * above
        return [
            address(piece.data), piece.blocks, address(x.codes), x.codes.strides[0],
            address(x.scales), address(x.sums), x.scales.strides[0], address(out) + 4 * above,
            out.strides[0], bias, add, count,
        ]  # fmt: skip

    def close(self) -> None:
        self.__dict__.clear()
