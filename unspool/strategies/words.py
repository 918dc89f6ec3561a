"""Words that a text must contain, and how far it has come with them. Token ids only.

A clause is met by any of its words. Words may overlap in the text: one token may end one and stand
in the middle of another. A text's progress follows from its tokens alone.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

Word = tuple[int, ...]
Clause = tuple[Word, ...]

EXACT = 8  # so many open clauses are arranged in every way to save tokens, more are not


class Progress(NamedTuple):
    """`met`: the clauses that the text contains, ascending. `tail`: its longest end that a word of
    another clause begins with; what the next tokens may complete."""

    met: tuple[int, ...] = ()
    tail: Word = ()


@dataclass(frozen=True, slots=True)
class Words:
    """`ordered`: each clause is met by a word that ends behind the word that met the one before."""

    clauses: tuple[Clause, ...]
    ordered: bool = False

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(sorted(letters(self)))

    @property
    def total(self) -> int:
        """The tokens of all clauses, one after another, each by its shortest word."""
        return sum(shortest(clause) for clause in self.clauses)

    def unmet(self, progress: Progress) -> list[int]:
        return [i for i in range(len(self.clauses)) if i not in progress.met]

    def open(self, progress: Progress) -> list[int]:
        """Clauses that the next token may meet."""
        unmet = self.unmet(progress)
        return unmet[:1] if self.ordered else unmet

    def after(self, progress: Progress, token: int) -> Progress:
        if token not in letters(self):
            return Progress(progress.met)
        text = (*progress.tail, token)
        now = [i for i in self.open(progress)
               if any(text[-len(word):] == word for word in self.clauses[i])]
        met = tuple(sorted((*progress.met, *now)))
        words = [word for i in self.unmet(Progress(met)) for word in self.clauses[i]]
        return Progress(met, max((overlap(text, word) for word in words), key=len, default=()))

    def follow(self, progress: Progress, tokens: Iterable[int]) -> Progress:
        for token in tokens:
            progress = self.after(progress, token)
        return progress

    def left(self, progress: Progress) -> int:
        """So many tokens write the rest of the words one after another."""
        return one_after_another(self, progress)

    def fits(self, progress: Progress, room: int) -> bool:
        """Whether `room` tokens can write the rest of the words. With more than `EXACT` clauses
        open: one after another."""
        return self.left(progress) <= room or (
            len(self.unmet(progress)) <= EXACT and fits_overlapping(self, progress, room))

    def fewest(self, progress: Progress) -> int:
        """The fewest tokens for which `fits` is true."""
        return next(room for room in range(self.left(progress) + 1) if self.fits(progress, room))

    def ways(self, progress: Progress) -> Iterator[Word]:
        """The rest of each word of a clause that is not met."""
        for i in self.unmet(progress):
            for word in self.clauses[i]:
                yield word[len(overlap(progress.tail, word)):]


def shortest(clause: Clause) -> int:
    return min(map(len, clause))


def overlap(text: Word, word: Word) -> Word:
    """The longest beginning of the word, not all of it, that the text ends with."""
    for size in range(min(len(text), len(word) - 1), 0, -1):
        if text[-size:] == word[:size]:
            return word[:size]
    return ()


# ── what is asked again and again ────────────────────────────────────────────────────────────────
@lru_cache(maxsize=64)
def letters(words: Words) -> frozenset[int]:
    return frozenset(t for clause in words.clauses for word in clause for t in word)


@lru_cache(maxsize=2**16)
def one_after_another(words: Words, progress: Progress) -> int:
    gain = 0
    for i in words.open(progress):
        rest = min(len(w) - len(overlap(progress.tail, w)) for w in words.clauses[i])
        gain = max(gain, shortest(words.clauses[i]) - rest)
    return sum(shortest(words.clauses[i]) for i in words.unmet(progress)) - gain


@lru_cache(maxsize=2**16)
def fits_overlapping(words: Words, progress: Progress, room: int) -> bool:
    """As `fits`, exactly: some order of the words, each begun as early as it can be."""
    if words.left(progress) <= room:
        return True
    if floor(words, progress) > room:
        return False
    for rest in words.ways(progress):
        then = words.follow(progress, rest)
        if len(then.met) > len(progress.met) and fits_overlapping(words, then, room - len(rest)):
            return True
    return False


def floor(words: Words, progress: Progress) -> int:
    """No text does with fewer tokens: each word can share no more than its longest overlap."""
    saved = savings(words)
    return sum(min(len(w) - max(saved[i, w], len(overlap(progress.tail, w)))
                   for w in words.clauses[i]) for i in words.unmet(progress))


@lru_cache(maxsize=64)
def savings(words: Words) -> dict[tuple[int, Word], int]:
    """How many tokens of each word of each clause a word of another clause can bring."""
    every = [(i, word) for i, clause in enumerate(words.clauses) for word in clause]
    return {(i, word): max((len(word) if within(word, other) else len(overlap(other, word))
                            for j, other in every if j != i), default=0) for i, word in every}


def within(word: Word, other: Word) -> bool:
    return any(other[at:at + len(word)] == word for at in range(len(other) - len(word) + 1))


def unreachable(clauses: tuple[Clause, ...], longest: int = 0, ordered: bool = False) -> str | None:
    """Why no text of at most `longest` tokens (0: any) can contain the words, None if one can."""
    if not clauses:
        return "no word is given; name one at least"
    if not all(clause and all(clause) for clause in clauses):
        return "a word has no tokens; leave it out"
    words = Words(clauses, ordered)
    if longest and not words.fits(Progress(), longest):
        return (f"the words take {words.fewest(Progress())} tokens, and at most {longest} may be "
                "written; allow more, or drop one")
    return None
