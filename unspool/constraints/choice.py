"""The text is one of these. Every way of spelling each of them in tokens may be written, so the
model is not held to the tokenizer's own."""
from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from operator import index
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from unspool.constraints.vocabulary import IDS, Ids, Vocabulary
from unspool.core.errors import ParameterError
from unspool.core.values import shown

Text = Any  # bytes, or a tuple of token ids
MOST_TEXTS, MOST_SYMBOLS = 2**16, 2**20  # of all together


class Place(NamedTuple):
    """What may still be written: the texts `first` .. `last` - 1, of which `depth` symbols (bytes
    or ids) are."""

    first: int
    last: int
    depth: int


NOWHERE = Place(0, 0, 0)  # no text begins like this
OVER = Place(0, 0, 1)  # one was written, and an end token


@dataclass(frozen=True, slots=True)
class Choice:
    """`texts`, ascending and none twice, a trie in one tuple: those that begin alike stand in a
    row. `ends`: the tokens that end a text.

    A state is a Place. No state that allowed tokens lead to is a dead end: a token is allowed only
    if the rest can be spelt.
    """

    texts: tuple[Text, ...]
    tokens: Vocabulary | Ids
    ends: tuple[int, ...] = ()
    ways: tuple[bytes, ...] = field(init=False, repr=False, compare=False)
    known: dict[Place, NDArray[np.int64]] = field(
        init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        symbols = {text[i:i + 1] for text in self.texts for i in range(len(text))}
        if all(any(self.steps(symbol)) for symbol in symbols):  # as bytes mostly are
            ways = [b"\1" * (len(text) + 1) for text in self.texts]
        else:
            ways = [self.ways_of(text) for text in self.texts]
        object.__setattr__(self, "ways", tuple(ways))

    def start(self) -> Place:
        return Place(0, len(self.texts), 0)

    def after(self, state: Place, token: int) -> Place:
        """The place behind a token: NOWHERE when it was not allowed."""
        if token in self.ends:
            return OVER if state != OVER and self.complete(state) else NOWHERE
        return self.beyond(state, self.tokens.of(token))

    def allowed(self, state: Place) -> NDArray[np.int64]:
        """Ascending ids, the same array for the same state."""
        known = self.known.get(state)
        return self.known.setdefault(state, self.find(state)) if known is None else known

    def complete(self, state: Place) -> bool:
        """Whether what was written is one of the texts."""
        if state.first == state.last:
            return state == OVER
        return len(self.texts[state.first]) == state.depth

    def done(self, state: Place) -> bool:
        """Whether it is and no other begins with it: nothing may follow but an end token."""
        if state == OVER:
            return True
        return self.complete(state) and len(self.allowed(state)) == len(self.ends)

    @property
    def endings(self) -> int:
        """No more tokens than this may end a text in one place."""
        return len(self.ends) + len(self.texts) * self.tokens.alike

    # ── how texts are spelt ──────────────────────────────────────────────────────────────────────
    def beyond(self, state: Place, piece: Text) -> Place:
        if not piece or state.first == state.last:
            return NOWHERE
        text = self.texts[state.first][:state.depth] + piece
        first = bisect_left(self.texts, text, state.first, state.last)
        last = bisect_right(self.texts, text, first, state.last, key=lambda t: t[:len(text)])
        return Place(first, last, len(text)) if first < last else NOWHERE

    def find(self, state: Place) -> NDArray[np.int64]:
        """The ids that `allowed` keeps."""
        end = state.depth + self.tokens.longest
        ids = set(self.ends) if state != OVER and self.complete(state) else set()
        rests = {text[state.depth:end] for text in self.texts[state.first:state.last]}
        steps = {piece: tokens for rest in rests for piece, tokens in self.steps(rest)}
        for piece, tokens in steps.items():
            there = self.beyond(state, piece)
            if any(self.ways[i][there.depth] for i in range(there.first, there.last)):
                ids.update(tokens)
        out = np.array(sorted(ids), np.int64)
        out.flags.writeable = False
        return out

    def steps(self, text: Text) -> Iterable[tuple[Text, list[int]]]:
        """The pieces that a text begins with and tokens that add them and do not end it."""
        for piece, tokens in self.tokens.begins(text):
            if own := [token for token in tokens if token not in self.ends]:
                yield piece, own

    def ways_of(self, text: Text) -> bytes:
        """From each place of a text, 1 if its rest can be spelt."""
        ways = bytearray(len(text) + 1)
        ways[-1] = 1
        for at in reversed(range(len(text))):
            rest = text[at:at + self.tokens.longest]
            ways[at] = any(ways[at + len(piece)] for piece, _ in self.steps(rest))
        return bytes(ways)

    def __str__(self) -> str:
        return f"choice={shown([spoken(text) for text in self.texts])}"


def choice(texts: Any, vocabulary: Vocabulary, ends: Collection[int] = ()) -> Choice:
    """The constraint that what is written is one of `texts`: strings, or lists of token ids.

    `vocabulary`: the bytes of the model's tokens. `ends`: the tokens that end a text, which are no
    part of one; they part "yes" from "yes please". Texts given twice count once.
    Raises ParameterError for what is no such list, an empty text, one that the vocabulary cannot
    spell, ids that do not exist or end a text, and two texts that nothing could part.
    """
    if not isinstance(texts, list | tuple | set | frozenset):
        refuse(f"={shown(texts)}: must be a list of texts, or of lists of token ids; "
               "e.g. ['yes', 'no']")
    if not texts:
        refuse("=[]: no text is left to write; name one at least")
    if len(texts) > MOST_TEXTS:
        refuse(f" with {len(texts)} entries: must be at most {MOST_TEXTS}; give fewer")
    kinds = {isinstance(text, str) for text in texts}
    if len(kinds) > 1:
        refuse(f"={shown(texts)}: texts and lists of ids; give all in one form")
    vocab, stops, words = len(vocabulary.pieces), tuple(sorted(set(ends))), kinds == {True}
    read = {in_bytes(text) if words else in_ids(text, vocab, stops) for text in texts}
    if (size := sum(map(len, read))) > MOST_SYMBOLS:
        refuse(f" with {size} bytes or ids: must be at most {MOST_SYMBOLS} in all; give less")
    made = Choice(tuple(sorted(read)), vocabulary if words else IDS, stops)
    check(made)
    return made


def check(made: Choice) -> None:
    """Raises ParameterError for a text that cannot be written, or not be ended."""
    for text, ways in zip(made.texts, made.ways, strict=True):
        if not ways[0]:
            refuse(f"={shown(spoken(text))}: this model has no tokens that spell it; leave it out, "
                   "or give a list of ids")
    for text, longer in zip(made.texts, made.texts[1:], strict=False):
        if not made.ends and longer[:len(text)] == text:
            refuse(f"={shown([spoken(text), spoken(longer)])}: one begins with the other, and no "
                   "end token can part them; drop one, or name an eos_token_id")


def in_bytes(text: str) -> bytes:
    if not text:
        refuse("=['']: each must have a character; drop ''")
    try:
        return text.encode()
    except UnicodeEncodeError:
        refuse(f"={shown(text)}: must be text that UTF-8 can write; take out the lone surrogates")


def in_ids(text: Any, vocab: int, ends: tuple[int, ...]) -> tuple[int, ...]:
    if not isinstance(text, list | tuple | np.ndarray):
        refuse(f"={shown(text)}: must be a text or a list of token ids")
    if len(text) == 0:
        refuse("=[[]]: each must have a token; drop []")
    return tuple(one_id(token, vocab, ends) for token in text)


def one_id(token: Any, vocab: int, ends: tuple[int, ...]) -> int:
    try:
        number = -1 if isinstance(token, bool) else index(token)
    except TypeError:
        number = -1
    if not 0 <= number < vocab:
        refuse(f": {shown(token)} is no token id; ids run from 0 to {vocab - 1}")
    if number in ends:
        refuse(f": token {number} ends the text, and is written by itself; leave it out")
    return number


def spoken(text: Text) -> Any:
    return text.decode() if isinstance(text, bytes) else list(text)


def refuse(what: str) -> NoReturn:
    raise ParameterError(f"choice{what}", "choice")
