"""What is in force in a stage: rules and mixes by their place, and what rules remember."""
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from unspool.core.branch import Ended
from unspool.core.prefix import Candidate
from unspool.core.schedule import Schedule, ramp
from unspool.core.stage import REACHED, InForce, Stage, step_of, weight


@dataclass(frozen=True)
class Counts:
    """A rule that counts tokens, each as much as `number` says then."""

    number: float | Schedule
    name: str = "counts"
    recalls: bool = False

    def start(self, prompt):
        return (len(prompt), 0.0)

    def after(self, state, token, fact):
        return state[0], state[1] + self.number


A, B, C = Counts(1.0), Counts(10.0), Counts(ramp(0, 4, 4))
FACT = Candidate(5, -1.0, -1.0, 1, -1.0)


def mix(voices):
    return SimpleNamespace(voices=tuple(range(voices)))


def test_all_rules_are_in_force_unless_places_are_named():
    force = InForce(Stage(None), (A, B), ())
    assert force.whole and force.rules(0) == (A, B) and force.states((1, 2)) == (1, 2)
    part = InForce(Stage(None, rules=(1,)), (A, B), ())
    assert not part.whole and part.rules(3) == (B,) and part.states((1, 2)) == (2,)
    assert InForce(Stage(None, rules=()), (A, B), ()).rules(0) == ()


def test_what_rules_not_in_force_remember_stays():
    part = InForce(Stage(None, rules=(2, 0)), (A, B, C), ())
    before = ((3, 0.0), (3, 7.0), (3, 0.0))
    assert part.after(before, 2, FACT) == ((3, 1.0), (3, 7.0), (3, 2.0))
    whole = InForce(Stage(None), (A, B), ())
    assert whole.after(((0, 0.0), (0, 0.0)), 0, FACT) == ((0, 1.0), (0, 10.0))


def test_a_rule_goes_over_with_what_it_remembers_and_a_new_one_reads_the_whole_text():
    old = InForce(Stage(None, rules=(0,)), (A, B), ())
    new = InForce(Stage(None, rules=(0, 1)), (A, B), ())
    kept = new.enter(((3, 5.0), (3, 0.0)), old, [9] * 8)
    assert kept == ((3, 5.0), (8, 0.0))


def test_rules_are_as_they_are_at_a_step():
    force = InForce(Stage(None), (A, C), ())
    assert not force.steady
    assert force.rules(2) == (A, Counts(2.0)) and force.rules(9) == (A, Counts(4.0))


def test_voices_are_counted_over_all_mixes():
    mixes = (mix(1), mix(2), mix(0), mix(1))
    assert InForce(Stage(None), (), mixes).voices == [(0,), (1, 2), (), (3,)]
    some = InForce(Stage(None, mixes=(3, 1)), (), mixes)
    assert some.voices == [(3,), (1, 2)] and some.mixes == (mixes[3], mixes[1])


def test_a_step_counts_from_the_stage_s_beginning():
    branch = SimpleNamespace(written=9, since=6)
    assert step_of(branch) == 3 and step_of(branch, 2) == 5


@pytest.mark.parametrize(("reasons", "first"), [
    (["length", "stop"], "stop"), ([REACHED, "length"], "length"), ([REACHED, "stop"], "stop"),
    ([REACHED], REACHED),
])
def test_a_text_that_really_ends_is_not_gone_on_with(reasons, first):
    assert min(map(Ended, reasons), key=weight).reason == first
