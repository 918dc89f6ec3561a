"""The text as an array: texts that part share what they agree on, and none changes another."""
import random
from ctypes import c_int32

from hypothesis import given
from hypothesis import strategies as st

from unspool.core.history import history


def test_a_history_knows_its_prompt_and_its_end():
    text = history([3, 1, 4]).extend(1).extend(5)
    assert (text.length, text.prompt) == (5, 3)
    assert text.everything == [3, 1, 4, 1, 5] and text.generated == [1, 5]
    assert text.last(2) == [1, 5] and text.last(99) == text.everything and text.last(0) == []
    assert text.last(99, first=3) == [1, 5] and text.last(1, first=3) == [5]
    assert history([]).everything == history([]).last(3) == history([7]).generated == []


def test_the_first_to_go_on_appends_in_place():
    text = history([1, 2])
    one = text.extend(3)
    again, other = text.extend(3), text.extend(4)
    assert one.tokens is text.tokens is again.tokens is not other.tokens
    assert (one.everything, other.everything, text.everything) == ([1, 2, 3], [1, 2, 4], [1, 2])


def test_a_copy_is_extended_by_nobody():
    text = history([1, 2])
    copy = text.alone()
    text.extend(3)
    assert len(copy.tokens) == 2 and copy.everything == [1, 2] and copy.prompt == 2
    assert copy.extend(4).everything == [1, 2, 4] and text.everything == [1, 2]


def test_its_address_is_that_of_int32_numbers():
    text = history([5, 2**31 - 1]).extend(0)
    assert list((c_int32 * 3).from_address(text.address)) == [5, 2**31 - 1, 0]


@given(st.integers(0, 10**9))
def test_texts_that_part_in_any_way_are_as_alone(seed):
    draw = random.Random(seed)
    texts = [(history([9, 8]), [9, 8])]
    for _ in range(40):
        text, tokens = draw.choice(texts)
        token = draw.randrange(3)
        texts.append((text.extend(token), [*tokens, token]))
    for text, tokens in texts:
        assert text.everything == tokens and text.length == len(tokens) and text.prompt == 2
        assert list((c_int32 * len(tokens)).from_address(text.address)) == tokens
