"""A name for a model's numbers: equal models get equal names, and changed weights another one.

Small arrays are hashed whole; of a large one, pages spread over it and the sum of all its 64-bit
words, so that any one change shows and a second of loading does not turn into ten. It knows bytes,
and no number library but numpy.
"""
from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

WHOLE = 2**18  # bytes hashed without leaving any out
PAGES, PAGE = 16, 4096


def fingerprint(facts: object, weights: Iterable[tuple[str, npt.NDArray[Any]]]) -> str:
    """32 hex digits from `facts` (by its repr, such as a config) and named arrays.

    An array counts by its name, type, shape and bytes; stored bytes will do as well as numbers.
    """
    digest = sha256(repr(facts).encode())
    for name, array in weights:
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        if len(data) <= WHOLE:
            digest.update(data.tobytes())
            continue
        for page in range(PAGES):  # the first at the start, the last at the end
            start = page * (len(data) - PAGE) // (PAGES - 1)
            digest.update(data[start : start + PAGE].tobytes())
        words = data[: len(data) // 8 * 8].view(np.int64)
        digest.update(str(int(words.sum())).encode())
    return digest.hexdigest()[:32]
