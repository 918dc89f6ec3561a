"""Errors: whatever is written into a message, it is one line of bounded length."""
import pytest

from unspool.core.errors import LONGEST, FormatError, ParameterError, UnspoolError


@pytest.mark.parametrize("kind", [UnspoolError, FormatError, ParameterError])
def test_a_message_is_one_line_of_bounded_length(kind):
    assert str(kind("a\nb\r\nc")) == "a b c"
    long = str(kind(f"{'x' * 10_000}: must be short; shorten it"))
    assert len(long) <= LONGEST + 5 and long.startswith("xxx") and long.endswith("shorten it")


def test_a_message_that_fits_is_left_as_it_is():
    assert str(ParameterError("n=0: say 1", "n")) == "n=0: say 1"
    assert str(UnspoolError("y" * LONGEST)) == "y" * LONGEST
