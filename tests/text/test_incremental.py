"""Joined deltas are the whole text, and nothing is held back longer than UTF-8 needs (CN-06)."""
from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unspool.text.incremental import Decoder

SMILE = "\U0001f600".encode()


def whole(data: bytes) -> str:
    """An own account of the rule: the longest valid characters, all other bytes U+FFFD each."""
    text, at = "", 0
    while at < len(data):
        for size in (1, 2, 3, 4):
            try:
                text += data[at : at + size].decode()
            except UnicodeDecodeError:
                continue
            at += size
            break
        else:
            text, at = text + "\ufffd", at + 1
    return text


def deltas(parts: list[bytes], **options: bool) -> list[str]:
    decoder = Decoder(**options)
    return [*map(decoder.feed, parts), decoder.flush()]


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([b" b", *(bytes([b]) for b in SMILE), b"a"], "b\U0001f600a"),
        ([b" b", SMILE[:1], SMILE[1:2], b"a"], "b\ufffd\ufffda"),
        ([b" b", SMILE[:1], SMILE[1:2], SMILE[2:3]], "b\ufffd\ufffd\ufffd"),
        ([b" b", b" b"], "b b"),
        ([b"\xff", b"\xfe", b"a"], "\ufffd\ufffda"),
        ([b"", b" ", b"", b" x"], " x"),
        ([b"\xed\xa0\x80", b"a"], "\ufffd\ufffd\ufffda"),  # a surrogate
        ([b"\xc0\x80"], "\ufffd\ufffd"),  # an overlong form
    ],
)
def test_b33_pieces_join_to_the_right_text(parts: list[bytes], text: str) -> None:
    assert "".join(deltas(parts, drop_space=True)) == text


def test_an_invalid_byte_does_not_stall_the_stream() -> None:
    decoder = Decoder()
    assert decoder.feed(b"\xff") == "\ufffd"
    assert decoder.feed(SMILE[:3]) == "" and decoder.held == SMILE[:3]
    assert decoder.feed(b"a") == "\ufffd\ufffd\ufffda"
    assert decoder.held == b""


def test_a_flushed_decoder_starts_over() -> None:
    decoder = Decoder()
    assert decoder.feed(SMILE[:2]) == "" and decoder.flush() == "\ufffd\ufffd"
    assert decoder.feed(SMILE) == "\U0001f600" and decoder.flush() == ""


@given(st.lists(st.binary(max_size=6), max_size=12))
def test_any_bytes_in_any_cuts(parts: list[bytes]) -> None:
    assert "".join(deltas(parts)) == whole(b"".join(parts))


ALPHABETS = [
    "👩🏽‍🚀👨‍👩‍👧‍👦🤷🏽‍♀️🏳️‍🌈",
    "色即是空 日本語 한국어",
    "שָׁלוֹם עולם",
    "e\u0301a\u0308o\u0302\u0323",
    "abc \n\t'<>&",
    "\u200b\u2028\ufeff\U0010ffff\ufffd",
]


@pytest.mark.parametrize("seed", range(300))
def test_300_adversarial_strings_byte_by_byte(seed: int) -> None:
    draw = random.Random(seed)
    data = b""
    for _ in range(draw.randint(1, 20)):
        text = draw.choice(ALPHABETS)
        data += draw.choice(text).encode()
        if draw.random() < 0.3:
            data += bytes(draw.randrange(256) for _ in range(draw.randint(1, 3)))
    decoder, joined = Decoder(), ""
    for byte in data:
        delta = decoder.feed(bytes([byte]))
        delta.encode()  # no half characters
        assert len(decoder.held) <= 3
        joined += delta
    assert joined + decoder.flush() == whole(data)
