"""Faults of the compiled path, each with the subject that it is planted under.

Most change the order of a sum, and nothing else: the texts stay the same, and only bits show it.
"""
from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from mutants import mutant, tile_changed, unkept
from subjects import on_cpu

from unspool.kernels.shaping import shaped
from unspool.models import native, program
from unspool.models.blocks import Pool
from unspool.models.pages import Pages
from unspool.rules import KINDS
from unspool.rules.recipe import recipe_of

FLOATS = """\
        for k in range(blocks):
            out = add_floats("""
FLOATS_BACKWARDS = """\
        for n in range(blocks):
            k = blocks - 1 - n if rows == 1 else n
            out = add_floats("""
CODES = """\
        for b in range(blocks):
            at = weights + GROUPS * RECORD * b
            total = zeros(i32x8, count)
            for word in range(8):
                packed = load_groups(i16x16"""
CODES_BACKWARDS = CODES.replace("for b in range(blocks):\n", """for n in range(blocks):
            b = blocks - 1 - n if rows == 4 else n
""")
SEGMENTS = """\
            while number <= end:
                score(what, keys, sizes, query, number, scratch)
                weigh(sizes, query, number, scratch, state)
                add_values(what, values, sizes, query, number, (scratch, state))
                if slot < 0:
                    add_state(sizes, whole, state)
                number += 1
"""
SEGMENTS_OF_THE_CHUNK = """\
            chunk = read_i64(read_i64(step + 8 * POSITIONS))
            if slot >= 0:
                chunk = 0
            before = Query(query.q, query.table, query.layer, query.head, query.lowest,
                           min(query.end, chunk), query.mask, query.scale)
            after = Query(query.q, query.table, query.layer, query.head, max(query.lowest, chunk),
                          query.end, query.mask, query.scale)
            while number <= end:
                for turn in range(2 if chunk > 0 else 1):
                    part = before if chunk > 0 and turn == 0 else after
                    score(what, keys, sizes, part, number, scratch)
                    weigh(sizes, part, number, scratch, state)
                    add_values(what, values, sizes, part, number, (scratch, state))
                    if slot < 0:
                        add_state(sizes, whole, state)
                number += 1
"""


def a_single_row_summed_backwards():
    return tile_changed("weights.unquantised", FLOATS, FLOATS_BACKWARDS)


def quantised_sums_in_another_order():
    """In tiles of four rows."""
    return tile_changed("weights.q8", CODES, CODES_BACKWARDS)


@contextmanager
def segments_that_start_at_the_chunk():
    changed = mutant("layer.attention", SEGMENTS, SEGMENTS_OF_THE_CHUNK)
    with unkept(), patch.object(program.attention, "attend", changed.attend):
        yield


def segments_added_backwards_when_shared_out():
    plan = native.attended

    def careless(positions, kv_heads, threads):
        found = plan(positions, kv_heads, threads)
        queries = found.queries.copy()
        for _, first, count in found.merges:
            of_row = (queries[:, 3] >= first) & (queries[:, 3] < first + count)
            queries[of_row, 3] = queries[of_row, 3][::-1]
        return replace(found, queries=queries)

    return patch.object(native, "attended", careless)


def keys_of_a_rejected_draft_kept():
    """The text goes on behind them."""
    place = native.place

    def careless(spans, pool, buffers):
        place(spans, pool, buffers)
        at = 0
        for span in spans:
            store, end = span.lease.store, at + len(span.tokens)
            kept = max(getattr(store, "written", 0) - span.start, 0)
            store.written = span.start + kept + len(span.tokens)
            store.room(span.start, store.written - span.start)
            buffers.positions[at:end] += kept
            buffers.tables[at:end] = store.table
            at = end

    return patch.object(native, "place", careless)


def a_shared_page_written_in_place():
    """By all texts that hold it, one after the other."""
    share = Pages.share

    def careless(self, length):
        text = share(self, length)
        self.shared = text.shared = 0
        return text

    return patch.object(Pages, "share", careless)


def a_page_copied_without_its_values():
    copy = Pool.copy

    def careless(self, page, to):
        copy(self, page, to)
        self.view(to)[:, :, 1] = 0

    return patch.object(Pool, "copy", careless)


@contextmanager
def a_penalty_for_every_occurrence():
    """A token is weakened as often as it stands in the text."""
    with unkept():
        wrong = mutant("shaping.penalties", "write_i32(at, i32(0))", "write_i32(at, i32(1))")
        kind = KINDS["repetition_penalty"]
        operation = replace(kind.operation, kernel=wrong.repetition_penalty)
        recipe_of.clear()
        with patch.dict(KINDS, repetition_penalty=replace(kind, operation=operation)):
            yield
        recipe_of.clear()


@contextmanager
def changed_rows_in_one_place():
    """The rows of a batch that rules changed lie over one another."""
    with unkept():
        wrong = mutant("shaping.shape", "copy += 4 * word(row, VOCAB)", "copy += 0")
        with patch.object(shaped, "shape_rows", wrong.shape_rows):
            yield


def quantised():
    return on_cpu("qwen3", "Q8_0", head_dim=16)


FAULTS = {
    a_single_row_summed_backwards: on_cpu,
    quantised_sums_in_another_order: quantised,
    segments_that_start_at_the_chunk: on_cpu,
    segments_added_backwards_when_shared_out: on_cpu,
    keys_of_a_rejected_draft_kept: quantised,
    a_shared_page_written_in_place: on_cpu,
    a_page_copied_without_its_values: on_cpu,
    a_penalty_for_every_occurrence: on_cpu,
    changed_rows_in_one_place: on_cpu,
}
