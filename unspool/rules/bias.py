"""Additions to the logits of tokens, and of tokens that complete a sequence."""
from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from unspool.core.history import History
from unspool.kernels.shaping import sequences
from unspool.kernels.shaping.recipe import Operation
from unspool.kernels.shaping.row import EDIT
from unspool.rules.rows import Rows
from unspool.rules.rule import Packed, RuleValue, rule


def ended(text: History, ids: Sequence[int]) -> bool:
    """Whether the text ends in all of these ids but the last."""
    first = text.length - len(ids) + 1
    return first >= 0 and text.tokens[first:text.length] == array("i", ids[:-1])


def pack_sequences(pairs: Iterable[tuple[Sequence[int], float]]) -> Packed:
    """Ids and what is added to the last of them, as the operation wants them."""
    words: list[int] = []
    for ids, bias in pairs:
        *before, last = ids
        words += len(ids), int(np.float64(bias).view(np.int64)), *before, last
    kept = np.array(words, np.int64)
    return (kept.ctypes.data, len(kept)), kept


def pack_biases(rule: RuleValue) -> Packed:
    pairs: Any = rule.data
    return pack_sequences(pairs)


@rule(Operation(sequences.sequence_bias, EDIT), recalls=True, pack=pack_biases)
def logit_bias(rows: Rows) -> Any:
    """Add a bias to the logit of a token; of a sequence, to its last token where the text, prompt
    included, ends in its other tokens. What is said of one token adds up (OpenAI's API;
    transformers: SequenceBiasLogitsProcessor).

    The data is a tuple of pairs: a tuple of ids, and the bias. -inf removes.
    """
    vocab = rows.values.shape[-1]
    added = np.zeros(rows.values.shape)
    for row, text, pairs in zip(added, rows.texts, rows.data, strict=True):
        for ids, bias in pairs:
            if 0 <= ids[-1] < vocab and ended(text, ids):
                row[ids[-1]] += bias
    return rows.values + rows.like(added)
