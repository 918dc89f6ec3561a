"""The kernel that shapes rows: it reads each row's recipe, a table of operations, and carries it
out; then draws. Rows of many recipes are shaped in one call.

    recipe   int64 [1 + operations * STRIDE]: how many; of each its function's address, its kind,
             what it needs, and NUMBERS float64 words
    answer   float64 [rows, ANSWER], see there
"""
from __future__ import annotations

import numpy as np
from numba import types

from unspool.kernels.machine.atomic import call_rule, call_six
from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.simd import read_f64, read_i64, write_f64, write_i64
from unspool.kernels.reading.draw import DIVISOR as SEAT_DIVISOR
from unspool.kernels.reading.draw import LOGITS as SEAT_LOGITS
from unspool.kernels.reading.draw import PEAK_OF, PLACE
from unspool.kernels.reading.draw import RECORDS as SEAT_RECORDS
from unspool.kernels.reading.draw import ROW as SEAT
from unspool.kernels.reading.facts import FAULT, PEAK, RECORD, SEGMENT
from unspool.kernels.reading.facts import NORM as NORM_OF_ROW
from unspool.kernels.reading.facts import TABLE as TABLE_WORDS
from unspool.kernels.shaping.eights import come_near
from unspool.kernels.shaping.forms import forget_touched, refresh, renew, take_best
from unspool.kernels.shaping.row import (
    ALL,
    COPY,
    COPY_RECORDS,
    COPY_TABLE,
    COUNT,
    CUT,
    DENSE,
    DIRTY,
    DIVISOR,
    DRAW_OF_ROWS,
    EDIT,
    FIRST,
    FORM,
    IDS,
    KEEP,
    LIST,
    LOGITS,
    MAKE_DENSE,
    MAP,
    MASS_AND_ENTROPY,
    MORE_BEYOND,
    OWN_IDS,
    OWN_VALUES,
    RACE,
    RECIPE,
    RECORDS,
    ROOM,
    SEED,
    SHIFT,
    SORT_LIST,
    STATE,
    STATES,
    TABLE,
    UNKNOWN,
    VALUES,
    VOCAB,
    WANTED,
    WHOLE,
    WISH,
    WORDS,
    is_moved,
    logit,
    number,
    put,
    set_number,
    set_word,
    tool,
    word,
)

i64 = types.int64
STRIDE = 12
FUNCTION, KIND, NEEDS, NUMBERS = range(4)
HEAD = 64  # tokens that a cut is shown first
GROWTH = 8
SLOWER = 4096  # from here on a longer list costs nearly as much as sorting all
# Of each row: how many tokens a list holds (0: nothing is left, -1: it is no list), where the list
# begins, the pick and its log-probability, the log of the summed exp, and of what is no list shift,
# divisor and the address of its logits.
ANSWER = 8
SIZE, BEGIN, PICK, PICKED, NORM, MOVED, DIVIDED, SOURCE = range(ANSWER)


@inner
def cut(row: int, operation: int, state: int) -> None:
    """Ask a cut about the best tokens, ever more of them, until it knows what to keep."""
    size, vocab, listed = HEAD, word(row, VOCAB), word(row, FORM) == LIST
    kept = i64(UNKNOWN)
    set_word(row, MORE_BEYOND, 0)
    while True:
        if not listed:
            take_best(row, min(size, vocab))
        set_word(row, FIRST, 0)
        set_word(row, WISH, 0)
        kept = call_rule(read_i64(operation), row, operation + 8 * NUMBERS, state)
        if kept != UNKNOWN or word(row, MORE_BEYOND) == 0:
            break
        if word(row, WISH) > size:
            size = word(row, WISH)
        else:
            size *= GROWTH if size < SLOWER else GROWTH // 2
    first = word(row, FIRST)
    if kept == ALL and not listed:
        if first > 0:
            ids = word(row, IDS)
            call_rule(tool(row, MAKE_DENSE), row, 0, 0)
            for i in range(first):
                put(row, read_i64(ids + 8 * i), -np.inf)
            set_word(row, DIRTY, 1)
        return
    count = word(row, COUNT)
    kept = count if kept in (ALL, UNKNOWN) else min(kept, count)
    set_word(row, FORM, LIST)
    set_word(row, IDS, word(row, IDS) + 8 * first)
    set_word(row, VALUES, word(row, VALUES) + 8 * first)
    set_word(row, COUNT, max(kept - first, 0))


@inner
def apply(row: int, operation: int, state: int) -> None:
    kind, needs = read_i64(operation + 8 * KIND), read_i64(operation + 8 * NEEDS)
    if kind == EDIT or (kind == MAP and word(row, FORM) != LIST):
        call_rule(tool(row, MAKE_DENSE), row, 0, 0)
    if needs != 0:
        call_rule(tool(row, MASS_AND_ENTROPY), row, 0, 0)
    if kind == CUT:
        cut(row, operation, state)
        return
    call_rule(read_i64(operation), row, operation + 8 * NUMBERS, state)
    if word(row, FORM) == LIST:
        call_rule(tool(row, SORT_LIST), row, 0, 0)
    elif kind in (EDIT, MAP):
        set_word(row, DIRTY, 1)


