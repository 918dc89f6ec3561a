"""A drafter changes no answer, whatever the strategy makes of its guesses."""
import pytest
from searches_zoo import Common, Guesses, Last, Length, answers, run

from unspool.core.schedule import Schedule
from unspool.rules import temperature
from unspool.strategies import (
    MBR,
    BestOf,
    ChainOfThought,
    Contrastive,
    Gated,
    Sample,
    Scheduled,
    SelfConsistency,
    TreeSearch,
)

ALL = [BestOf(6, 6, Length()), SelfConsistency(6, Last(), 3), MBR(6, Common(), 6), Contrastive(),
       Contrastive(3, 0.2), TreeSearch(n=3), TreeSearch(2, budget=6, n=2, value=Length()),
       Gated(6, 2.4, 3, n=6), Gated(6, 1e9, 2), ChainOfThought(5, 5),
       Scheduled(Sample(4), (("n", Schedule(((0, 4), (6, 2)))),))]
FOLLOWS = (BestOf, SelfConsistency, MBR, Gated, ChainOfThought)


@pytest.mark.parametrize("strategy", ALL, ids=lambda s: str(s)[:24])
@pytest.mark.parametrize("seed", range(3))
def test_a_draft_changes_nothing(strategy, seed):
    how = {"seed": seed, "new": 10, "rules": (temperature(0.7),)}
    plain, drafted = run(strategy, **how), run(strategy, drafter=Guesses(), **how)
    assert [t for t, _ in answers(drafted)] == [t for t, _ in answers(plain)]
    assert [s for _, s in answers(drafted)] == pytest.approx([s for _, s in answers(plain)])
    usage = drafted.usage
    assert usage.drafted == usage.accepted + usage.rejected > 0
    if isinstance(strategy, FOLLOWS):
        assert usage.accepted > 0
