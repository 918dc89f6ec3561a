"""Streams: joined deltas are the final text, no character is split, no stop leaks."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unspool.core.branch import Branch, Ended
from unspool.core.prefix import Candidate, prefix
from unspool.llm.emit import Emitter
from unspool.stops.text import StopStrings
from unspool.text.incremental import Decoder

FULL = Ended("length", "max_new_tokens")
TEXTS = [
    "The quick brown fox jumps over the lazy dog",
    "aaaaabaaaabaaaaaab",
    "na na na batman",
    "Ein Würfel, 🤷🏽‍♀️ und 日本語 mit é",
    "\n\n  ```py\nx = 1\n```\n",
]


def cut(text, seed):
    """Tokens of 1 to 5 bytes that know nothing of characters."""
    data, draws, out = text.encode(), random.Random(seed), []
    while data:
        size = draws.randint(1, 5)
        out.append(data[:size])
        data = data[size:]
    return out


def run(pieces, stops=(), include=False, ends=(), ended=FULL):
    """The deltas of a text, token by token, and why it ended."""
    stop = StopStrings(tuple(stops), pieces.__getitem__, include) if stops else None
    emitter = Emitter(pieces.__getitem__, frozenset(ends), stop)
    branch, state = Branch(0, prefix([]), 0), 0
    deltas = []
    for i in range(len(pieces)):
        fact = Candidate(i, -1.0, -1.0, 1, -1.0)
        branch.settled = branch.settled.extend(i, fact)
        met = None
        if stop is not None:
            state, met = stop.after(state, branch)
        deltas.append(emitter.commit([fact]))
        if met is not None:
            ended = met
            break
    deltas.append(emitter.finish(ended))
    return deltas, ended


def right(data, stops, include=False):
    """The text up to the first stop to complete (of several the longest), by looking at it all."""
    for end in range(1, len(data) + 1):
        met = [s for s in stops if data[:end].endswith(s.encode())]
        if met:
            longest = max(met, key=len)
            end -= 0 if include else len(longest.encode())
            return data[:end].decode("utf-8", "replace"), longest
    return data.decode("utf-8", "replace"), "max_new_tokens"


def crossing(text, pieces):
    """Every substring of 1 to 12 characters that crosses the border of two tokens."""
    borders, at = set(), 0
    for piece in pieces:
        at += len(piece)
        borders.add(at)
    places = [len(text[:i].encode()) for i in range(len(text) + 1)]
    for i in range(len(text)):
        for j in range(i + 1, min(i + 12, len(text)) + 1):
            if any(places[i] < b < places[j] for b in borders):
                yield text[i:j]


@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_every_stop_that_crosses_a_token_border(number, include):
    """CN-07: cut at the first match, nothing of the stop leaks, nothing before it is lost."""
    text = TEXTS[number]
    pieces = cut(text, number)
    stops = sorted(set(crossing(text, pieces)))
    assert len(stops) > 30
    for stop in stops:
        deltas, ended = run(pieces, [stop], include)
        expected, which = right(text.encode(), [stop], include)
        assert ("".join(deltas), ended.which) == (expected, which) == (expected, stop)
        assert len(deltas) - 1 <= len(pieces)


@pytest.mark.parametrize(
    "stops",
    [("fox", "fox jumps"), ("fox jumps", "fox"), ("own fox", "n f"), ("n", "brown"), ("zzz", "fox"),
     ("fox ju", "x jump"), ("dog", "dogs"), ("e l", "the lazy cat"), ("quick brown cat", "jum")],
)  # fmt: skip
@pytest.mark.parametrize("seed", range(6))
def test_pairs_of_stops(stops, seed):
    """Also when one is the other's beginning, its end, or inside it; their order is no matter."""
    pieces = cut(TEXTS[0], seed)
    for order in (stops, stops[::-1]):
        deltas, ended = run(pieces, order)
        assert ("".join(deltas), ended.which) == right(TEXTS[0].encode(), stops)


@given(
    st.text("ab", min_size=1, max_size=20),
    st.lists(st.text("ab", min_size=1, max_size=5), min_size=1, max_size=3),
    st.integers(0, 99),
    st.booleans(),
)
def test_any_stops_in_any_text(text, stops, seed, include):
    deltas, ended = run(cut(text, seed), stops, include)
    assert ("".join(deltas), ended.which) == right(text.encode(), stops, include)


