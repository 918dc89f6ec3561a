"""The ends of a program's stages: they look at what their stage writes, and at nothing else."""
from types import SimpleNamespace

import pytest

from unspool.core.prefix import prefix
from unspool.core.stage import REACHED
from unspool.stops.length import MaxNew
from unspool.stops.stage import WINDOW, EndOfStage, Found, Tokens
from unspool.stops.text import StopStrings


def branch(written, stage=0, since=0, token=0):
    return SimpleNamespace(written=written, since=since, stage=stage, tokens=[token] * written,
                           prompt=2, settled=prefix([1, 1] + [token] * written))


def piece(token):
    return chr(97 + token).encode() if token < 26 else "é".encode()[token - 26:][:1]


def follow(stop, tokens, stage=0):
    """After how many tokens it says so, and what."""
    state = stop.start()
    for count, token in enumerate(tokens, 1):
        state, ended = stop.after(state, branch(count, stage, token=token))
        if ended is not None:
            return count, ended
    return None


def test_tokens_are_those_of_the_stage():
    assert Tokens(3).after(None, branch(8, since=6))[1] is None
    assert Tokens(3).after(None, branch(9, since=6))[1].reason == "length"


def test_it_looks_at_its_own_stage_alone():
    stop = EndOfStage(1, StopStrings(("ab",), piece, include=True))
    assert follow(stop, [0, 1], stage=0) is None and follow(stop, [0, 1], stage=1)[0] == 2
    state, _ = stop.after(stop.start(), branch(1, 0, token=0))  # "a" of the stage before
    assert stop.after(state, branch(2, 1, token=1))[1] is None


def test_what_is_not_the_last_stage_only_reaches_its_end_and_cuts_nothing():
    stop = EndOfStage(0, StopStrings(("b",), piece))
    _, ended = follow(stop, [0, 1])
    assert (ended.reason, ended.which, ended.cut) == (REACHED, "b", 0)
    _, ended = follow(EndOfStage(0, StopStrings(("b",), piece), last=True), [0, 1])
    assert (ended.reason, ended.cut) == ("stop", 1)
    _, ended = follow(EndOfStage(0, MaxNew(2, "step"), last=True), [0, 1])
    assert ended.reason == "length"


@pytest.mark.parametrize(("regex", "tokens", "after"), [
    (r"c$", [0, 2, 1], 2), (r"a.c", [0, 1, 2], 3), (r"^b", [0, 1], None), (r"x", [1] * 5, None),
    ("é", [0, 26, 27], 3),
])
def test_a_pattern_is_found_where_its_last_character_is_written(regex, tokens, after):
    found = follow(Found(regex, piece), tokens)
    assert (found and found[0]) == after


def test_a_pattern_is_looked_for_in_the_last_characters():
    far = [2] + [0] * WINDOW + [1]
    assert follow(Found("c.*b", piece), far) is None
    assert follow(Found("c.*b", piece), [2] + [0] * (WINDOW - 2) + [1])[0] == WINDOW
