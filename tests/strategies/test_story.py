"""Searches told as stories, beside the strategies that they tell of."""
import gc
import weakref

import engine_zoo
import pytest
from searches_zoo import END, answers, fact, job_of, model, program, request, run, texts

from unspool.core.edits import Drop, Extend, Fork
from unspool.core.errors import ParameterError
from unspool.core.slot import Reading
from unspool.strategies import Beam, Sample, Story


def beam_of(width):
    """A beam that ends with its first full set of finished texts."""
    def beam(job):
        slots = yield ()
        while True:
            live, old = job.live, [b for b in job.branches if b.ended]
            grown = [(b.score + c.processed, b, c) for b in live for c in slots[b][0].top]
            grown.sort(key=lambda g: -g[0])
            ends = [g for g in grown[:width] if job.ends(*g[1:])]
            kept = [g for g in grown if not job.ends(*g[1:])][:width]
            done = sorted([*((b.score / b.written, b) for b in old),
                           *((s / (b.written + 1), (b, c)) for s, b, c in ends)],
                          key=lambda d: -d[0])[:width]
            best = [what for _, what in done]
            over = len(done) == width
            slots = yield [
                *(Fork(b, c) for _, b, c in ends if (b, c) in best),
                *(Fork(b, c) for _, b, c in kept if not over),
                *(Drop(b) for b in live), *(Drop(b) for b in old if b not in best)]

    return beam


def best_by_mean(job):
    return sorted(((b, b.score / max(b.written, 1)) for b in job.branches), key=lambda r: -r[1])


def sampled(job):
    slots = yield [Fork(job.branches[0], choice=1)]
    while True:
        slots = yield [Extend(b, slots[b][0].pick) for b in job.live]


def draft_then_choose(count, length):
    """`count` samples of a few tokens; the likeliest is finished alone, as in the docstring of a
    paper."""
    def story(job):
        slots = yield [Fork(job.branches[0], choice=i) for i in range(1, count)]
        for _ in range(length):
            slots = yield [Extend(b, slots[b][0].pick) for b in job.live]
        best = max(job.live, key=lambda b: b.score)
        edits = [Drop(b, "not the likeliest") for b in job.branches if b is not best]
        while True:
            slots = yield [*edits, Extend(best, slots[best][0].top[0])]
            edits = []

    return story


@pytest.mark.parametrize("weights", range(3))
def test_a_beam_told_as_a_story_has_the_texts_of_the_beam(weights):
    story = Story(beam_of(3), Reading(top=6, pick=False), ranks=best_by_mean)
    got, want = run(story, weights=weights), run(Beam(3, n=3, early_stopping=True), weights=weights)
    assert answers(got) == answers(want)


def test_samples_told_as_a_story_are_samples():
    assert answers(run(Story(sampled, searching=False, ranks=Sample().ranked))) == answers(
        run(Sample(2)))


def test_a_story_of_two_phases():
    story = Story(draft_then_choose(4, 2), Reading(top=1))
    [text] = texts(run(story, ends=()))
    heads = sorted(run(Sample(4), ends=(), new=2).branches, key=lambda b: -b.score)
    assert text[:2] == heads[0].tokens and len(text) == 5


def test_two_requests_of_one_story_do_not_know_of_each_other():
    story = Story(draft_then_choose(4, 2), Reading(top=1))
    jobs = engine_zoo.run(model(), *(request(story, ends=(), prompt=p, seed=s)
                                     for p, s in (((1, 2, 3), 5), ((4, 4), 6), ((1, 2, 3), 5))))
    assert texts(jobs[0]) == texts(jobs[2]) == texts(run(story, ends=())) != texts(jobs[1])


def test_the_texts_that_ended_are_the_answers_of_a_story_that_is_over():
    def short(job):
        slots = yield [Fork(job.branches[0], choice=1)]
        one, two = job.live
        slots = yield [Extend(one, fact(END)), Extend(two, slots[two][0].pick)]

    job = run(Story(short))
    assert texts(job) == [[END]]
    assert [r.reason for r in job.trace if r.edit == "drop"] == ["the story is over"]


def test_a_story_that_is_over_before_a_text_has_ended_is_an_error():
    def nothing(job):
        return
        yield

    job = job_of(Story(nothing))
    job.slots = {job.branches[0]: []}
    with pytest.raises(ParameterError, match="story is over before"):
        job.decide()


def test_it_tells_a_part_of_a_program():
    job = run(program(Story(draft_then_choose(4, 2), Reading(top=1)), Story(sampled), 3, ends=()))
    [head] = texts(run(Story(draft_then_choose(4, 2), Reading(top=1)), ends=(), new=3))
    assert len(texts(job)) == 2 and all(t[:3] == head and len(t) == 5 for t in texts(job))


def test_a_story_leaves_with_its_job():
    job = job_of(Story(sampled))
    told = weakref.ref(job.kept["story"])
    job.end(job.ends(job.live[0], fact(END)))
    del job
    gc.collect()
    assert told() is None


def test_it_is_a_value():
    assert Story(sampled) == Story(sampled) != Story(beam_of(2))
    assert hash(Story(sampled)) == hash(Story(sampled))
