"""The row that is being shaped, as compiled operations see it: its words, and what each may do.

A row has one of three forms:

    WHOLE  the model's own logits, only read: y = (x - SHIFT) / DIVISOR
    DENSE  the same in a copy (float32) that may be changed
    LIST   what is left: COUNT tokens, IDS (int64) and VALUES (float64, finite), best first,
           equal ones by the lower id

An operation is a kernel

    int64 operation(row, numbers, state)

`numbers`: address of its float64 parameters; `state`: address of the STATE words that its rule
remembers of this branch. Its kind says when it is called and what it answers:

    EDIT   on a DENSE row: changes logits by `put`. The answer is not used.
    MAP    on a LIST, or on a DENSE row: changes every value. Not used either.
    SCALE  on any form: divides by `divide`.
    CUT    on the best tokens of a row as in a LIST, more of which lie beyond when MORE_BEYOND is 1:
           answers how many to keep, ALL for all, beyond them too, or UNKNOWN to be asked again
           about a longer list, of WISH tokens if it set that. FIRST may be set to leave out that
           many of the best.
    PLACE  on any form: leaves the row alone. Its rule moved the place of the noise before.
    KEEP   on any form: leaves some tokens, as a LIST in any order or a DENSE row. Not used.
"""
from __future__ import annotations

from typing import Any

from numba import types

from unspool.kernels.machine.jit import inner
from unspool.kernels.machine.simd import (
    read_f32,
    read_f64,
    read_i32,
    read_i64,
    write_f32,
    write_f64,
    write_i8,
    write_i64,
)
from unspool.kernels.reading.facts import SEGMENT

f32, i8 = types.float32, types.int8
SIGNATURE = "int64(int64, int64, int64)"
EDIT, MAP, SCALE, CUT, PLACE_OF_NOISE, KEEP = range(6)
WHOLE, DENSE, LIST = range(3)
UNKNOWN, ALL = -1, 1 << 40
LEAST_DIVISOR = 1e-300  # a product of divisors must not become 0
STATE = 2  # words that a rule's state has for its operation

# Words of a row. Addresses and counts are int64, the others float64.
WORDS = 40
(LOGITS, RECORDS, TABLE, RECIPE, STATES, HISTORY, LENGTH, PROMPT, SEED, CHOICE, POSITION, DRAW,
 WANTED) = range(13)  # what the caller says of it
GIVEN = 16
(VOCAB, FORM, IDS, VALUES, COUNT, FIRST, MORE_BEYOND, SHIFT, DIVISOR, MASS, ENTROPY, DIRTY, COPY,
 COPY_RECORDS, COPY_TABLE, TOUCHED, COUNTS, ROOM, TOOLS, OWN_IDS, OWN_VALUES, WISH) = range(
    GIVEN, GIVEN + 22)
# Kernels that shaping calls by their addresses, so that they are compiled once.
BEST_FEW, BEST_MANY, FACTS_OF_SEGMENTS, FACTS_OF_ROWS, DRAW_OF_ROWS, RACE, MAKE_DENSE, SORT_LIST, \
    MASS_AND_ENTROPY = range(9)
# What a statistic costs is paid when an operation needs it.
NEEDS_MASS, NEEDS_ENTROPY = 1, 2  # of the values as they are: log of the summed exp; nats


@inner
def put(row: int, token: int, value: Any) -> None:
    """Change the logit of one token of a DENSE row."""
    write_f32(read_i64(row + 8 * LOGITS) + 4 * token, f32(value))
    write_i8(read_i64(row + 8 * TOUCHED) + token // SEGMENT, i8(1))


@inner
def logit(row: int, token: int) -> Any:
    """The logit of one token of a DENSE row, as a float64."""
    return types.float64(read_f32(read_i64(row + 8 * LOGITS) + 4 * token))


@inner
def word(row: int, name: int) -> int:
    return read_i64(row + 8 * name)


@inner
def number(row: int, name: int) -> float:
    return read_f64(row + 8 * name)


@inner
def set_word(row: int, name: int, value: int) -> None:
    write_i64(row + 8 * name, value)


@inner
def set_number(row: int, name: int, value: float) -> None:
    write_f64(row + 8 * name, value)


@inner
def tool(row: int, name: int) -> int:
    """The address of a kernel."""
    return read_i64(read_i64(row + 8 * TOOLS) + 8 * name)


@inner
def value_at(row: int, i: int) -> float:
    """The value of the token in place `i` of a LIST, or of the best tokens."""
    return read_f64(read_i64(row + 8 * VALUES) + 8 * i)


@inner
def token_at(row: int, i: int) -> int:
    return read_i64(read_i64(row + 8 * IDS) + 8 * i)


@inner
def written(row: int, i: int) -> int:
    """Token `i` of the text so far, its prompt included."""
    return types.int64(read_i32(read_i64(row + 8 * HISTORY) + 4 * i))


@inner
def is_moved(row: int) -> bool:
    """Whether the values of a row that is no LIST are others than its logits."""
    return read_f64(row + 8 * DIVISOR) != 1.0 or read_f64(row + 8 * SHIFT) != 0.0


@inner
def divide(row: int, by: float) -> None:
    """Divide all values, moved first so that the largest is 0 and nothing overflows."""
    if read_i64(row + 8 * FORM) == LIST:
        values = read_i64(row + 8 * VALUES)
        most = read_f64(values)
        for i in range(read_i64(row + 8 * COUNT)):
            write_f64(values + 8 * i, (read_f64(values + 8 * i) - most) / by)
    else:
        write_f64(row + 8 * SHIFT, read_f64(read_i64(row + 8 * TABLE)))
        product = read_f64(row + 8 * DIVISOR) * by
        write_f64(row + 8 * DIVISOR, max(product, LEAST_DIVISOR))
