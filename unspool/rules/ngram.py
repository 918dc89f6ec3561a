"""N-grams that come once: what would repeat one is removed."""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.core.history import History
from unspool.kernels.shaping import ngrams
from unspool.kernels.shaping.recipe import Operation
from unspool.kernels.shaping.row import EDIT
from unspool.rules.rows import Rows
from unspool.rules.rule import rule

Tokens = NDArray[np.int32]


def repeats(text: History, n: int, end: int) -> Tokens:
    """The tokens that end an n-gram of the text up to `end` which begins as the text ends."""
    tokens = np.array(text.tokens[:text.length], np.int32)
    if n <= 0 or end < n:
        return tokens[:0]
    windows = np.lib.stride_tricks.sliding_window_view(tokens[:end], n)
    same = (windows[:, :-1] == tokens[text.length - n + 1:]).all(axis=-1)
    return np.asarray(windows[same, -1])


@rule(Operation(ngrams.no_repeat_ngram, EDIT), recalls=True)
def no_repeat_ngram(rows: Rows, n: Any) -> Any:
    """Remove each token that would make the last n tokens an n-gram which the text has already, its
    prompt included (Paulus et al. 2017, arXiv:1705.04304); 0 removes none."""
    return rows.drop(rows.marked([repeats(text, int(size[0]), text.length)
                                  for text, size in zip(rows.texts, n, strict=True)]))


@rule(Operation(ngrams.encoder_no_repeat_ngram, EDIT), recalls=True)
def encoder_no_repeat_ngram(rows: Rows, n: Any) -> Any:
    """The same for the n-grams of the prompt alone (transformers:
    EncoderNoRepeatNGramLogitsProcessor)."""
    return rows.drop(rows.marked([repeats(text, int(size[0]), text.prompt)
                                  for text, size in zip(rows.texts, n, strict=True)]))