@inner
def nothing_left(row: int) -> bool:
    if word(row, FORM) == LIST:
        return word(row, COUNT) == 0
    renew(row)
    table = word(row, TABLE)
    return not read_f64(table + 8 * PEAK) > -np.inf or read_f64(table + 8 * FAULT) != 0.0


@inner
def draw_from_list(row: int, answer: int) -> None:
    """The pick of a LIST, the first of equal ones, and the log of its summed exp."""
    ids, values, room = word(row, IDS), word(row, VALUES), word(row, ROOM)
    write_i64(room, 0)
    write_i64(room + 8, word(row, COUNT))
    places = row + 8 * SEED if word(row, WANTED) != 0 else 0
    call_six(tool(row, RACE), room, 1, ids, values, places, room + 16)
    winner, norm = int(read_f64(room + 16)), read_f64(room + 24)
    write_f64(answer + 8 * PICK, read_i64(ids + 8 * winner))
    write_f64(answer + 8 * PICKED, read_f64(values + 8 * winner) - norm)
    write_f64(answer + 8 * NORM, norm)


@inner
def draw_from_row(row: int, answer: int) -> None:
    """The same of a row that is no LIST. Undivided values are logits, and their mass is known."""
    noisy, by, moved = word(row, WANTED), number(row, DIVISOR), is_moved(row)
    if not moved:
        refresh(row)
    shift, norm, peak = 0.0, read_f64(word(row, TABLE) + 8 * NORM_OF_ROW), number_of_peak(row)
    if noisy != 0 or moved:
        seat = word(row, ROOM)
        for i in range(4):
            write_i64(seat + 8 * (PLACE + i), word(row, SEED + i))
        write_i64(seat + 8 * SEAT_LOGITS, word(row, LOGITS))
        write_i64(seat + 8 * SEAT_RECORDS, word(row, RECORDS))
        write_f64(seat + 8 * PEAK_OF, peak)
        write_f64(seat + 8 * SEAT_DIVISOR, by)
        out = seat + 8 * SEAT
        call_six(tool(row, DRAW_OF_ROWS), seat, 1, word(row, VOCAB), noisy, out + 16, out)
        write_f64(answer + 8 * PICK, read_f64(out))
        if moved:
            shift, norm = peak, read_f64(out + 8)
    write_f64(answer + 8 * NORM, norm)
    write_f64(answer + 8 * MOVED, shift)
    write_f64(answer + 8 * DIVIDED, by)
    write_i64(answer + 8 * SOURCE, word(row, LOGITS))
    if noisy != 0:
        picked = logit(row, int(read_f64(answer + 8 * PICK)))
        write_f64(answer + 8 * PICKED, (picked - shift) / by - norm)


@inner
def number_of_peak(row: int) -> float:
    return read_f64(word(row, TABLE) + 8 * PEAK)


@inner
def shape_row(row: int, answer: int) -> None:
    recipe, done = word(row, RECIPE), 0
    empty = nothing_left(row)
    while done < read_i64(recipe):
        operation = recipe + 8 * (1 + STRIDE * done)
        if not empty or read_i64(operation + 8 * KIND) == KEEP:  # a token may be forced
            apply(row, operation, word(row, STATES) + 8 * STATE * done)
            empty = nothing_left(row)
        done += 1
    write_i64(answer + 8 * SIZE, 0)
    if empty:
        return
    come_near(row)
    if word(row, FORM) == LIST:
        write_i64(answer + 8 * SIZE, word(row, COUNT))
        write_i64(answer + 8 * BEGIN, word(row, IDS))
        draw_from_list(row, answer)
    else:
        write_i64(answer + 8 * SIZE, -1)
        draw_from_row(row, answer)


@kernel("void(int64, int64, int64, int64, int64)")
def shape_rows(rows: int, count: int, answers: int, ids: int, values: int) -> None:
    """Shape `count` rows, each of WORDS words. `ids` (int64), `values` (float64): room for the
    lists, which lie one after the other; as much as the vocabulary times `count`.

    The copies of rows lie one after the other too, from those of the first row on. One that is no
    longer needed is written over, since what is in the cache is the faster place."""
    copy, records, table = word(rows, COPY), word(rows, COPY_RECORDS), word(rows, COPY_TABLE)
    for r in range(count):
        row = rows + 8 * WORDS * r
        set_word(row, COPY, copy)
        set_word(row, COPY_RECORDS, records)
        set_word(row, COPY_TABLE, table)
        set_word(row, FORM, WHOLE)
        for name in (IDS, OWN_IDS):
            set_word(row, name, ids)
        for name in (VALUES, OWN_VALUES):
            set_word(row, name, values)
        set_word(row, DIRTY, 0)
        set_number(row, SHIFT, 0.0)
        set_number(row, DIVISOR, 1.0)
        shape_row(row, answers + 8 * ANSWER * r)
        if word(row, DIRTY) != 0:
            forget_touched(row)
        if word(row, FORM) == LIST:
            end = word(row, IDS) + 8 * word(row, COUNT)
            values, ids = values + (end - ids), end
        elif word(row, FORM) == DENSE:
            copy += 4 * word(row, VOCAB)
            records += 8 * RECORD * (-(-word(row, VOCAB) // SEGMENT))
            table += 8 * TABLE_WORDS
