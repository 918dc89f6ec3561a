"""Best of several samples: the samples are those of sampling, the reward is asked once."""
import pytest
from searches_zoo import Length, answers, program, run, texts

from unspool.core.errors import ParameterError
from unspool.strategies import BestOf, Sample


def test_one_of_one_is_the_sample():
    assert answers(run(BestOf(1))) == [(b.tokens, b.logprob) for b in run(Sample(1)).branches]


def test_without_a_reward_the_likeliest_of_the_samples_are_first():
    job, plain = run(BestOf(8, n=3)), run(Sample(8))
    want = sorted(((b.tokens, b.logprob) for b in plain.branches), key=lambda a: -a[1])[:3]
    assert answers(job) == want and len({score for _, score in want}) == 3


def test_a_reward_decides_and_ties_go_to_the_earlier_sample():
    job, plain = run(BestOf(8, n=8, reward=Length())), run(Sample(8))
    want = sorted(texts(plain), key=lambda text: -len(text))
    assert answers(job) == [(text, float(len(text))) for text in want]
    assert len(set(map(len, want))) < len(want)


def test_the_reward_is_asked_once_and_when_all_have_ended():
    reward = Length()
    job = run(BestOf(8, reward=reward))
    assert reward.asked == [8]
    texts(job)
    texts(job)
    assert reward.asked == [8]


def test_it_begins_on_the_texts_of_the_stage_before():
    job = run(program(Sample(2), BestOf(4, n=4), 2, takes=2))
    heads = [t[:2] for t in texts(run(program(Sample(2), Sample(2), 2, takes=2)))]
    assert {b.choice: b.tokens[:2] for b in job.branches} == dict(enumerate(heads * 2))


@pytest.mark.parametrize("count, n, name", [(0, 1, "count"), (2, 0, "n"), (2, 3, "n"),
                                            (2.0, 1, "count"), (True, 1, "count")])
def test_impossible_numbers_are_refused_by_name(count, n, name):
    with pytest.raises(ParameterError, match=f"{name}=") as caught:
        BestOf(count, n)
    assert caught.value.name == name
