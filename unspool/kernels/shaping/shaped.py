"""Rows of float32 logits shaped by the kernel, and what is left of each."""
from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from math import inf, isfinite
from threading import local
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unspool.core.history import History
from unspool.kernels.reading.draw import DRAW as DRAW_WORDS
from unspool.kernels.reading.draw import ROW, draw_of_rows, race
from unspool.kernels.reading.facts import (
    RECORD,
    SEGMENT,
    TABLE,
    RowFacts,
    facts_of_rows,
    facts_of_segments,
)
from unspool.kernels.reading.logits import Compiled
from unspool.kernels.reading.noise import Place, bits
from unspool.kernels.reading.plain import Floats, Ids
from unspool.kernels.reading.top import DIGITS, sorted_rows, top_of_rows
from unspool.kernels.shaping import row as at
from unspool.kernels.shaping.forms import make_dense, mass_and_entropy
from unspool.kernels.shaping.shape import (
    ANSWER,
    BEGIN,
    DIVIDED,
    MOVED,
    NORM,
    PICK,
    PICKED,
    SIZE,
    SOURCE,
    shape_rows,
)
from unspool.kernels.shaping.sorting import sort_list

Words = NDArray[np.int64]
MINE = local()


@dataclass(frozen=True, slots=True, eq=False)
class Left:
    """What is left of one row: `ids` [K] and their values [K], all finite; `norm` is the log of
    their summed exp. The ids ascend, or the values descend."""

    ids: Ids
    values: Floats
    norm: float


NOTHING = Left(np.zeros(0, np.int64), np.zeros(0), -inf)


class Task(NamedTuple):
    """What shapes one row: the address of a recipe's table, the states of its rules, the text so
    far, and the place of the noise (None: no pick is wanted, and no rule draws)."""

    recipe: int
    states: Words | None = None
    history: History | None = None
    place: Place | None = None
    wanted: bool = False  # a pick


@cache
def tools() -> Words:
    """The addresses of the kernels that shaping calls."""
    kernels = (top_of_rows, sorted_rows, facts_of_segments, facts_of_rows, draw_of_rows, race,
               make_dense, sort_list, mass_and_entropy)
    return np.array([kernel.address for kernel in kernels], np.int64)


