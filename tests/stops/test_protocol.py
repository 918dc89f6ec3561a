"""Every stop is a value with the Stop protocol, and folds the same whatever is forked."""
import pytest

from unspool.constraints import Vocabulary, choice
from unspool.core.branch import Branch
from unspool.core.prefix import Candidate, prefix
from unspool.core.sockets import Stop
from unspool.stops.complete import Complete
from unspool.stops.confidence import Confidence
from unspool.stops.length import MaxNew, MaxTime
from unspool.stops.repetition import Repetition
from unspool.stops.text import StopStrings
from unspool.stops.tokens import EndTokens, StopTokens


def letter(token: int) -> bytes:
    return bytes([97 + token])


STOPS: list[Stop] = [
    EndTokens(frozenset({4})),
    StopTokens(frozenset({4})),
    MaxNew(5),
    MaxTime(1.0, clock=lambda: 0.0),
    StopStrings(("de",), letter),
    Repetition(4),
    Confidence(0.5),
    Complete(choice(["abcd", "abca"], Vocabulary([letter(i) for i in range(5)]), {4}), "choice"),
]


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: type(stop).__name__)
def test_a_fork_folds_on_from_the_state_of_its_branch(stop):
    """Two ways on from one state give what each gives from the start: no state is shared."""
    ways = ([0, 1, 2, 3, 4], [0, 1, 2, 0, 1, 2])

    def fold(tokens, state, at=0, said=()):
        branch = Branch(0, prefix([9, *tokens[:at]]), 1)
        for token in tokens[at:]:
            fact = Candidate(token, -1.0, -1.0, 1, -0.1)
            branch.settled = branch.settled.extend(token, fact)
            state, ended = stop.after(state, branch)
            said = (*said, ended)
        return state, said

    common, said = fold(ways[0][:3], stop.start())
    for way in ways:
        assert fold(way, common, 3, said) == fold(way, stop.start())


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: type(stop).__name__)
def test_a_stop_cannot_be_changed(stop):
    name = next(iter(type(stop).__dataclass_fields__))
    with pytest.raises(AttributeError):
        setattr(stop, name, None)
