"""Forced text: exactly the given tokens, judged chunk by chunk, whatever the picks are."""
import pytest

from unspool.core.errors import ParameterError
from unspool.core.job import Job
from unspool.core.prefix import Candidate
from unspool.core.request import Request
from unspool.core.slot import Slot
from unspool.core.stage import Stage
from unspool.stops.length import MaxNew
from unspool.stops.stage import EndOfStage, Tokens
from unspool.stops.tokens import EndTokens
from unspool.strategies import Force
from unspool.strategies.force import CHUNK


def fact(token):
    return Candidate(token, -float(token), -0.5, 1, -0.25)


def forward(job):
    """Slots as the engine reads them: every pick is 99, and the draft's tokens have their facts."""
    for branch in job.live:
        drafted = [*map(fact, branch.draft), None]
        job.slots[branch] = [Slot(fact(99), d) for d in drafted]


def run(text, stops=None, steps=50):
    job = Job(Request((7,), Force(tuple(text)), stops=stops or (MaxNew(len(text)),)))
    forwards = 0
    while job.live and forwards < steps:
        forward(job)
        job.decide()
        forwards += 1
    return job, forwards


@pytest.mark.parametrize("size", [1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 200])
def test_the_text_is_written_as_given(size):
    text = [i % 50 for i in range(size)]
    job, forwards = run(text)
    [(branch, score)] = job.strategy.ranked(job)
    assert branch.tokens == text and branch.ended.reason == "length"
    assert branch.facts == [fact(t) for t in text] and score == branch.score == -0.5 * size
    assert forwards == -(-size // CHUNK)
    assert job.usage.drafted == job.usage.accepted == size and job.usage.rejected == 0


def test_a_stop_in_the_text_ends_it():
    job, _ = run([1, 2, 9, 4, 5], stops=(EndTokens({9}),))
    assert job.branches[0].tokens == [1, 2, 9]


@pytest.mark.parametrize("text", [(), (1, 2)])
def test_a_text_that_nothing_ends_is_an_error_and_no_endless_loop(text):
    with pytest.raises(ParameterError, match=f"ends after {len(text)} tokens"):
        run(text, stops=(MaxNew(5),))


def test_in_the_middle_of_a_program_every_text_goes_on_with_it():
    """Also where it is longer than one forward."""
    text = tuple(i % 50 for i in range(CHUNK + 5))
    stages = (Stage(Force((7, 8, 9))), Stage(Force(text), takes=1))
    stops = (EndOfStage(0, Tokens(3)), MaxNew(3 + len(text)))
    job = Job(Request((7,), stages[0].strategy, stops=stops, program=stages))
    for _ in range(5):
        if job.live:
            forward(job)
            job.decide()
    [(branch, _)] = job.strategy.ranked(job)
    assert branch.tokens == [7, 8, 9, *text] and branch.since == 3
