"""Chain-of-thought decoding, against its definition over whole forwards."""
import numpy as np
import pytest
from searches_zoo import (
    END,
    PROMPT,
    VOCAB,
    Last,
    answers,
    decide,
    fact,
    greedy,
    job_of,
    last_place,
    likeliest,
    logprobs,
    program,
    run,
    slot,
    texts,
)

from unspool.core.errors import ParameterError
from unspool.strategies import ChainOfThought, Sample


def piece(token):
    return bytes([token]) * (1 + token % 2)  # of one byte or two


class Placed(Last):
    """The same answers, in bytes."""

    def spans(self, branches):
        out = []
        for branch, place in zip(branches, super().spans(branches), strict=True):
            ends = np.cumsum([0, *(len(piece(t)) for t in branch.tokens)])
            out.append(place and (int(ends[place[0]]), int(ends[place[1]])))
        return out


def margins(text):
    rows = np.sort(np.exp(logprobs([*PROMPT, *text])), axis=-1)[len(PROMPT) - 1:-1]
    return (rows[:, -1] - rows[:, -2]).tolist()


def defined(count, known=None):
    """[(margin, text)], best first."""
    out = []
    for token in likeliest(logprobs(PROMPT)[-1], count):
        text = greedy((token,))
        place = None if known is None else last_place(text, known)
        counted = margins(text)[1:] if place is None else [margins(text)[place]]
        out.append((float(np.mean(counted)) if counted else 0.0, text))
    return sorted(out, key=lambda a: -a[0])


@pytest.mark.parametrize("count", [1, 3, VOCAB])
@pytest.mark.parametrize("known", [None, (0, 1, 2, 3, 4, 5, 6), (0, 2, 4), ()])
def test_each_first_token_goes_on_greedily_and_the_margin_of_the_answer_ranks(count, known):
    extractor = None if known is None else Placed(known)
    job = run(ChainOfThought(count, count, extractor, piece))
    want = defined(count, known)
    assert texts(job) == [text for _, text in want]
    assert [s for _, s in answers(job)] == pytest.approx([m for m, _ in want])
    assert texts(run(ChainOfThought(count, 1, extractor, piece))) == [want[0][1]]


def test_an_answer_of_several_tokens_has_their_mean_margin():
    class Middle:
        def spans(self, branches):
            return [(1, 3) for _ in branches]  # the second byte of the first token, and the second

    job = job_of(ChainOfThought(1, extractor=Middle(), piece=piece))
    [root] = job.branches
    decide(job, {root: [slot(fact(1, np.log(0.5)), fact(2, np.log(0.1)))]})
    for token, first, second in ((2, 0.7, 0.2), (4, 0.9, 0.1), (END, 0.6, 0.3)):
        [branch] = job.live
        decide(job, {branch: [slot(fact(token, np.log(first)), fact(5, np.log(second)))]})
    assert answers(job) == [([1, 2, 4, END], pytest.approx((0.4 + 0.5) / 2))]


def test_a_rule_that_leaves_one_token_leaves_the_whole_margin():
    job = job_of(ChainOfThought(4))
    [root] = job.branches
    decide(job, {root: [slot(fact(3, 0.0))]})
    [branch] = job.live
    decide(job, {branch: [slot(fact(END, 0.0))]})
    assert answers(job) == [([3, END], 1.0)]


def test_in_the_middle_of_a_program_each_text_has_its_first_tokens():
    job = run(program(Sample(2), ChainOfThought(3, 3), 2, takes=2))
    assert 1 <= len({tuple(b.tokens[:2]) for b in job.branches}) <= 2
    assert len(job.branches) >= 3 and all(
        greedy(b.tokens[:3]) == b.tokens for b in job.branches if len(b.tokens) > 2)


def test_an_extractor_needs_the_bytes_of_the_tokens():
    with pytest.raises(ParameterError, match="extractor without piece"):
        ChainOfThought(3, extractor=Last())


@pytest.mark.parametrize("how", [{"count": 0}, {"n": 11}])
def test_impossible_numbers_are_refused_by_name(how):
    with pytest.raises(ParameterError, match=f"{next(iter(how))}="):
        ChainOfThought(**how)