def test_a_stop_that_is_never_hit_holds_back_no_more_than_it_must():
    deltas, ended = run([b"b", b"c", b"d", b"e", b"f", b"g"], ["efx"])
    assert deltas == ["b", "c", "d", "", "", "efg", ""]
    assert ended is FULL
    deltas, _ = run([b"b", b"c", b"d", b"e", b"f"], ["efx"])
    assert deltas == ["b", "c", "d", "", "", "ef"]  # what was held is not lost


def test_a_stop_at_the_very_end_and_a_stop_that_is_all_there_is():
    assert "".join(run([b"ab", b"cd"], ["cd"])[0]) == "ab"
    assert "".join(run([b"ab", b"cd"], ["abcd"])[0]) == ""
    assert "".join(run([b"ab", b"cd"], ["cd"], include=True)[0]) == "abcd"


def test_a_stop_inside_a_token():
    """B34: a token "defg" and the stops "g" and "e"."""
    assert run([b"c", b"defg"], ["g", "e"])[0] == ["c", "d", ""]
    assert run([b"c", b"defg"], ["g", "e"], include=True)[0] == ["c", "de", ""]


def test_included_stops_hold_nothing_back():
    assert run([b"a", b"b", b"c", b"d"], ["bcd"], include=True)[0] == ["a", "b", "c", "d", ""]


@pytest.mark.parametrize("text", ["🤷🏽‍♀️", "שלום", "日本語", "e\u0301", "a🙏b", "한"])
def test_no_delta_splits_a_character(text):
    """CN-06: byte by byte, and nothing but an open character is held back."""
    pieces = [bytes([b]) for b in text.encode()]
    deltas, _ = run(pieces)
    assert "".join(deltas) == text and "\ufffd" not in "".join(deltas)
    whole, data = "", b""
    for piece, delta in zip(pieces, deltas, strict=False):
        data, whole = data + piece, whole + delta
        assert whole == data.decode("utf-8", "ignore")


def test_bytes_that_never_become_a_character_do_not_stall_the_stream():
    """B33."""
    smile = "😀".encode()
    bytes_of = [bytes([b]) for b in smile]
    assert "".join(run([b" b", *bytes_of, b"a"])[0]) == " b😀a"
    assert "".join(run([b" b", *bytes_of[:2], b"a"])[0]) == " b\ufffd\ufffda"
    assert "".join(run([b" b", *bytes_of[:3]])[0]) == " b\ufffd\ufffd\ufffd"
    assert run([b"\xff", b"\xfe", b"a"])[0] == ["\ufffd", "\ufffd", "a", ""]


def test_an_emoji_as_stop_is_never_half_sent():
    pieces = [b"a", *(bytes([b]) for b in "😀".encode()), b"b"]
    assert run(pieces, ["😀"])[0] == ["a", "", "", "", "", ""]
    other = [b"a", *(bytes([b]) for b in "😁".encode()), b"b"]  # the same but for the last byte
    assert run(other, ["😀"])[0] == ["a", "", "", "", "😁", "b", ""]


@given(st.lists(st.binary(max_size=4), max_size=12))
def test_any_bytes_are_the_text_that_is_decoded_at_once(pieces):
    whole = Decoder()
    assert "".join(run(pieces)[0]) == whole.feed(b"".join(pieces)) + whole.flush()


def test_tokens_that_may_end_the_text_are_held_until_it_is_known():
    pieces = [b"a", b"<end>", b"b"]
    emitter = Emitter(pieces.__getitem__, frozenset({1}))
    facts = [Candidate(i, -1.0, -1.0, 1, -1.0) for i in range(3)]
    assert emitter.commit(facts[:1]) == "a"
    assert emitter.commit(facts[1:2]) == ""
    assert emitter.finish(Ended("stop", 1, 5)) == ""
    emitter = Emitter(pieces.__getitem__, frozenset({1}))
    assert [emitter.commit([f]) for f in facts] == ["a", "", "<end>b"]


def test_commits_of_several_tokens_are_as_good_as_one_by_one():
    pieces = cut(TEXTS[3], 5)
    facts = [Candidate(i, -1.0, -1.0, 1, -1.0) for i in range(len(pieces))]
    emitter = Emitter(pieces.__getitem__)
    assert emitter.commit(facts) + emitter.finish(None) == TEXTS[3]
