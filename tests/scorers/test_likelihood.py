from scorers_zoo import branch, piece

from unspool.scorers import REWARDS


def test_the_sum_favours_short_texts_and_the_mean_does_not():
    short, long = branch([1, 2], [-1.5, -0.5]), branch([1, 2, 3, 4], [-0.5, -0.25, -0.75, -1.5])
    assert REWARDS["logprob"](piece).rewards([short, long]) == [-2.0, -3.0]
    assert REWARDS["mean_logprob"](piece).rewards([short, long]) == [-1.0, -0.75]


def test_nothing_written_is_zero():
    for make in REWARDS.values():
        assert make(piece).rewards([branch([])]) == [0.0]
        assert make(piece).rewards([]) == []


def test_they_are_values():
    sums, means = (make(piece) for make in REWARDS.values())
    assert hash(sums) != hash(means) and repr(means) == "Likelihood(mean=True)"
