"""Tokens that are named: removed, or the only ones that stay. Ids beyond the vocabulary name none.
"""
from __future__ import annotations

from typing import Any

from unspool.kernels.shaping import sequences, tokens
from unspool.kernels.shaping.recipe import Operation
from unspool.kernels.shaping.row import EDIT, KEEP
from unspool.rules.bias import ended, pack_sequences
from unspool.rules.ids import pack_ids
from unspool.rules.rows import Rows
from unspool.rules.rule import Packed, RuleValue, rule


@rule(Operation(tokens.suppress, EDIT), pack=pack_ids)
def suppress(rows: Rows) -> Any:
    """Remove these tokens. The data is their ids."""
    return rows.drop(rows.marked(rows.data))


@rule(Operation(tokens.begin_suppress, EDIT), recalls=True, pack=pack_ids)
def begin_suppress(rows: Rows) -> Any:
    """Remove these tokens as long as nothing is written. The data is their ids."""
    return rows.drop(rows.marked(rows.data) & (rows.written == 0))


@rule(Operation(tokens.allowed_ids, KEEP), pack=pack_ids)
def allowed_ids(rows: Rows) -> Any:
    """Remove all tokens but these. The data is their ids."""
    return rows.drop(~rows.marked(rows.data))


def pack_words(rule: RuleValue) -> Packed:
    words: Any = rule.data
    return pack_sequences((word, -float("inf")) for word in words)


@rule(Operation(sequences.sequence_bias, EDIT), recalls=True, pack=pack_words)
def bad_words(rows: Rows) -> Any:
    """Remove a token that would complete one of these sequences: a sequence's last token where the
    text, prompt included, ends in its other tokens. The data is a tuple of tuples of ids."""
    return rows.drop(rows.marked([[word[-1] for word in words if ended(text, word)]
                                  for text, words in zip(rows.texts, rows.data, strict=True)]))
