"""Self-consistency, against a count by hand."""
from math import exp

from searches_zoo import Last, answers, fact, job_of, last_of, run, texts

from unspool.core.edits import Extend
from unspool.strategies import Sample, SelfConsistency


def written(*samples):
    """A job whose samples have these (tokens, logprob of each) and the end token."""
    job = job_of(SelfConsistency(len(samples), Last((1, 2, 3))), ends=(7,))
    for branch, (tokens, raw) in zip(list(job.branches), samples, strict=True):
        job.apply([Extend(branch, fact(t, raw=raw)) for t in (*tokens, 7)])
    return job


def test_the_answers_of_the_samples_are_counted():
    count, known = 24, (0, 2, 4, 5, 6)
    job, plain = run(SelfConsistency(count, Last(known), n=count)), run(Sample(count))
    said = {b: last_of(b.tokens, known) for b in plain.branches}
    votes = {a: [b for b in plain.branches if said[b] == a] for a in said.values()}
    silent = votes.pop(None, [])
    want = sorted(votes, key=lambda a: (-len(votes[a]), -sum(exp(b.logprob) for b in votes[a])))
    best = [max(votes[a], key=lambda b: b.logprob / b.written) for a in want]
    assert texts(job) == [b.tokens for b in best]
    assert [s for _, s in answers(job)] == [len(votes[a]) / (count - len(silent)) for a in want]
    assert len(want) > 2 and silent


def test_a_tie_goes_to_the_greater_probability_and_then_to_the_first():
    assert texts(written(([1], -3.0), ([2], -1.0))) == [[2, 7]]
    assert texts(written(([1], -1.0), ([2], -1.0))) == [[1, 7]]
    assert texts(written(([1], -900.0), ([2], -800.0))) == [[2, 7]]  # exp of them is 0
    assert texts(written(([2], -1.0), ([1], -3.0), ([1], -3.0))) == [[1, 7]]


def test_the_likeliest_text_per_token_stands_for_its_answer():
    job = written(([3, 3, 3, 1], -1.0), ([1], -1.5), ([2], -0.1))
    assert answers(job) == [([3, 3, 3, 1, 7], 2 / 3)]


def test_texts_without_an_answer_do_not_vote():
    job = written(([5], -0.1), ([6], -0.1), ([2], -3.0))
    assert answers(job) == [([2, 7], 1.0)]


def test_where_no_text_has_an_answer_the_likeliest_per_token_is_returned():
    assert answers(written(([5], -2.0), ([6], -1.0), ([4], -1.0))) == [([6, 7], 0.0)]


def test_it_counts_once_and_at_the_end():
    extractor = Last()
    job = run(SelfConsistency(4, extractor))
    texts(job)
    assert extractor.asked == [4]
