"""Scorers of your own: functions that are given texts, or token ids, and give numbers or answers.

What a function gives is checked: another type, a wrong count or NaN is refused by name, before a
strategy ranks by it.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

from unspool.core.branch import Branch
from unspool.core.errors import ParameterError
from unspool.core.values import shown
from unspool.scorers.extract import spans_at
from unspool.scorers.match import Place
from unspool.scorers.text import Piece, texts

Given = list[Any]  # a str for each text, or a list of ids


def given_to(branches: Sequence[Branch], piece: Piece, ids: bool) -> Given:
    return [branch.tokens for branch in branches] if ids else list(texts(branches, piece))


def refuse(kind: str, function: Any, problem: str) -> NoReturn:
    name = getattr(function, "__name__", type(function).__name__)
    raise ParameterError(f"{kind} {name}: {problem}", kind)


def number(value: Any, kind: str, function: Any) -> float:
    """The value as a float; numbers of numpy and tensors of one number will do."""
    kind_of = str(getattr(value, "dtype", type(value).__name__))
    numeric = getattr(value, "ndim", 0) == 0 and not kind_of.endswith(("bool", "str", "bytes"))
    try:
        plain = float(value) if numeric else math.nan
    except (TypeError, ValueError, OverflowError):
        plain = math.nan
    if not math.isfinite(plain):
        refuse(kind, function, f"it gave {shown(value)}; it must give a finite number")
    return plain


def listed(values: Any, count: int, kind: str, function: Any) -> list[Any]:
    """The values as a list of `count`; an array or a tensor of one dimension will do."""
    if isinstance(values, str | bytes | dict | set):
        refuse(kind, function, f"it gave {shown(values)}; it must give a list of {count} numbers")
    try:
        out = list(values)
    except TypeError:
        refuse(kind, function, f"it gave {shown(values)}; it must give a list of {count} numbers")
    if len(out) != count:
        refuse(kind, function, f"it gave {len(out)} numbers for {count} texts; one for each")
    return out


@dataclass(frozen=True, slots=True)
class OwnReward:
    """A reward: `function(texts) -> numbers`, called once for all texts. With `ids` it is given
    lists of token ids, the ending one included."""

    function: Callable[[Given], Any]
    piece: Piece = field(repr=False)
    ids: bool = False

    def rewards(self, branches: Sequence[Branch]) -> list[float]:
        values = self.function(given_to(branches, self.piece, self.ids))
        return [number(value, "reward", self.function)
                for value in listed(values, len(branches), "reward", self.function)]


@dataclass(frozen=True, slots=True)
class OwnUtility:
    """A utility: `function(hypothesis, reference) -> number`, called for each pair of texts."""

    function: Callable[[Any, Any], Any]
    piece: Piece = field(repr=False)
    ids: bool = False
    states: ClassVar[bool] = False

    def table(self, branches: Sequence[Branch]) -> list[list[float]]:
        given = given_to(branches, self.piece, self.ids)
        return [[number(self.function(one, other), "utility", self.function) for other in given]
                for one in given]


@dataclass(frozen=True, slots=True)
class OwnExtractor:
    """An extractor: `function(text) -> answer`, called for each text. The answer can be anything
    that can be hashed and equals itself, None if there is none; it is counted as it is."""

    function: Callable[[Any], Any]
    piece: Piece = field(repr=False)
    ids: bool = False

    def answers(self, branches: Sequence[Branch]) -> list[Hashable | None]:
        return [self.countable(self.function(given))
                for given in given_to(branches, self.piece, self.ids)]

    def spans(self, branches: Sequence[Branch]) -> list[Place | None]:
        """The last place where the answer is written in the text. Raises ParameterError for an
        answer that is not: where such a one stands nobody can say."""
        answers = self.answers(branches)
        return spans_at(branches, self.piece, lambda said: map(self.place, said, answers))

    def place(self, text: str, answer: Hashable | None) -> Place | None:
        if answer is None:
            return None
        start = text.rfind(answer) if isinstance(answer, str) and answer else -1
        if start < 0:
            refuse("answer", self.function, f"its answer {shown(answer)} is not a part of the "
                   "text, so it cannot be said where it stands; give one that is")
        return start, start + len(str(answer))

    def countable(self, answer: Any) -> Hashable | None:
        try:
            hash(answer)
            countable = bool(answer == answer)
        except (TypeError, ValueError, RuntimeError):
            countable = False
        if not countable:
            refuse("answer", self.function, f"it gave {shown(answer)}; it must give something "
                   "that can be hashed and equals itself, or None")
        return answer  # type: ignore[no-any-return]
