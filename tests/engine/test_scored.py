"""Rows on their way from the model: to the host, with their turns, and kept over a forward."""
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from unspool.core.slot import PICK, Reading
from unspool.engine.scored import host, repaired, scored, together
from unspool.kernels.reading.facts import FAULT, facts_of
from unspool.kernels.reading.logits import Compiled, logits_of


@dataclass
class Turn:
    """What `scored` looks at of a turn."""

    rows: int
    reads: Reading = PICK
    layers: tuple = ()
    similarity: tuple = ()
    states: object = None
    inner: dict = field(default_factory=dict)

    @property
    def hidden(self):
        return bool(self.reads.planes)

    @property
    def job(self):
        return SimpleNamespace(strategy=SimpleNamespace(reads=self.reads))


class Scores:
    """Of a model that writes every forward into the same buffer."""

    buffer = np.zeros((3, 4), np.float32)

    def __init__(self, value, count):
        self.value, self.count = value, count

    def rows(self):
        self.buffer[:] = self.value
        return self.buffer[:self.count]


class Telling(Scores):
    def facts(self):
        facts = facts_of(self.rows())
        facts.table[:, 0] = 17
        return facts


class Planes(Scores):
    """Of a model that is asked for more: what it says names the span, and the layer."""

    def similarity(self, span):
        return [span / 10] * 2

    def hidden(self, span):
        return np.full((2, 3), float(span))

    def inner(self, span, layer):
        return torch.full((2, 4), 10.0 * span + layer)


def test_rows_of_a_device_come_to_the_host():
    rows = torch.tensor([[1.0, 2.0]])
    assert host(rows).tolist() == [[1.0, 2.0]]
    same = np.ones((1, 2))
    assert host(same) is same


def test_each_turn_has_its_rows_in_order_and_no_copy_is_made():
    turns = [Turn(1), Turn(0), Turn(2)]
    got = scored(Scores(5, 3), turns)
    assert [(turn, first) for turn, first in got.placed()] == [
        (turns[0], 0), (turns[1], 1), (turns[2], 1)]
    assert got.logits.values is not None and np.shares_memory(got.logits.values, Scores.buffer)


@pytest.mark.parametrize(("kind", "peak"), [(Scores, 5), (Telling, 17)])
def test_what_the_model_knows_of_its_rows_is_taken(kind, peak):
    got = scored(kind(5, 1), [Turn(1)])
    assert isinstance(got.logits, Compiled) and got.logits.facts[0][0] == peak


def test_what_a_turn_wants_besides_is_its_own():
    turns = [Turn(1), Turn(2, Reading(similarity=True)), Turn(0, Reading(hidden=True), (0,)),
             Turn(2, Reading(hidden=True), (0, 2))]
    scored(Planes(5, 3), turns)
    plain, near, chunk, all_ = turns
    assert plain.states is None and plain.inner == {} and plain.similarity == ()
    assert near.similarity == [0.1, 0.1] and near.states is None  # each what its reading asks for
    assert chunk.states is None and chunk.inner == {}  # one more part of a long text
    assert all_.similarity == () and all_.states.tolist() == [[3.0] * 3] * 2
    assert {layer: rows.tolist() for layer, rows in all_.inner.items()} == {
        0: [[30.0] * 4] * 2, 2: [[32.0] * 4] * 2}
    assert all(isinstance(rows, np.ndarray) for rows in all_.inner.values())


def test_parts_are_kept_although_the_next_forward_writes_over_them():
    def forwards():
        for value, count in ((1, 1), (2, 2), (3, 0)):
            yield scored(Scores(value, count), [Turn(count)])

    whole = together(forwards())
    assert whole.logits.values[:, 0].tolist() == [1, 2, 2]
    assert [first for _, first in whole.placed()] == [0, 1, 3]
    assert together([]) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_damaged_rows_are_made_readable_where_that_is_asked(dtype):
    nan, inf = np.nan, np.inf
    rows = np.array([[1, nan, 2], [inf, 1, -inf], [1, 2, 3], [nan, nan, nan], [-inf] * 3], dtype)
    found = repaired(logits_of(rows), [0, 1, 2, 4])
    most = np.finfo(dtype).max
    assert found.values[0].tolist() == [1, 0, 2] and found.values[1].tolist() == [most, 1, -inf]
    assert found.values[2].tolist() == [1, 2, 3] and np.isnan(found.values[3]).all()
    assert [bool(facts[FAULT]) for facts in found.facts] == [False, False, False, True, True]
    assert np.isnan(rows[0, 1])  # the model's own rows stay as they are
    sound = logits_of(rows[2:3])
    assert repaired(sound, [0]) is sound
