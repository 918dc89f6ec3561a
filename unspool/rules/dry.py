"""DRY, "don't repeat yourself": what would prolong a repetition, the weaker the longer that is."""
from __future__ import annotations

from array import array
from collections.abc import Sequence
from math import inf, log
from typing import Any

import numpy as np

from unspool.core.history import History
from unspool.kernels.shaping import dry as operations
from unspool.kernels.shaping.recipe import Operation
from unspool.kernels.shaping.row import EDIT
from unspool.kernels.shaping.tokens import LARGEST
from unspool.rules.rows import Rows
from unspool.rules.rule import Packed, RuleValue, rule

Breakers = Sequence[tuple[int, ...]]


def match_ends(text: Sequence[int]) -> list[int]:
    """For each k > 0 how many tokens before the place k tokens before the end are the same as at
    the end, by the Z-function of the text read backwards (Gusfield 1997, 1.4)."""
    back = text[::-1]
    same = [0] * len(back)
    begin = end = 0  # the match that reaches furthest back
    for k in range(1, len(back)):
        n = min(same[k - begin], end - k) if k < end else 0
        while k + n < len(back) and back[n] == back[k + n]:
            n += 1
        if k + n > end:
            begin, end = k, k + n
        same[k] = n
    return same


def behind_breaker(text: array[int], breakers: Breakers) -> int:
    """How many tokens stand behind the breaker that begins last, the longest there; all of them
    without one."""
    own = [(array("i", breaker), len(breaker)) for breaker in breakers]
    heads = {breaker[0] for breaker in breakers}
    for i in range(len(text) - 1, -1, -1):
        if text[i] in heads:
            found = [size for tokens, size in own if text[i:i + size] == tokens]
            if found:
                return len(text) - i - max(found)
    return len(text)


def prolonged(text: array[int], breakers: Breakers) -> dict[int, int]:
    """For each token that would prolong a repetition of the text's end the longest length of one.
    """
    limit, same = behind_breaker(text, breakers), match_ends(text)
    out: dict[int, int] = {}
    for k in range(1, len(text)):
        token = text[-k]
        out[token] = max(out.get(token, 0), min(same[k], limit))
    return {token: n for token, n in out.items() if (token,) not in breakers}


def most_repeats(base: float) -> float:
    """Repeats beyond the allowed length that count at most, so that base^n is still a float32."""
    return float(int(log(LARGEST) / log(base))) if base > 1.000001 else inf


def pack(rule: RuleValue) -> Packed:
    breakers: Any = rule.data
    words = np.array([word for breaker in sorted(set(breakers))
                      for word in (len(breaker), *breaker)], np.int64)
    numbers = (words.ctypes.data, len(words), *rule.numbers, most_repeats(rule.numbers[1]))
    return numbers, words


@rule(Operation(operations.dry, EDIT), recalls=True, pack=pack)
def dry(rows: Rows, multiplier: Any, base: Any = 1.75, allowed_length: Any = 2, last: Any = -1
        ) -> Any:
    """Take multiplier * base^(n - allowed_length) off the logit of a token that would prolong a
    repetition of n >= allowed_length tokens: the last n of the text, prompt included, occurred
    before and this token followed them. Only the `last` tokens count (-1: all), n ends at the last
    breaker, and a breaker of one token is never weakened (p-e-w, oobabooga/text-generation-webui
    #5677; as llama.cpp, its bound on the exponent included).

    The data is the breakers, a tuple of tuples of ids.
    """
    taken = np.zeros(rows.values.shape)
    numbers = zip(multiplier, base, allowed_length, last, strict=True)
    for row, text, breakers, own in zip(taken, rows.texts, rows.data, numbers, strict=True):
        by, growth, allowed, count = (float(number[0]) for number in own)
        most = most_repeats(growth)
        for token, n in prolonged(window(text, count), breakers).items():
            if n >= allowed:
                row[token] = min(by * growth ** min(n - allowed, most), LARGEST)
    return rows.values - rows.like(taken)


def window(text: History, last: float) -> array[int]:
    first = 0 if last < 0 else max(text.length - int(last), 0)
    return text.tokens[first:text.length]
