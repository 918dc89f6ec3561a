"""Operations that remove the tokens that would repeat an n-gram of the text."""
from __future__ import annotations

import numpy as np

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.simd import read_f64
from unspool.kernels.shaping.row import LENGTH, PROMPT, SIGNATURE, put, word, written


@inner
def same_before(row: int, one: int, other: int, count: int) -> bool:
    """Whether the `count` tokens before two places of the text are the same. The last, which
    differ most often, are looked at first."""
    for back in range(1, count + 1):
        if written(row, one - back) != written(row, other - back):
            return False
    return True


@inner
def ban_repeats(row: int, n: int, end: int) -> None:
    """Remove each token that ends an n-gram of the text up to `end` which begins as the text ends.
    """
    if n <= 0:
        return
    for i in range(n - 1, end):
        if same_before(row, i, word(row, LENGTH), n - 1):
            put(row, written(row, i), -np.inf)


@kernel(SIGNATURE)
def no_repeat_ngram(row: int, numbers: int, state: int) -> int:
    """n."""
    ban_repeats(row, int(read_f64(numbers)), word(row, LENGTH))
    return 0


@kernel(SIGNATURE)
def encoder_no_repeat_ngram(row: int, numbers: int, state: int) -> int:
    """n."""
    ban_repeats(row, int(read_f64(numbers)), word(row, PROMPT))
    return 0
