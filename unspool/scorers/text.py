"""What a branch says, as bytes and as text. Knows tokens only by the bytes they add."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from unspool.core.branch import Branch
from unspool.text.incremental import Decoder

Piece = Callable[[int], bytes]


def written(branch: Branch, piece: Piece) -> bytes:
    """The bytes of the answer, without what the branch's stop cuts off."""
    data = b"".join(map(piece, branch.tokens))
    cut = branch.ended.cut if branch.ended is not None else 0
    return data[:len(data) - cut]


def shown(data: bytes) -> str:
    """The bytes as the result of a request shows them: each that is no UTF-8 is one U+FFFD."""
    decoder = Decoder()
    return decoder.feed(data) + decoder.flush()


def texts(branches: Sequence[Branch], piece: Piece) -> list[str]:
    return [shown(written(branch, piece)) for branch in branches]


def bytes_before(data: bytes, place: int) -> int:
    """How many bytes of `data` stand before character `place` of its text."""
    # Here too each byte that is no UTF-8 is one character, but one that knows its byte.
    text = data.decode("utf-8", "surrogateescape")
    return len(text[:place].encode("utf-8", "surrogateescape"))
