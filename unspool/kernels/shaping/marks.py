"""Operations of the watermarks. What they mark, and how a mark is found, the rules say."""
from __future__ import annotations

import numpy as np
from numba import types

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.simd import read_f64, read_i8, read_i32, read_i64, write_f64
from unspool.kernels.reading.facts import exp_of, log_of
from unspool.kernels.reading.twister import comes_early
from unspool.kernels.shaping.forms import take_best
from unspool.kernels.shaping.row import (
    COUNT,
    FORM,
    LIST,
    MASS,
    ROOM,
    SIGNATURE,
    VALUES,
    VOCAB,
    logit,
    number,
    put,
    token_at,
    value_at,
    word,
)

i8, i64 = types.int8, types.int64
TRIED = 40  # likeliest tokens of which selfhash asks whether they are green
SLOTS = 1_000_003  # numbers of the table that selfhash hashes by
MULTIPLIER = 6364136223846793005  # of the linear congruential generator of newlib and musl


@inner
def lift(row: int, i: int, token: int, bias: float) -> None:
    """Raise a token, which in a LIST stands in place `i`."""
    if word(row, FORM) == LIST:
        write_f64(word(row, VALUES) + 8 * i, value_at(row, i) + bias)
    else:
        put(row, token, logit(row, token) + bias)


# ── KGW ──────────────────────────────────────────────────────────────────────────────────────────
# Numbers: the bias; of the vocabulary how many tokens there are, and how many are green; and for
# selfhash the key and the address of its table (lefthash: 0).
# State: the address of the context, 0 where the text is too short for one. For lefthash it is the
# green tokens (int8 [vocabulary]), for selfhash the hashes of the tokens before, and first how many
# these are (int64).
@kernel(SIGNATURE)
def kgw(row: int, numbers: int, state: int) -> int:
    context, bias = read_i64(state), read_f64(numbers)
    if context != 0 and read_i64(numbers + 32) == 0:
        lift_greens(row, bias, context, read_i64(numbers + 8))
    elif context != 0:
        lift_own_greens(row, bias, context, numbers)
    return 0


@inner
def lift_greens(row: int, bias: float, greens: int, vocab: int) -> None:
    listed = word(row, FORM) == LIST
    for i in range(word(row, COUNT) if listed else word(row, VOCAB)):
        token = token_at(row, i) if listed else i
        if token < vocab and read_i8(greens + token) != i8(0):
            lift(row, i, token, bias)


@inner
def lift_own_greens(row: int, bias: float, context: int, numbers: int) -> None:
    """Of the likeliest tokens those that are green after themselves."""
    if word(row, FORM) != LIST:
        take_best(row, min(TRIED, word(row, VOCAB)))
    vocab, count = read_i64(numbers + 8), read_i64(numbers + 16)
    for i in range(min(TRIED, word(row, COUNT))):
        token = token_at(row, i)
        seed = own_seed(context, token, read_i64(numbers + 24), read_i64(numbers + 32))
        if token < vocab and comes_early(seed, vocab, count, token, word(row, ROOM)):
            lift(row, i, token, bias)


@inner
def own_seed(context: int, token: int, key: int, table: int) -> int:
    """The least product of key, the token's hash and that of a token of the window it ends; its low
    bits, as of a number modulo 2^64 - 1."""
    own = i64(read_i32(table + 4 * (token % SLOTS))) + 1
    least = key * own * own
    for i in range(read_i64(context)):
        least = min(least, key * read_i64(context + 8 * (1 + i)) * own)
    return least if least >= 0 else least - 1


# ── Gumbel ───────────────────────────────────────────────────────────────────────────────────────
@kernel(SIGNATURE)
def gumbel_watermark(row: int, numbers: int, state: int) -> int:
    """The row stays: the place of its noise is another before it is shaped."""
    return 0


# ── SynthID ──────────────────────────────────────────────────────────────────────────────────────
# Numbers: the address of the keys (int64) and how many there are; that of the sampling table (int8)
# and its size. State: the hash of the context, and 1 where the row is marked.
# In ROOM lie the log-probabilities and the probabilities.
@kernel(SIGNATURE)
def synthid(row: int, numbers: int, state: int) -> int:
    depth = read_i64(numbers + 8)
    if depth == 0 or read_i64(state + 8) == 0:
        return 0
    listed = word(row, FORM) == LIST
    count = word(row, COUNT) if listed else word(row, VOCAB)
    logprobs, probs = word(row, ROOM), word(row, ROOM) + 8 * count
    for i in range(count):
        logprob = (value_at(row, i) if listed else logit(row, i)) - number(row, MASS)
        write_f64(logprobs + 8 * i, logprob)
        write_f64(probs + 8 * i, exp_of(logprob))
    for d in range(depth):
        play(row, count, read_i64(state), read_i64(read_i64(numbers) + 8 * d), numbers)
    for i in range(count):
        if listed:
            write_f64(word(row, VALUES) + 8 * i, read_f64(logprobs + 8 * i))
        else:
            put(row, i, read_f64(logprobs + 8 * i))
    return 0


@inner
def play(row: int, count: int, context: int, key: int, numbers: int) -> None:
    """One depth of the tournament: p becomes p (g + q), q being the sum of p where g is 0."""
    table, size = read_i64(numbers + 16), read_i64(numbers + 24)
    logprobs, probs = word(row, ROOM), word(row, ROOM) + 8 * count
    listed, lost = word(row, FORM) == LIST, 0.0
    for i in range(count):
        if not wins(hashed(context, token_at(row, i) if listed else i), key, table, size):
            lost += read_f64(probs + 8 * i)
    for_lost = log_of(lost) if lost > 0.0 else -np.inf
    for_won = log_of(1.0 + lost)
    for i in range(count):
        won = wins(hashed(context, token_at(row, i) if listed else i), key, table, size)
        change, factor = for_won if won else for_lost, 1.0 + lost if won else lost
        write_f64(logprobs + 8 * i, read_f64(logprobs + 8 * i) + change)
        write_f64(probs + 8 * i, read_f64(probs + 8 * i) * factor)


@inner
def wins(ngram: int, key: int, table: int, size: int) -> bool:
    """Whether g is 1."""
    place = hashed(ngram, key)
    place = place & (size - 1) if size & (size - 1) == 0 else place % size
    return read_i8(table + place) != i8(0)


@inner
def hashed(before: int, number: int) -> int:
    """One step of the hash, modulo 2^64."""
    return (before + number) * MULTIPLIER + 1
