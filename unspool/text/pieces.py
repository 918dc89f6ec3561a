"""The bytes each token stands for in the middle of a text. Does not know what a text is for."""
from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import tokenizers

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_KEEP_TOKENS_APART = {"Replace", "ByteFallback", "Fuse", "Strip", "Metaspace", "BPEDecoder"}


def _byte_of_char() -> dict[str, int]:
    """The printable stand-ins of byte-level BPE: 188 bytes stand for themselves, 68 are moved."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [byte for byte in range(256) if byte not in set(own)]
    chars = {chr(byte): byte for byte in own}
    return chars | {chr(0x100 + index): byte for index, byte in enumerate(moved)}


BYTE_OF_CHAR = _byte_of_char()
CHAR_OF_BYTE = {byte: char for char, byte in BYTE_OF_CHAR.items()}


def byte_level(token: str) -> bytes:
    """The bytes of a byte-level token; one with other characters stands for its own UTF-8."""
    try:
        return bytes([BYTE_OF_CHAR[char] for char in token])
    except KeyError:
        return token.encode()


class Pieces:
    """`self[id]` is the exact bytes of a token; specials give their own text."""

    def __init__(self, backend: tokenizers.Tokenizer, tokens: Mapping[int, str]) -> None:
        self._backend = backend
        self._tokens = tokens
        self._added = {i: token.content for i, token in backend.get_added_tokens_decoder().items()}
        self._special = {i for i, t in backend.get_added_tokens_decoder().items() if t.special}
        self._known: dict[int, bytes] = {}
        steps = _decoder_steps(backend)
        kinds = [step["type"] for step in steps]
        self._bytes: Callable[[int], bytes]
        self.unwritable = b""  # the bytes that no token can write
        if "ByteLevel" in kinds and set(kinds) <= {"ByteLevel", "Fuse"}:
            self._bytes, self.drops_space = self._from_byte_level, False
            written = set(tokens.values())
            self.unwritable = bytes(b for b, char in CHAR_OF_BYTE.items() if char not in written)
        elif kinds and set(kinds) <= _KEEP_TOKENS_APART and _strips_plainly(steps):
            self._steps = steps
            self._bytes, self.drops_space = self._from_steps, any(map(_drops_space, steps))
        else:
            self._anchor = min(self._tokens.keys() - self._special, default=0)
            self._bytes = self._from_difference
            alone = self._decode([self._anchor])
            self.drops_space = self._from_difference(self._anchor) == b" " + alone.encode()

    def __getitem__(self, token_id: int) -> bytes:
        """The bytes of one token; b"" for an id that names none."""
        if token_id not in self._known:
            missing = token_id not in self._tokens
            self._known[token_id] = b"" if missing else self._bytes(token_id)
        return self._known[token_id]

    def _from_byte_level(self, token_id: int) -> bytes:
        added = self._added.get(token_id)
        return byte_level(self._tokens[token_id]) if added is None else added.encode()

    def _from_steps(self, token_id: int) -> bytes:
        text = self._tokens[token_id]
        if token_id in self._special:
            return text.encode()
        for step in self._steps:
            if step["type"] == "Replace":
                text = text.replace(step["pattern"]["String"], step["content"])
            elif step["type"] == "Metaspace":
                text = text.replace(step["replacement"], " ")
            elif step["type"] == "BPEDecoder":
                text = text.replace(step["suffix"], " ")
            elif step["type"] == "ByteFallback" and (match := _BYTE_TOKEN.fullmatch(text)):
                return bytes([int(match[1], 16)])
        return text.encode()

    def _from_difference(self, token_id: int) -> bytes:
        """What the token adds between two others, by the tokenizer's own decoder."""
        if token_id in self._special:
            return self._added[token_id].encode()
        pair = [self._anchor, self._anchor]
        short, long = self._decode(pair), self._decode([pair[0], token_id, pair[1]])
        head = self._decode(pair[:1])
        extra = long[len(head) : len(head) + len(long) - len(short)]
        if long == head + extra + short[len(head) :]:
            return extra.encode()
        return self._decode([token_id]).encode()

    def _decode(self, ids: list[int]) -> str:
        return str(self._backend.decode(ids, skip_special_tokens=False))


def _decoder_steps(backend: tokenizers.Tokenizer) -> list[dict[str, Any]]:
    if backend.decoder is None:
        return []
    state: dict[str, Any] = json.loads(backend.decoder.__getstate__())
    return list(state["decoders"]) if state["type"] == "Sequence" else [state]


def _strips_plainly(steps: list[dict[str, Any]]) -> bool:
    """Whether each token's part can be told by itself: the start is cut once, for the whole."""
    kinds = [step["type"] for step in steps]
    for index, step in enumerate(steps):
        if step["type"] == "Strip":
            plain = (step["content"], step["start"], step["stop"]) == (" ", 1, 0)
            if not plain or "Fuse" not in kinds[:index]:
                return False
        if step["type"] == "Replace" and "String" not in step["pattern"]:
            return False
    return True


def _drops_space(step: dict[str, Any]) -> bool:
    marks_start = step["type"] == "Metaspace" and step.get("prepend_scheme") != "never"
    return step["type"] == "Strip" or marks_start
