import math

from unspool.core.branch import Branch, Ended
from unspool.core.prefix import Candidate, prefix
from unspool.stops.confidence import Confidence


def after(threshold, peak, logprob=-9.0, processed=0.0):
    fact = Candidate(3, logprob, processed, 5, math.log(peak))
    stop = Confidence(threshold)
    return stop.after(stop.start(), Branch(0, prefix([1]).extend(3, fact), 1))[1]


def test_below_the_threshold_ends_and_at_it_does_not():
    assert after(0.25, 0.24) == Ended("stop", "confidence_stop")
    assert after(0.25, 0.25) is None
    assert after(1.0, 1.0) is None
    assert after(1.0, 1 - 2**-20) is not None


def test_the_written_token_and_the_rules_do_not_matter():
    assert after(0.25, 0.9, logprob=-30.0, processed=-30.0) is None
    assert after(0.25, 0.1, logprob=math.log(0.1), processed=0.0) is not None


def test_zero_is_off():
    assert after(0.0, 1e-300) is None
