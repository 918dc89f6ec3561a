"""A decoder of the Llama families on the CPU, run by compiled kernels: numerics default and fast.

The whole forward is one program for a team of threads; what the forward reads and where its rows
are is told in a few words. In `default` a row's logits depend, bit for bit, on the tokens before
it alone.
"""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from unspool.core.errors import ModelError
from unspool.core.sockets import Span
from unspool.kernels.layer import step as words
from unspool.kernels.layer.pages import KINDS, PAGE, Layout
from unspool.kernels.layer.queries import attended
from unspool.kernels.machine.team import Team
from unspool.kernels.reading.facts import RowFacts
from unspool.kernels.reading.similarity import similarity
from unspool.models.blocks import Pool
from unspool.models.buffers import Buffers
from unspool.models.config import Config
from unspool.models.fingerprint import fingerprint
from unspool.models.native_weights import Weights, read
from unspool.models.options import Options
from unspool.models.packed import Packer
from unspool.models.pages import pages_of
from unspool.models.planes import Planes, asked
from unspool.models.program import Forward, scratch_bytes
from unspool.models.weights import Stored, expected, gguf_name


def native(config: Config, stored: Mapping[str, Stored], *, gguf: bool, numerics: str,
           notes: tuple[str, ...], options: Options) -> Native:
    """Pack the weights of a checkpoint that was checked against its config."""
    packer = Packer(config, stored, gguf, options.quantize)
    weights = read(config, packer)
    facts = (config, numerics, options.kv, options.quantize)
    names = [gguf_name(name) if gguf else name for name in expected(config)]
    print_ = fingerprint(facts, ((name, stored[name].raw) for name in names))
    notes = (*notes, *packer.notes())
    if options.kv != "f32":
        notes += (f"keys and values are kept as {options.kv}",)
    return Native(config, weights, print_, numerics, notes, options)


class Native:
    """A model behind the socket of `core.sockets.Model`."""

    device = "cpu"
    remembers = True

    def __init__(self, config: Config, weights: Weights, name: str, numerics: str,
                 notes: tuple[str, ...], options: Options) -> None:
        self.config, self.weights, self.fingerprint = config, weights, name
        self.numerics, self.notes = numerics, notes
        self.vocab, self.context = config.vocab, config.context
        self.layers, self.width, self.tied = config.layers, config.width, config.tied
        self.closed = False
        self.threads = options.threads or cores()
        self.layout = Layout(config.layers, config.kv_heads, config.size, KINDS[options.kv])
        self.token_bytes = self.layout.page // PAGE
        self.pool = Pool(self.layout)
        self.team = Team(self.threads, scratch_bytes(config))
        self.buffers = Buffers(config, weights.forms(numerics))
        self.forward = Forward(config, weights, self.buffers, self.layout, numerics)

    def score(self, spans: Sequence[Span]) -> Rows:
        """Logits [wanted tokens, vocab] in float32, a view that holds until the next forward."""
        if self.closed:
            raise ModelError("the model is closed: load it again")
        hidden, layers = asked(spans, self.layers, self.width)
        rows = sum(len(span.tokens) for span in spans)
        wanted = sum(span.rows for span in spans)
        last = max(span.start + len(span.tokens) for span in spans)
        buffers = self.buffers
        if not buffers.fit(rows, wanted, last):
            buffers.grow(rows, wanted, last)
            self.forward.build()
        if self.vocab != buffers.vocab:  # its tokenizer has fewer
            buffers.look_at(self.vocab)
            self.forward.build()
        place(spans, self.pool, buffers)
        plan = attended(buffers.positions[:rows], self.config.kv_heads, self.threads)
        if plan.slots > buffers.slots:
            buffers.grow_slots(plan.slots)
            self.forward.build()
        step = buffers.step
        step[words.ROWS], step[words.WANTED] = rows, wanted
        step[words.ATTENDED], step[words.QUERIES] = len(plan.queries), plan.queries.ctypes.data
        step[words.MERGED], step[words.MERGES] = len(plan.merges), plan.merges.ctypes.data
        if layers:
            step[words.WORDS :] = 0
            step[[words.WORDS + layer for layer in layers]] = wanted
        self.team.run(self.forward.program(wanted, hidden, layers), step)
        facts = RowFacts(buffers.facts.table[:wanted], buffers.facts.records[:wanted])
        return Rows(buffers.logits[:wanted, : self.vocab], facts,
                    self._planes(spans, rows, hidden, layers))

    def _planes(self, spans: Sequence[Span], rows: int, hidden: bool,
                layers: Sequence[int]) -> Planes:
        """What the forward left besides the rows, as views that hold until the next."""
        buffers = self.buffers
        states = buffers.room_for_hidden()[:rows, : self.width] if hidden else None
        inner = {layer: buffers.room_for_inner(layer)[:, : self.vocab] for layer in layers}
        return Planes(spans, states, inner)

    def close(self) -> None:
        """End the threads and free the weights."""
        if not self.closed:
            self.closed = True
            self.team.close()
            self.forward.close()
            self.buffers.close()
            del self.weights, self.pool


class Rows:
    """Scores of a forward that has been computed. All is asked for before the next forward."""

    def __init__(self, logits: NDArray[np.float32], facts: RowFacts, planes: Planes) -> None:
        self._logits, self._facts, self._planes = logits, facts, planes

    def rows(self) -> NDArray[np.float32]:
        return self._logits

    def facts(self) -> RowFacts:
        """What the head's pass over the vocabulary found out about the rows."""
        return self._facts

    def hidden(self, span: int) -> NDArray[np.float32]:
        """[rows, width], a copy: the last hidden states, see `planes`, of a span that asked."""
        states: NDArray[np.float32] = self._planes.hidden(span).copy()
        return states

    def similarity(self, span: int) -> list[float]:
        """[rows]: the largest cosine of each of these states with those of all tokens before."""
        return similarity(self._planes.text(span), self._planes.spans[span].rows)

    def inner(self, span: int, layer: int) -> NDArray[np.float32]:
        """[rows, vocab], a copy: the logits of an inner layer that the span asked for."""
        logits: NDArray[np.float32] = self._planes.logits(span, layer).copy()
        return logits


def place(spans: Sequence[Span], pool: Pool, buffers: Buffers) -> None:
    """Write down which token of which text each row is, and which rows want logits."""
    at = chosen = 0
    for span in spans:
        count = len(span.tokens)
        end = at + count
        pages = pages_of(span.lease, pool)
        pages.room(span.start, count)
        if count == 1:  # slices cost more than numbers
            buffers.tokens[at], buffers.positions[at] = span.tokens[0], span.start
            buffers.tables[at] = pages.table
        else:
            buffers.tokens[at:end] = span.tokens
            buffers.positions[at:end] = range(span.start, span.start + count)
            buffers.tables[at:end] = pages.table
        for row in range(end - span.rows, end):
            buffers.chosen[chosen] = row
            chosen += 1
        at = end


def cores() -> int:
    """What this process may use."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    return allowed or os.cpu_count() or 1

