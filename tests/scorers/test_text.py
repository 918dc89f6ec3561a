"""What a branch says is what its result shows."""
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from scorers_zoo import branch, piece

from unspool.core.branch import Ended
from unspool.core.prefix import Candidate
from unspool.llm.emit import Emitter
from unspool.scorers.text import bytes_before, shown, texts, written

DATA = st.binary(max_size=12) | st.text(max_size=6).map(str.encode)


@given(DATA)
def test_it_is_the_text_of_the_result(data):
    emitter = Emitter(piece)
    result = emitter.commit([Candidate(token, -1, -1, 1, -1) for token in data])
    assert texts([branch(data)], piece) == [result + emitter.finish(None)]


@given(DATA)
def test_each_character_has_its_bytes(data):
    """Also where bytes are no UTF-8: each is a character of its own."""
    text = shown(data)
    ends = [bytes_before(data, place) for place in range(len(text) + 1)]
    assert ends[0] == 0 and ends[-1] == len(data)
    parts = [data[start:end] for start, end in pairwise(ends)]
    assert "".join(map(shown, parts)) == text


def test_half_a_character_of_a_text_that_still_grows():
    assert texts([branch("é".encode()[:1])], piece) == ["\ufffd"]


def test_what_a_stop_cuts_off_is_not_said():
    assert [written(branch(b"ab", ended=Ended("stop", "b", cut)), piece) for cut in range(3)] == [
        b"ab", b"a", b""]
