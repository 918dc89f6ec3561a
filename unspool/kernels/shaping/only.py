"""Leaving of a row only tokens whose ids are known: if they are few its cost is theirs, not the
vocabulary's."""
from __future__ import annotations

import numpy as np

from unspool.kernels.machine.atomic import call_rule
from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.simd import read_i64, write_f64, write_i64
from unspool.kernels.shaping.row import (
    COUNT,
    DIRTY,
    DIVISOR,
    FORM,
    IDS,
    LIST,
    MAKE_DENSE,
    SHIFT,
    SIGNATURE,
    VALUES,
    VOCAB,
    logit,
    number,
    put,
    set_word,
    token_at,
    tool,
    value_at,
    word,
)

MANY = 512  # from here on to sort a list costs more than to look at the whole vocabulary


@inner
def place(row: int, i: int, token: int, value: float) -> None:
    """Make a token the `i`-th of a list."""
    write_i64(word(row, IDS) + 8 * i, token)
    write_f64(word(row, VALUES) + 8 * i, value)


@inner
def among(token: int, ids: int, count: int) -> bool:
    """Whether a token is one of ascending ids."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if read_i64(ids + 8 * middle) < token:
            low = middle + 1
        else:
            high = middle
    return low < count and read_i64(ids + 8 * low) == token


@inner
def remove_others(row: int, ids: int, count: int) -> None:
    """The same as a DENSE row."""
    call_rule(tool(row, MAKE_DENSE), row, 0, 0)
    i = 0
    for token in range(word(row, VOCAB)):
        if i < count and read_i64(ids + 8 * i) == token:
            i += 1
        else:
            put(row, token, -np.inf)
    set_word(row, DIRTY, 1)


@inner
def keep_only(row: int, ids: int, count: int) -> None:
    """Leave of a row of any form `count` tokens, whose ids ascend: as a LIST, unless they are many.
    """
    if count > MANY and word(row, FORM) != LIST:
        remove_others(row, ids, count)
        return
    kept = 0
    if word(row, FORM) == LIST:
        for i in range(word(row, COUNT)):
            if among(token_at(row, i), ids, count):
                place(row, kept, token_at(row, i), value_at(row, i))
                kept += 1
    else:
        shift, by, vocab = number(row, SHIFT), number(row, DIVISOR), word(row, VOCAB)
        for i in range(count):
            token = read_i64(ids + 8 * i)
            if token < vocab:
                place(row, kept, token, (logit(row, token) - shift) / by)
                kept += 1
        set_word(row, FORM, LIST)
    set_word(row, COUNT, kept)


@kernel(SIGNATURE)
def only_allowed(row: int, numbers: int, state: int) -> int:
    """STATE: address of int64 ids, ascending, and how many."""
    keep_only(row, read_i64(state), read_i64(state + 8))
    return 0
