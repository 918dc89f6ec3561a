"""Bytes in, text out, as early as UTF-8 allows. Knows nothing of tokens or of stop strings."""
from __future__ import annotations

import codecs

REPLACEMENT = "\ufffd"


def _one_per_byte(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return REPLACEMENT * (error.end - error.start), error.end


codecs.register_error("unspool.one_per_byte", _one_per_byte)
_UTF8 = codecs.getincrementaldecoder("utf-8")


class Decoder:
    """Decodes UTF-8 (RFC 3629) piece by piece; the deltas and the flush join to the whole text.

    Only a tail that may still become a character is held back (at most 3 bytes). A byte that can
    no longer become one leaves at once as U+FFFD, one per byte. `drop_space` leaves out one space
    at the very beginning, as tokenizers that mark word starts with a space do.
    """

    def __init__(self, drop_space: bool = False) -> None:
        self._utf8 = _UTF8(errors="unspool.one_per_byte")
        self._drop_space = drop_space

    def feed(self, data: bytes) -> str:
        """The text that `data` completes; may be empty."""
        return self._leave(self._utf8.decode(data))

    def flush(self) -> str:
        """The end of the text: what is still held back, as U+FFFD. The decoder starts over."""
        text = self._leave(self._utf8.decode(b"", final=True))
        self._utf8.reset()
        return text

    @property
    def held(self) -> bytes:
        """The bytes held back."""
        return self._utf8.getstate()[0]

    def _leave(self, text: str) -> str:
        if self._drop_space and text:
            self._drop_space = False
            return text.removeprefix(" ")
        return text
