"""Numbers of a strategy that change with the step."""
from dataclasses import dataclass, field

import pytest
from searches_zoo import Length, answers, decide, fact, job_of, run, slot, texts

from unspool.core.errors import ParameterError
from unspool.core.schedule import Schedule
from unspool.core.slot import PICK, Reading
from unspool.strategies import (
    Beam,
    BestOf,
    ChainOfThought,
    Contrastive,
    Gated,
    Sample,
    Scheduled,
    TreeSearch,
)


def still(value):
    return Schedule(((0, value),))


def falling(high, low, over, jumps=False):
    return Schedule(((0, high), (over, low)), jumps)


@pytest.mark.parametrize("strategy, name", [
    (Sample(3), "n"), (Beam(3, n=3), "width"), (Contrastive(), "k"), (Contrastive(), "alpha"),
    (TreeSearch(), "branching"), (Gated(4, 2.3, 2), "threshold"), (ChainOfThought(4), "count"),
    (BestOf(4), "count")])
def test_a_number_that_stays_is_the_plain_strategy(strategy, name):
    scheduled = Scheduled(strategy, ((name, still(getattr(strategy, name))),))
    assert answers(run(scheduled)) == answers(run(strategy))
    assert scheduled.reads == strategy.reads and scheduled.searching == strategy.searching


def test_each_step_is_decided_with_the_numbers_of_that_step():
    job = job_of(Scheduled(Contrastive(), (("k", falling(4, 2, 2)),)))
    top = [fact(t, -float(t)) for t in range(1, 6)]
    sizes = []
    for _ in range(4):
        decide(job, {b: [slot(*top, similarity=0.5)] for b in job.live})
        sizes.append(len(job.live))
    assert sizes == [4, 3, 2, 2]


def test_a_width_that_shrinks_leaves_fewer_texts():
    job = job_of(Scheduled(Beam(5), (("width", falling(3, 1, 2, jumps=True)),)))
    top = [fact(t, -float(t)) for t in range(1, 7)]
    sizes = []
    for _ in range(4):
        decide(job, {b: [slot(*top)] for b in job.live})
        sizes.append(len(job.live))
    assert sizes == [3, 3, 1, 1]


@pytest.mark.parametrize("weights", range(3))
def test_alpha_that_has_fallen_to_0_is_greedy_from_there(weights):
    """The second token's candidates are judged when they are written, at step 2."""
    how = {"ends": (), "weights": weights}
    strategy = Scheduled(Contrastive(), (("alpha", falling(0.9, 0.0, 2, jumps=True)),))
    [text], [contrastive] = texts(run(strategy, **how)), texts(run(Contrastive(4, 0.9), **how))
    rest = texts(run(Contrastive(4, 0.0), prompt=(1, 2, 3, text[0]), new=4, **how))[0]
    assert text == [contrastive[0], *rest] != contrastive


def test_it_reads_the_most_of_any_step_and_the_strategy_sees_its_own():
    seen = []

    @dataclass(frozen=True)
    class Watching:
        count: int = 1
        share: float = 0.5
        searching: bool = False
        data: tuple = field(default=())

        @property
        def reads(self):
            return Reading(top=self.count, raw=round(10 * self.share), pick=False,
                           named=(self.count,), similarity=self.share > 0.3)

        def open(self, job):
            return ()

        def decide(self, job, slots):
            seen.extend((len(s.top), len(s.raw)) for own in slots.values() for s in own)
            return Sample().decide(job, slots)

    strategy = Scheduled(Watching(), (("count", falling(2, 5, 3)), ("share", falling(0.4, 0.1, 3))))
    assert strategy.reads == Reading(top=5, raw=4, pick=False, named=(2, 5), similarity=True)
    job = job_of(strategy)
    for _ in range(4):
        raw = tuple((t, -1.0) for t in range(9))
        decide(job, {job.live[0]: [slot(*map(fact, range(1, 7)), raw=raw)]})
    assert seen == [(2, 4), (3, 3), (4, 2), (5, 1)]
    assert Scheduled(Sample(2), (("n", falling(2, 3, 4)),)).reads is PICK


def test_it_is_a_value():
    one, other = (Scheduled(Beam(3), (("width", falling(3, 1, 9)),)) for _ in range(2))
    assert one == other and hash(one) == hash(other)
    assert one != Scheduled(Beam(3), (("width", falling(3, 2, 9)),))


@pytest.mark.parametrize("strategy, name, schedule", [
    (Beam(3), "height", still(2)), (Beam(3), "early_stopping", still(1)),
    (BestOf(3, reward=Length()), "reward", still(1)), (object(), "width", still(1)),
    (Contrastive(), "alpha", falling(0.6, 1.2, 5)), (TreeSearch(), "width", falling(2, 0, 5))])
def test_what_cannot_change_is_refused_by_name(strategy, name, schedule):
    with pytest.raises(ParameterError, match=name):
        Scheduled(strategy, ((name, schedule),))


def test_two_schedules_of_one_number_are_refused():
    with pytest.raises(ParameterError, match="width has two"):
        Scheduled(Beam(3), (("width", still(2)), ("width", still(3))))