def room_for(vocab: int, longest: int) -> tuple[Words, NDArray[np.int32], NDArray[np.int8]]:
    """Rooms of this thread: to work in, with a word for each token of the vocabulary and of the
    `longest` text, and two that hold zeros between calls."""
    rooms = MINE.__dict__.setdefault("rooms", {})
    if vocab not in rooms or len(rooms[vocab][0]) < longest:
        segments = -(-vocab // SEGMENT)
        words = max(2 * vocab + DIGITS, ROW + 2 + DRAW_WORDS * segments, 2 * longest) + 8
        rooms.clear()
        rooms[vocab] = (np.empty(words, np.int64), np.zeros(vocab, np.int32),
                        np.zeros(segments, np.int8))
    return rooms[vocab]


class Shaped:
    """The rows of some tasks. `i` is a row's place among them. Valid until the model's next
    forward."""

    def __init__(self, logits: Compiled, members: Sequence[int], tasks: Sequence[Task]) -> None:
        self.logits, self.members = logits, members
        count, vocab = len(members), logits.values.shape[1]
        self.ids, self.values = np.empty(count * vocab, np.int64), np.empty(count * vocab)
        self.copies = np.empty((count, vocab), np.float32)
        self.facts = RowFacts(np.empty((count, TABLE)),
                              np.empty((count, -(-vocab // SEGMENT), RECORD)))
        self.answers = np.zeros((count, ANSWER))
        rows = self.rows_for(members, tasks, vocab)
        shape_rows(rows.ctypes.data, count, self.answers.ctypes.data, self.ids.ctypes.data,
                   self.values.ctypes.data)

    def rows_for(self, members: Sequence[int], tasks: Sequence[Task], vocab: int) -> Words:
        """What the kernel is told of each row."""
        rows = np.empty((len(members), at.WORDS), np.int64)
        longest = max((task.history.length for task in tasks if task.history), default=0)
        room, counts, touched = room_for(vocab, longest)
        rows[:, at.LOGITS:at.TABLE + 1] = self.logits.addresses[members]
        rows[:, at.VOCAB], rows[:, at.TOOLS] = vocab, tools().ctypes.data
        rows[:, at.ROOM], rows[:, at.COUNTS] = room.ctypes.data, counts.ctypes.data
        rows[:, at.TOUCHED] = touched.ctypes.data
        rows[:, at.COPY] = self.copies.ctypes.data
        rows[:, at.COPY_RECORDS] = self.facts.records.ctypes.data
        rows[:, at.COPY_TABLE] = self.facts.table.ctypes.data
        told = array("Q", chain.from_iterable(map(task_words, tasks)))
        rows[:, at.RECIPE:at.WANTED + 1] = np.frombuffer(told, np.int64).reshape(len(tasks), -1)
        return rows

    # One flat list each: a list for every row would keep the garbage collector busy.
    @cached_property
    def numbers(self) -> list[float]:
        return self.answers.ravel().tolist()

    @cached_property
    def words(self) -> list[int]:
        return self.answers.ravel().view(np.int64).tolist()

    @cached_property
    def sizes(self) -> list[int]:
        return self.answers.view(np.int64)[:, SIZE].tolist()

    @cached_property
    def picks(self) -> list[tuple[int, float]]:
        tokens, logprobs = self.answers[:, PICK].tolist(), self.answers[:, PICKED].tolist()
        return list(zip(map(int, tokens), logprobs, strict=True))

    def empty(self, i: int) -> bool:
        return self.sizes[i] == 0

    def span(self, i: int) -> slice | None:
        """Where the list of a row lies; None if the row is no list."""
        size = self.sizes[i]
        begin = (self.words[ANSWER * i + BEGIN] - self.ids.ctypes.data) // 8
        return None if size < 0 else slice(begin, begin + size)

    @cached_property
    def changed(self) -> Compiled:
        """The copies of rows, whose facts hold as far as `top` asks for them."""
        return Compiled(self.copies, self.facts)

    def whole(self, i: int) -> tuple[Compiled, int]:
        """Where the logits of a row that is no list are: the rows, and its number among them."""
        offset = self.words[ANSWER * i + SOURCE] - self.copies.ctypes.data
        place = offset // self.copies.strides[0]
        copied = 0 <= place < len(self.copies)
        return (self.changed, place) if copied else (self.logits, self.members[i])

    def source(self, i: int) -> NDArray[np.float32]:
        """[V]: the logits of a row that is no list."""
        rows, number = self.whole(i)
        row: NDArray[np.float32] = rows.values[number]
        return row

    def divided(self, i: int, logits: Floats) -> Floats:
        moved, by = self.numbers[ANSWER * i + MOVED], self.numbers[ANSWER * i + DIVIDED]
        with np.errstate(over="ignore"):
            return np.asarray((logits - moved) / by)

    def left(self, i: int) -> Left:
        if self.empty(i):
            return NOTHING
        own = self.span(i)
        if own is not None:
            return Left(self.ids[own], self.values[own], self.numbers[ANSWER * i + NORM])
        values = self.divided(i, self.source(i).astype(np.float64))
        ids = np.flatnonzero(np.isfinite(values))
        return Left(ids, values[ids], self.numbers[ANSWER * i + NORM])

    def pick(self, i: int) -> tuple[int, float]:
        """The token drawn, and its log-probability."""
        return self.picks[i]

    def processed(self, i: int, token: int) -> float:
        """The log-probability of a token; -inf if it was removed."""
        own, norm = self.span(i), self.numbers[ANSWER * i + NORM]
        if own is not None:
            found = np.flatnonzero(self.ids[own] == token)
            return float(self.values[own][found[0]]) - norm if len(found) else -inf
        logit = float(self.source(i)[token])
        if not isfinite(logit):
            return -inf
        return float(self.divided(i, np.float64(logit))) - norm  # type: ignore[arg-type]

    def top(self, i: int, count: int) -> list[tuple[int, float]]:
        """The likeliest tokens with their log-probabilities, best first, ties by the lower id."""
        own, norm = self.span(i), self.numbers[ANSWER * i + NORM]
        if own is not None:
            own = slice(own.start, min(own.stop, own.start + count))
            found = zip(self.ids[own].tolist(), self.values[own].tolist(), strict=True)
            return [(token, value - norm) for token, value in found]
        rows, number = self.whole(i)
        [ids], [logits] = rows.top([number], count)
        values = self.divided(i, logits) - norm
        return [(t, v) for t, v in zip(ids.tolist(), values.tolist(), strict=True) if isfinite(v)]


def task_words(task: Task) -> tuple[int, ...]:
    """The words of a row from RECIPE on that its task says."""
    history, states = task.history, task.states
    text = (0, 0, 0) if history is None else (history.address, history.length, history.prompt)
    place = bits(task.place or (0, 0, 0, 0))
    return (task.recipe, 0 if states is None else states.ctypes.data, *text,
            *place, int(task.wanted))
