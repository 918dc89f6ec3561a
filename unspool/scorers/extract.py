"""The answer that a text gives: what a pattern finds, a number, or what stands in a box.

Each looks for the last one, since a text that reasons answers at its end. Knows nothing of tokens
but the bytes they add.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from unspool.core.branch import Branch
from unspool.scorers.answer import NUMBER, folded
from unspool.scorers.match import Place, check, last_matches
from unspool.scorers.text import Piece, bytes_before, shown, texts, written

Find = Callable[[Sequence[str]], Iterable[Place | None]]
BRACES = re.compile(r"\\boxed\s*\{|\\[{}]|[{}]")


def trimmed(text: str, place: Place | None) -> Place | None:
    """The place without white space at its ends; None where nothing else is there."""
    if place is None or not (inside := text[slice(*place)].strip()):
        return None
    start = text.index(inside, place[0])
    return start, start + len(inside)


def answers_at(branches: Sequence[Branch], piece: Piece, find: Find) -> list[str | None]:
    """The answers in the form in which they are counted; see `folded`."""
    said = texts(branches, piece)
    places = [trimmed(text, place) for text, place in zip(said, find(said), strict=True)]
    return [None if place is None else folded(text[slice(*place)])
            for text, place in zip(said, places, strict=True)]


def spans_at(branches: Sequence[Branch], piece: Piece, find: Find) -> list[Place | None]:
    """Where the answers stand, in bytes of the written text: the first, and the one behind."""
    out: list[Place | None] = []
    raw = [written(branch, piece) for branch in branches]
    said = [shown(data) for data in raw]
    for data, text, place in zip(raw, said, find(said), strict=True):
        inside = trimmed(text, place)
        out.append(inside and (bytes_before(data, inside[0]), bytes_before(data, inside[1])))
    return out


def numbers(texts: Sequence[str]) -> Iterable[Place | None]:
    """The last number of each text; "1,000.5", "-3", ".5" and "2e8" are numbers."""
    for text in texts:
        last: Place | None = None
        for match in NUMBER.finditer(text):
            last = match.span()
        yield last


def boxes(texts: Sequence[str]) -> Iterable[Place | None]:
    r"""What stands within the last `\boxed{...}` that is closed, braces within it in pairs."""
    for text in texts:
        opened: list[tuple[int, bool]] = []
        last: Place | None = None
        for brace in BRACES.finditer(text):
            mark = brace.group()
            if mark == "}" and opened:
                start, boxed = opened.pop()
                if boxed and (last is None or start > last[0]):
                    last = start, brace.start()
            elif mark == "{" or mark.startswith("\\boxed"):
                opened.append((brace.end(), mark != "{"))
        yield last


@dataclass(frozen=True, slots=True)
class Number:
    """The last number in the text, in plain digits: "1,000" and "1000.0" are one answer."""

    piece: Piece = field(repr=False)

    def answers(self, branches: Sequence[Branch]) -> list[str | None]:
        return answers_at(branches, self.piece, numbers)

    def spans(self, branches: Sequence[Branch]) -> list[Place | None]:
        return spans_at(branches, self.piece, numbers)


@dataclass(frozen=True, slots=True)
class Boxed:
    r"""What the last `\boxed{...}` holds, as texts of mathematics mark their result."""

    piece: Piece = field(repr=False)

    def answers(self, branches: Sequence[Branch]) -> list[str | None]:
        return answers_at(branches, self.piece, boxes)

    def spans(self, branches: Sequence[Branch]) -> list[Place | None]:
        return spans_at(branches, self.piece, boxes)


@dataclass(frozen=True, slots=True)
class Pattern:
    """What `group` (a number or a name; 0 is all of it) of the last match of `regex` holds, a
    regular expression of Python's `re`. Matches in which the group is empty are passed over.

    Case and the amount of white space do not count in an answer. Raises ParameterError for a wrong
    pattern or group, and for one that takes too long on these texts.
    """

    regex: str
    group: int | str = 0
    piece: Piece = field(kw_only=True, repr=False)

    def __post_init__(self) -> None:
        check(self.regex, self.group)

    def answers(self, branches: Sequence[Branch]) -> list[str | None]:
        return answers_at(branches, self.piece, self.find)

    def spans(self, branches: Sequence[Branch]) -> list[Place | None]:
        return spans_at(branches, self.piece, self.find)

    def find(self, texts: Sequence[str]) -> Sequence[Place | None]:
        return last_matches(self.regex, self.group, tuple(texts))
