"""Rows of logits as the definitions of rules see them: whole, of any array library.

A definition takes `Rows` and gives values back, -inf where it removes a token. It is written with
the functions of the array API standard on `rows.xp`, so that it runs on numpy arrays and on torch
tensors alike (there through array-api-compat). The compiled operations are held to it by tests.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from unspool.core.history import History
from unspool.kernels.reading.noise import Place

GENERATED, EVERYTHING = 0, 1  # which tokens a penalty counts


class Rows:
    """`values` [R, V], and of each row what its rule may look at:

    `histories`: the text so far; `states`: what the rule remembers; `data`: what of the rule is no
    number; `places`: where the row's noise comes from.
    """

    def __init__(self, values: Any, histories: Sequence[History | None] = (),
                 states: Sequence[Any] = (), data: Sequence[Any] = (),
                 places: Sequence[Place | None] = (), xp: Any = np) -> None:
        self.values, self.xp = values, xp
        self.histories, self.states, self.data, self.places = histories, states, data, places

    # ── what is true of the rows ─────────────────────────────────────────────────────────────────
    @cached_property
    def maximum(self) -> Any:
        """[R, 1]"""
        return self.xp.max(self.values, axis=-1, keepdims=True)

    @cached_property
    def kept(self) -> Any:
        """[R, V]: the tokens that are left."""
        return self.values > -self.xp.inf

    @cached_property
    def count(self) -> Any:
        """[R, 1]: how many are."""
        return self.sum(self.xp.astype(self.kept, self.values.dtype))

    @cached_property
    def logprobs(self) -> Any:
        """[R, V]"""
        moved = self.values - self.maximum
        return moved - self.xp.log(self.sum(self.xp.exp(moved)))

    @cached_property
    def probs(self) -> Any:
        """[R, V]"""
        return self.xp.exp(self.logprobs)

    @cached_property
    def entropy(self) -> Any:
        """[R, 1], in nats."""
        return self.sum(self.surprise)

    @property
    def surprise(self) -> Any:
        """[R, V]: -p log p, 0 where p is 0."""
        xp, p = self.xp, self.probs
        return xp.where(p > 0, -p * xp.where(p > 0, self.logprobs, 0.0), 0.0)

    @cached_property
    def rank(self) -> Any:
        """[R, V]: 0 for the likeliest token, of equal ones for the lowest id."""
        return self.place_by(-self.values)

    @cached_property
    def above(self) -> Any:
        """[R, V]: the probability of all tokens that come before each in rank."""
        return self.before(self.probs, -self.values)

    # ── tools ────────────────────────────────────────────────────────────────────────────────────
    def sum(self, x: Any) -> Any:
        return self.xp.sum(x, axis=-1, keepdims=True)

    def order_by(self, key: Any) -> Any:
        """[R, V]: the ids in ascending order of `key`, equal ones by id."""
        return self.xp.argsort(key, axis=-1, stable=True)

    def place_by(self, key: Any) -> Any:
        """[R, V]: where each id stands in that order."""
        return self.xp.argsort(self.order_by(key), axis=-1, stable=True)

    def ordered(self, x: Any, key: Any) -> Any:
        """[R, V]: `x` in ascending order of `key`."""
        return self.xp.take_along_axis(x, self.order_by(key), axis=-1)

    def unordered(self, x: Any, key: Any) -> Any:
        """[R, V]: back to the order of ids."""
        return self.xp.take_along_axis(x, self.place_by(key), axis=-1)

    def before(self, x: Any, key: Any) -> Any:
        """[R, V]: the sum of `x` over the tokens that come before each in ascending `key`."""
        ordered = self.ordered(x, key)
        return self.unordered(self.xp.cumulative_sum(ordered, axis=-1) - ordered, key)

    def drop(self, which: Any) -> Any:
        """The values without these tokens."""
        return self.xp.where(which, -self.xp.inf, self.values)

    def cut(self, which: Any) -> Any:
        """The same, but the likeliest token always stays."""
        return self.drop(which & (self.rank > 0))

    def like(self, x: Any) -> Any:
        """A numpy array as one of this library and type."""
        return self.xp.astype(self.xp.asarray(x), self.values.dtype)

    def marked(self, ids: Sequence[Iterable[int]]) -> Any:
        """[R, V]: the tokens named for each row. An id beyond the vocabulary names none."""
        vocab = self.values.shape[-1]
        found = np.zeros(self.values.shape, bool)
        for row, named in zip(found, ids, strict=True):
            which = np.fromiter(named, np.int64)
            row[which[(which >= 0) & (which < vocab)]] = True
        return self.xp.asarray(found)

    # ── the text so far ──────────────────────────────────────────────────────────────────────────
    @property
    def texts(self) -> list[History]:
        """Of each row; for rules that recall."""
        return [text for text in self.histories if text is not None]

    @cached_property
    def length(self) -> Any:
        """[R, 1]: tokens of the text, its prompt included."""
        return self.like(np.array([[text.length] for text in self.texts]))

    @cached_property
    def written(self) -> Any:
        """[R, 1]: tokens of the text behind its prompt."""
        return self.like(np.array([[text.length - text.prompt] for text in self.texts]))

    def counts(self, scope: Any, last: Any) -> Any:
        """[R, V]: how often each token stands in what is counted: of the text so far its generated
        part (scope GENERATED) or all of it (EVERYTHING), of that the last so many (-1: any)."""
        vocab = self.values.shape[-1]
        found = []
        for text, side, few in zip(self.histories, scope, last, strict=True):
            assert text is not None
            first = text.prompt if int(side[0]) == GENERATED else 0
            count = text.length if int(few[0]) < 0 else int(few[0])
            found.append(np.bincount(text.last(count, first), minlength=vocab))
        return self.like(np.stack(found))
