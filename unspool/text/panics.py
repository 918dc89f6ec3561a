"""Panics of the compiled tokenizer library, as ordinary errors. Knows nothing of tokenizers."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_panic() -> Iterator[None]:
    """Raises ValueError where the library panics, which Python sees as a BaseException."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ValueError(f"the tokenizer library gave up: {error}") from None
