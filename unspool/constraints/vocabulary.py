"""What tokens are made of, so that a text can be followed token by token. Knows no tokenizer."""
from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence


class Vocabulary:
    """The bytes that each token adds to a text, and which tokens add which. Built once for a model;
    two of them are never equal.

    `pieces[i]`: the bytes of token i; b"" for one that is no part of a text, such as a special.
    """

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.pieces = tuple(pieces)
        tokens: dict[bytes, list[int]] = {}
        for token, piece in enumerate(self.pieces):
            tokens.setdefault(piece, []).append(token)
        tokens.pop(b"", None)
        self.order = sorted(tokens)
        self.tokens = [tokens[piece] for piece in self.order]
        self.longest = max(map(len, self.order), default=0)
        self.alike = max(map(len, self.tokens), default=1)  # tokens with the same bytes, at most

    def of(self, token: int) -> bytes:
        return self.pieces[token] if token < len(self.pieces) else b""

    def begins(self, text: bytes) -> Iterator[tuple[bytes, list[int]]]:
        """The pieces that a text begins with, shortest first, and the tokens of each."""
        for size in range(1, min(len(text), self.longest) + 1):
            piece = text[:size]
            place = bisect_left(self.order, piece)
            if place == len(self.order) or not self.order[place].startswith(piece):
                return
            if self.order[place] == piece:
                yield piece, self.tokens[place]


class Ids:
    """The same for texts that are tuples of ids: each token stands for itself."""

    longest = alike = 1

    def of(self, token: int) -> tuple[int, ...]:
        return (token,)

    def begins(self, text: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], list[int]]]:
        if text:
            yield text[:1], [text[0]]


IDS = Ids()
