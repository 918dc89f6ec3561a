from hypothesis import given
from hypothesis import strategies as st

from unspool.core.branch import Branch, Ended
from unspool.core.prefix import prefix
from unspool.stops.repetition import Repetition


def ends_at(stop, written, prompt=()):
    """How many tokens are written when it ends, or None."""
    branch = Branch(0, prefix(prompt), len(prompt))
    state = stop.start()
    for count, token in enumerate(written, 1):
        branch.settled = branch.settled.extend(token)
        state, ended = stop.after(state, branch)
        if ended is not None:
            assert ended == Ended("stop", "repetition")
            return count
    return None


def repeats(tokens, stop):
    return any(
        len(tokens) >= size * stop.min_count
        and tokens[-size * stop.min_count:] == tokens[-size:] * stop.min_count
        for size in range(stop.min_pattern_size, stop.max_pattern_size + 1)
    )


def test_a_cycle_ends_when_it_has_come_often_enough():
    assert ends_at(Repetition(3, 1, 3), [7, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1]) == 10
    assert ends_at(Repetition(2, 1, 3), [7, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1]) is None


def test_short_patterns_may_be_allowed():
    assert ends_at(Repetition(4, 1, 3), [5, 5, 5, 5]) == 3
    assert ends_at(Repetition(4, 2, 3), [5, 5, 5, 5, 5, 5]) == 6  # as the pattern "5 5"


def test_the_prompt_is_no_repetition():
    assert ends_at(Repetition(1, 1, 3), [5, 5], prompt=[5, 5, 5]) is None


def test_the_state_does_not_grow():
    stop = Repetition(3, 2, 4)
    branch = Branch(0, prefix([0]), 1)
    state = stop.start()
    for token in range(1000):
        branch.settled = branch.settled.extend(token)
        state, _ = stop.after(state, branch)
    assert state == (0, 0)


@given(
    st.lists(st.integers(0, 2), max_size=40),
    st.tuples(st.integers(1, 4), st.integers(0, 3), st.integers(2, 4)),
)
def test_it_ends_exactly_where_the_definition_says(written, sizes):
    low, more, count = sizes
    stop = Repetition(low + more, low, count)
    places = (n for n in range(1, len(written) + 1) if repeats(written[:n], stop))
    assert ends_at(stop, written) == next(places, None)
