"""Searches over small trees: slots as the engine reads them, and the enumeration of all texts."""
import math
import random

from unspool.core.branch import Ended
from unspool.core.job import Job
from unspool.core.prefix import Candidate
from unspool.core.request import Request
from unspool.core.slot import Slot
from unspool.core.stage import REACHED, Stage
from unspool.stops.length import MaxNew
from unspool.stops.tokens import EndTokens
from unspool.strategies import Sample

PROMPT = (0,)


def fact(token, processed):
    return Candidate(token, processed, processed, 1, -0.1)


def table(seed, size=4, spread=1.5):
    """Log-probabilities of the next token by the last, all different."""
    draw = random.Random(seed)
    rows = [[draw.gauss(0, spread) for _ in range(size)] for _ in range(size)]
    return [[x - math.log(sum(map(math.exp, row))) for x in row] for row in rows]


def slot_of(row, reads, noise):
    """What a reading gets of a row of log-probabilities; -inf: removed by a rule."""
    left = [t for t in range(len(row)) if row[t] > -math.inf]
    order = sorted(left, key=lambda t: (-row[t], t))
    slot = Slot(fact(order[0], row[order[0]]), top=[fact(t, row[t]) for t in order[:reads.top]])
    slot.named = {t: fact(t, row[t]) for t in reads.named}
    if reads.perturbed:
        sums = sorted(((row[t] - math.log(-math.log(noise.random())), t) for t in left),
                      reverse=True)
        slot.perturbed = [(fact(t, row[t]), value) for value, t in sums[:reads.perturbed]]
    return slot


def forward(job, rows, noise=None):
    for branch in job.live:
        row = rows[branch.settled.token]
        job.slots[branch] = [slot_of(row, job.strategy.reads, noise)]


def job_of(strategy, ends=(), longest=5, prompt=PROMPT):
    return Job(Request(prompt, strategy, stops=(EndTokens(frozenset(ends)), MaxNew(longest))))


def search(rows, strategy, ends=(), longest=5, noise=None):
    job = job_of(strategy, ends, longest)
    for _ in range(longest + 1):
        if not job.live:
            return job
        forward(job, rows, noise)
        job.decide()
    raise AssertionError("no end")


def every_text(rows, ends, longest):
    """The summed log-probability of every finished text."""
    out = {}

    def grow(tokens, score):
        if tokens and (tokens[-1] in ends or len(tokens) == longest):
            out[tokens] = score
            return
        for t, logprob in enumerate(rows[tokens[-1] if tokens else PROMPT[-1]]):
            if logprob > -math.inf:
                grow((*tokens, t), score + logprob)

    grow((), 0.0)
    return out


def answers(job):
    """(tokens, score) of each, best first."""
    return [(tuple(b.tokens), score) for b, score in job.strategy.ranked(job)]


def trail(job):
    """All that was done, in order, but for who has which choice."""
    return [(r.step, r.edit, r.branch, r.parent, r.token, r.reason) for r in job.trace]


# ── in the middle of a request ───────────────────────────────────────────────────────────────────
def staged(strategy, takes, texts, ends=(3,)):
    """A job whose first stage has written these texts."""
    stops = (EndTokens(frozenset(ends)), Reached(len(texts[0])), MaxNew(6))
    job = Job(Request((0,), Sample(len(texts)), stops=stops,
                      program=(Stage(Sample(len(texts))), Stage(strategy, takes=takes))))
    for i in range(len(texts[0])):
        for branch in job.live:
            job.slots[branch] = [Slot(fact(texts[branch.choice][i], -0.5 - 0.1 * branch.choice))]
        job.decide()
    return job


class Reached:
    """Ends the first stage at a length."""

    def __init__(self, count):
        self.count = count

    def start(self):
        return None

    def after(self, state, branch):
        over = branch.stage == 0 and branch.written >= self.count
        return None, Ended(REACHED) if over else None


# ── words ────────────────────────────────────────────────────────────────────────────────────────
def ends_of(text, clause):
    """Where words of the clause end in the text."""
    return [end for end in range(1, len(text) + 1)
            if any(text[:end][-len(word):] == word for word in clause)]


def contains(text, words):
    last = 0
    for clause in words.clauses:
        ends = [end for end in ends_of(text, clause) if end > last]
        if not ends:
            return False
        last = ends[0] if words.ordered else 0
    return True
