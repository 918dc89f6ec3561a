"""The tokens of a text as one array, which texts that part share as far as they agree.

`Prefix` is the same text as a chain, which says who shares what; a history is for those who count.
"""
from __future__ import annotations

from array import array
from collections.abc import Iterable


class History:
    """`length` tokens, of which the first `prompt` are the prompt's. It never changes.

    The array may hold more than `length` tokens: those are of a text that went on from here.
    """

    __slots__ = ("tokens", "length", "prompt")

    def __init__(self, tokens: array[int], length: int, prompt: int) -> None:
        self.tokens, self.length, self.prompt = tokens, length, prompt

    def extend(self, token: int) -> History:
        """This text and one token more. The first to go on from here appends in place."""
        tokens, length = self.tokens, self.length
        if length == len(tokens):
            tokens.append(token)
        elif tokens[length] != token:
            tokens = tokens[:length]
            tokens.append(token)
        return History(tokens, length + 1, self.prompt)

    @property
    def address(self) -> int:
        """Where the tokens lie, as int32; until the history is extended."""
        return self.tokens.buffer_info()[0]

    def last(self, count: int, first: int = 0) -> list[int]:
        """The last `count` tokens, none before place `first`."""
        return self.tokens[max(self.length - count, first, 0):self.length].tolist()

    def alone(self) -> History:
        """A copy whose array nobody else extends, for a reader on another thread."""
        return History(self.tokens[:self.length], self.length, self.prompt)

    @property
    def everything(self) -> list[int]:
        return self.tokens[:self.length].tolist()

    @property
    def generated(self) -> list[int]:
        return self.tokens[self.prompt:self.length].tolist()


def history(prompt: Iterable[int]) -> History:
    tokens = array("i", prompt)
    return History(tokens, len(tokens), len(tokens))
