"""Stop strings: the cases of B34 on a vocabulary of letters, and a brute-force definition."""
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool.core.branch import Branch, Ended
from unspool.core.errors import ParameterError
from unspool.core.prefix import prefix
from unspool.stops.text import StopStrings, automaton_of


def letter(token: int) -> bytes:
    return bytes([97 + token])


def write(pieces, stops, include=False, prompt=()):
    """(answer, all that a stream has shown, how it ended): pieces of bytes written one by one."""
    vocabulary = dict(enumerate(pieces))
    stop = StopStrings(tuple(stops), vocabulary.__getitem__, include)
    branch = Branch(0, prefix(prompt), len(prompt))
    state, text, shown = stop.start(), b"", b""
    for token in vocabulary:
        branch.settled = branch.settled.extend(token)
        state, ended = stop.after(state, branch)
        text += vocabulary[token]
        if ended is not None:
            return text[: len(text) - ended.cut], shown, ended
        shown = text[: len(text) - stop.held(state)]
    return text, shown, None


def letters(text):
    return [letter.encode() for letter in text]


def test_a_stop_over_several_tokens_never_shows_a_character():
    assert write(letters("bcdefghijk"), ["efg"]) == (b"bcd", b"bcd", Ended("stop", "efg", 3))


def test_a_stop_that_never_completes_holds_nothing_back_for_good():
    assert write(letters("bcdefghijk"), ["efx"]) == (b"bcdefghijk", b"bcdefghijk", None)


@pytest.mark.parametrize("stops", [["de", "c"], ["c", "de"]])
def test_the_first_to_complete_wins_whatever_the_order(stops):
    text, shown, ended = write(letters("bcdefghijk"), stops)
    assert (text, shown, ended.which) == (b"b", b"b", "c")


def test_inside_one_token_the_earliest_wins():
    text, _, ended = write([b"b", b"c", b"defg", b"h"], ["g", "e"])
    assert (text, ended) == (b"bcd", Ended("stop", "e", 3))


def test_a_stop_that_is_the_beginning_of_a_token():
    assert write([b" in", b" Paris"], ["Pari"])[0] == b" in "


def test_the_prompt_is_not_looked_at():
    """The prompt ends in c and d is the first letter written."""
    assert write(letters("defghijk"), ["cd"], prompt=[0, 1, 2])[0] == b"defghijk"


def test_a_character_of_several_tokens_is_never_half_shown():
    emoji = "🦊".encode()
    pieces = [b"a", emoji[:1], emoji[1:3], emoji[3:], b"b"]
    assert write(pieces, ["🦊"])[:2] == (b"a", b"a")
    other = [*pieces[:3], "🦋".encode()[3:]]  # the same up to the last byte
    assert write(other, ["🦊"]) == (b"a" + "🦋".encode(), b"a" + "🦋".encode(), None)


def test_sixty_four_long_stops():
    stops = [f"{i:03}" + "ab" * 498 + "c" for i in range(64)]
    pieces = [b"x", *letters(stops[40]), b"y"]
    text, shown, ended = write(pieces, stops)
    assert (text, shown, ended.which) == (b"x", b"x", stops[40])
    assert len(automaton_of(tuple(stops)).back) <= 64 * 1000 + 1


def test_an_empty_stop_is_refused():
    with pytest.raises(ParameterError, match="must have a character"):
        StopStrings(("a", ""), letter)


def test_the_partial_match_survives_a_mismatch():
    """`1 1 2` in `1 1 1 2`, which a matcher that begins anew at each mismatch misses."""
    assert write(letters("1112333"), ["112"])[0] == b"1"


def test_at_one_end_the_longest_wins():
    text, _, ended = write(letters("xabcd"), ["bc", "abc", "c"])
    assert (text, ended.which) == (b"x", "abc")


def test_include_keeps_the_stop_and_cuts_what_follows_it():
    text, shown, ended = write([b"b", b"cde", b"f"], ["d"], include=True)
    assert (text, ended) == (b"bcd", Ended("stop", "d", 1))
    assert shown == b"b"
    assert write(letters("abab"), ["abc"], include=True)[1] == b"abab"


def test_a_string_that_can_never_complete_first_holds_nothing():
    """"xab" has "a" inside it, so after an x nothing need be held."""
    stop = StopStrings(("xab", "a"), letter)
    branch = Branch(0, prefix([ord("x") - 97]), 0)
    state, _ = stop.after(stop.start(), branch)
    assert stop.held(state) == 0


def test_tokens_without_text_change_nothing():
    assert write([b"a", b"", b"b", b"", b"c"], ["ab"])[0] == b""


def brute(text, stops):
    """(begin, end) of the stop that completes first, the longest of those, or None."""
    for end in range(1, len(text) + 1):
        sizes = [len(stop) for stop in stops if text[:end].endswith(stop)]
        if sizes:
            return end - max(sizes), end
    return None


def must_hold(text, stops):
    """Bytes at the end that some way of going on would cut, tried out for each stop."""
    sizes = [0]
    for stop in stops:
        for size in range(1, min(len(stop) - 1, len(text)) + 1):
            begin = len(text) - size
            if text.endswith(stop[:size]) and brute(text + stop[size:], stops)[0] == begin:
                sizes.append(size)
    return max(sizes)


STOPS = st.lists(st.text("abé€", min_size=1, max_size=5), min_size=1, max_size=4)


@settings(max_examples=400)
@given(st.text("abé€x", max_size=24), st.data(), STOPS, st.booleans())
def test_it_cuts_and_holds_what_the_definition_says(text, data, stops, include):
    raw, pieces = text.encode(), []
    while raw:
        size = data.draw(st.integers(1, min(6, len(raw))))
        pieces.append(raw[:size])
        raw = raw[size:]
    whole, wanted = b"".join(pieces), [stop.encode() for stop in stops]
    match = brute(whole, wanted)
    answer, shown, ended = write(pieces, stops, include)
    if match is None:
        assert (answer, ended) == (whole, None)
    else:
        assert answer == whole[: match[1] if include else match[0]]
        assert ended.which.encode() == whole[match[0] : match[1]]
    assert answer.startswith(shown)
    last = len(whole) if match is None else sum(map(len, pieces[: written_before(pieces, match)]))
    held = 0 if include else must_hold(whole[:last], wanted)
    assert shown == whole[: last - held]


def written_before(pieces, match):
    """How many pieces were written before the one in which the match ends."""
    total = 0
    for count, piece in enumerate(pieces):
        total += len(piece)
        if total >= match[1]:
            return count
    raise AssertionError("the match lies in the text")
