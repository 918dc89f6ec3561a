import time

from unspool.core.branch import Branch, Ended
from unspool.core.prefix import prefix
from unspool.stops.length import MaxNew, MaxTime


def branch(prompt, written):
    return Branch(0, prefix(range(prompt + written)), prompt)


def test_only_written_tokens_count():
    stop = MaxNew(3)
    said = [stop.after(None, branch(50, n))[1] for n in (1, 2, 3, 4)]
    assert said == [None, None, *[Ended("length", "max_new_tokens")] * 2]


def test_a_limit_says_which_one_it_is():
    assert MaxNew(1, "max_length").after(None, branch(1, 1))[1] == Ended("length", "max_length")


def test_the_clock_begins_at_the_start():
    now = [100.0]
    stop = MaxTime(2.0, clock=lambda: now[0])
    state = stop.start()
    said = []
    for now[0] in (100.5, 101.9, 102.0, 103.0):
        state, ended = stop.after(state, branch(1, 1))
        said.append(ended)
    assert said == [None, None, *[Ended("length", "max_time")] * 2]


def test_the_default_clock_never_goes_back():
    assert MaxTime(1.0).clock is time.monotonic
