"""Faults of searches, mixes and programs, each with a word of the laws that are tried first."""
from __future__ import annotations

from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import torch

from unspool.core import job as jobs
from unspool.core.job import Job
from unspool.core.stage import InForce
from unspool.engine import engine, read, voices
from unspool.engine.runner import OWN
from unspool.kernels import reference
from unspool.kernels.reading.philox import draw
from unspool.strategies import Beam


def a_voice_whose_text_does_not_grow():
    look = Job.look

    def careless(self, branch, candidate):
        before = branch.voices
        ended = look(self, branch, candidate)
        branch.voices = before
        return ended

    return patch.object(Job, "look", careless)


def a_voices_rows_of_another_branch():
    by_voice = voices.rows_by_voice

    def careless(part):
        rows = by_voice(part)
        others = [key for key in rows if key[1] != OWN]
        turned = [rows[key] for key in others[1:] + others[:1]]
        swapped = {key: row for key, row in zip(others, turned, strict=True)
                   if row.shape == rows[key].shape}
        return {**rows, **swapped}

    return patch.object(engine, "rows_by_voice", careless)


def a_voice_that_reads_one_slot_of_a_draft():
    """Its first row stands for all."""
    by_voice = voices.rows_by_voice

    def careless(part):
        return {key: row if key[1] == OWN else row[:1].repeat(len(row), 0)
                for key, row in by_voice(part).items()}

    return patch.object(engine, "rows_by_voice", careless)


def rules_of_the_first_stage():
    return patch.object(Job, "force", lambda self, branch: self.forces[0])


def states_begun_anew_in_each_stage():
    def careless(self, every, old, text):
        out = list(every)
        for rule, place in zip(self.rules(0), self.places, strict=True):
            out[place] = rule.start(text)
        return tuple(out)

    return patch.object(InForce, "enter", careless)


def the_worst_texts_handed_over():
    hand_over = Job.hand_over

    def careless(self):
        kind = type(self.strategy)
        ranked = kind.ranked
        with patch.object(kind, "ranked", lambda *of: ranked(*of)[::-1]):
            hand_over(self)

    return patch.object(Job, "hand_over", careless)


def an_ended_text_that_goes_on():
    """The next stage takes up what had really ended."""
    fork = Job.fork

    def forked(self, edit):
        if edit.stage is not None:
            edit.branch.ended = None
        fork(self, edit)

    return patch.object(Job, "fork", forked)


@contextmanager
def schedules_by_the_place_in_the_text():
    def careless(branch, depth=0):
        return branch.settled.length + depth

    with ExitStack() as stack:
        for module in (jobs, read, voices):
            stack.enter_context(patch.object(module, "step_of", careless))
        yield


def noise_of_a_search_without_its_text():
    def careless(o, depth):
        seed, choice, position, _ = read.place_of(o, depth)
        return seed, choice, position, draw("perturb", o.branch.replaced)

    return patch.object(read, "place_of_perturbing", careless)


def similarity_of_one_token_too_few():
    """The token just before is not looked at."""
    similarity = reference.similarity

    def careless(states, rows):
        alone = rows == 1 and len(states) > 2
        return similarity(torch.cat([states[:-2], states[-1:]]) if alone else states, rows)

    return patch.object(reference, "similarity", careless)


def slots_kept_after_an_edit():
    decide = Job.decide

    def careless(self):
        slots = self.slots
        decide(self)
        live = set(self.live)
        self.slots = {branch: own for branch, own in slots.items() if branch in live} | self.slots

    return patch.object(Job, "decide", careless)


def waiting_slots_of_another_leaf():
    decide = Job.decide

    def careless(self):
        decide(self)
        if self.slots:
            first = next(iter(self.slots.values()))
            self.slots = dict.fromkeys(self.slots, first)

    return patch.object(Job, "decide", careless)


def samples_committed_before_a_choice():
    return patch.object(Job, "competing", property(lambda self: self.strategy.searching))


def a_beam_that_forgets_what_ended():
    select = Beam.select

    def careless(self, job, grown):
        kept, ended = select(self, job, grown)
        return kept, ended[:1]

    return patch.object(Beam, "select", careless)


FAULTS = {
    a_voice_whose_text_does_not_grow: "score_is_true[guided]",
    a_voices_rows_of_another_branch: "score_is_true[guided beam]",
    a_voice_that_reads_one_slot_of_a_draft: "drafted_is_plain[guided, counting]",
    rules_of_the_first_stage: "score_is_true[three]",
    states_begun_anew_in_each_stage: "score_is_true[beam >> sample]",
    the_worst_texts_handed_over: "a_program_begins_as_its_first_stage",
    an_ended_text_that_goes_on: "a_text_that_ended_stays",
    schedules_by_the_place_in_the_text: "score_is_true[sample, falling]",
    noise_of_a_search_without_its_text: "noise_is_of_the_text",
    similarity_of_one_token_too_few: "states_are_the_texts_own",
    slots_kept_after_an_edit: "score_is_true[sample]",
    waiting_slots_of_another_leaf: "[tree]",
    samples_committed_before_a_choice: "nothing_is_committed",
    a_beam_that_forgets_what_ended: "wide_beam_is_exhaustive",
}
