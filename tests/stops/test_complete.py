"""Ending where a constraint lets nothing follow, and nowhere else."""
import pytest

from unspool.constraints import Vocabulary, choice
from unspool.core.branch import Branch, Ended
from unspool.core.prefix import prefix
from unspool.stops.complete import Complete

WORDS = Vocabulary([bytes([97 + i]) for i in range(9)])
STOP = Complete(choice(["abc", "ab", "cd"], WORDS, (8,)), "choice")
OVER = Ended("stop", "choice")


@pytest.mark.parametrize(("tokens", "said"), [
    ([2, 3], [None, OVER]),
    ([0, 1, 2], [None, None, OVER]),
    ([0, 1, 8], [None, None, OVER]),  # by an end token, where nothing asks for those before
    ([0, 8], [None, None]),  # not a choice
    ([2, 2, 2, 3], [None] * 4),
])
def test_it_ends_where_nothing_may_follow(tokens, said):
    branch = Branch(0, prefix([2, 3]), 2)  # the prompt does not count
    state, heard = STOP.start(), []
    for token in tokens:
        branch.settled = branch.settled.extend(token)
        state, ended = STOP.after(state, branch)
        heard.append(ended)
    assert heard == said
