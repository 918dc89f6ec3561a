"""A choice under every strategy: nothing else is written, with the law and the scores it implies.
"""
import itertools

import numpy as np
import pytest
from engine_zoo import run
from models_zoo import span, tiny
from packed_zoo import compiled

from unspool.constraints import Vocabulary, choice
from unspool.core.branch import Ended
from unspool.core.errors import RowError
from unspool.core.request import Request
from unspool.engine.engine import Engine
from unspool.memories import MEMORIES, Dense
from unspool.rules import constrain, greedy, temperature, top_k
from unspool.stops.complete import Complete
from unspool.stops.length import MaxNew
from unspool.stops.tokens import EndTokens
from unspool.strategies import Beam, Force, Sample

SIZE, END = 12, 11
# a .. h, and tokens of several letters, so that most texts can be spelt in many ways
PIECES = [bytes([97 + i]) for i in range(8)] + [b"ab", b"bc", b"abc", b""]
WORDS = Vocabulary(PIECES)
TEXTS = ["abc", "abcd", "bca", "ha", "abch"]
CHOICE = choice(TEXTS, WORDS, {END})
PROMPT = (1, 2, 3)


@pytest.fixture(scope="module")
def models():
    """The same weights in both paths: float64 rows by definition, float32 rows by operations."""
    plain = tiny(vocab_size=SIZE, hidden_size=64, intermediate_size=64)
    fast = compiled(tiny(dtype="float32", vocab_size=SIZE, hidden_size=64, intermediate_size=64))
    yield {"defined": plain, "compiled": fast}
    fast.close()


@pytest.fixture(params=["defined", "compiled"])
def model(models, request):
    return models[request.param]


def ask(strategy, *rules, made=CHOICE, seed=0, new=9, **fields):
    stops = (EndTokens(frozenset({END})), Complete(made, "choice"), MaxNew(new))
    return Request(PROMPT, strategy, (constrain(data=made), *rules), stops, seed=seed, **fields)


def spelt(tokens):
    return b"".join(PIECES[t] for t in tokens).decode()


def answers(job):
    return [(tuple(b.tokens), score) for b, score in job.strategy.ranked(job)]


def every(model, made=CHOICE):
    """{tokens: log-probability} of all that may be written: the law by exhaustion. Each step is the
    softmax over the allowed tokens of the row that the model gives when all is read at once."""
    out = {}

    def walk(state, tokens, total):
        if made.done(state) or tokens[-1:] == (END,):
            out[tokens] = total
            return
        row = np.asarray(model.score([span([*PROMPT, *tokens])]).rows()[-1], np.float64)
        ids = made.allowed(state)
        norm = np.log(np.exp(row[ids]).sum())
        for i in ids.tolist():
            walk(made.after(state, i), (*tokens, i), total + row[i] - norm)

    walk(made.start(), (), 0.0)
    assert sum(map(np.exp, out.values())) == pytest.approx(1)
    return out


# ── what is written ──────────────────────────────────────────────────────────────────────────────
def test_greedy_follows_the_likeliest_allowed_token(model):
    [job] = run(model, ask(Sample(), greedy()))
    branch = job.branches[0]
    state = CHOICE.start()
    for place, token in enumerate(branch.tokens):
        row = model.score([span([*PROMPT, *branch.tokens[:place]])]).rows()[-1]
        ids = CHOICE.allowed(state)
        assert token == ids[np.argmax(row[ids])]
        state = CHOICE.after(state, token)
    assert spelt(branch.tokens) in TEXTS


def test_samples_are_choices_and_all_of_them_come(model):
    [job] = run(model, ask(Sample(200), temperature(1.5)))
    texts = {spelt(b.tokens) for b in job.branches}
    assert texts == set(TEXTS)
    for b in job.branches:
        ended = Ended("stop", END) if b.tokens[-1] == END else Ended("stop", "choice")
        assert b.ended == ended
        assert (b.tokens[-1] == END) == (spelt(b.tokens) == "abc")  # where two others go on


def test_the_score_of_a_text_is_its_probability_under_the_choice(model):
    law = every(model)
    [job] = run(model, ask(Sample(100)))
    for tokens, score in answers(job):
        assert score == pytest.approx(law[tokens], abs=1e-5)


@pytest.mark.parametrize(("path", "seeds"), [("defined", 2), ("compiled", 5)])
def test_the_law_of_the_pick(models, path, seeds):
    """400 texts for each seed, spellings apart: chi-square, p = 1e-4 (Wilson and Hilferty)."""
    law = every(models[path])
    jobs = run(models[path], *(ask(Sample(400), seed=seed) for seed in range(seeds)))
    found = [tokens for job in jobs for tokens, _ in answers(job)]
    want = np.array([len(found) * np.exp(law[tokens]) for tokens in law])
    got = np.array([found.count(tokens) for tokens in law])
    rare = want < 5
    want, got = (np.append(x[~rare], x[rare].sum() + 1e-9) for x in (want, got))
    free = len(want) - 1
    bound = free * (1 - 2 / (9 * free) + 3.719 * (2 / (9 * free)) ** 0.5) ** 3
    assert len(found) == 400 * seeds and free >= 5
    assert ((got - want) ** 2 / want).sum() < bound


@pytest.mark.parametrize("width", [1, 3, 40])
def test_beams_find_the_likeliest_choices(model, width):
    """A beam that holds every spelling finds all of them, in their order."""
    law = every(model)
    [job] = run(model, ask(Beam(width, n=width, length_penalty=0.0, early_stopping="never",
                                longest=9, ends=len(law))))
    found = answers(job)
    assert all(tokens in law for tokens, _ in found)
    for tokens, score in found:
        assert score == pytest.approx(law[tokens], abs=1e-5)
    if width == 40:
        assert len(law) < width
        assert [t for t, _ in found] == sorted(law, key=lambda t: -law[t])


def test_rules_behind_it_see_only_the_choice(model):
    """top_k 1 of the allowed is greedy, and min_p or a temperature cannot bring others back."""
    [one] = run(model, ask(Sample(), top_k(1)))
    [best] = run(model, ask(Sample(), greedy()))
    assert one.branches[0].tokens == best.branches[0].tokens
    [hot] = run(model, ask(Sample(50), temperature(1000.0)))
    assert {spelt(b.tokens) for b in hot.branches} <= set(TEXTS)


def test_lists_of_ids(model):
    made = choice([[3, 11, 3], [7], [7, 7, 0]], WORDS, {END - 1})  # 10 ends here
    assert made.ends == (10,)
    stops = (EndTokens(frozenset({10})), Complete(made, "choice"), MaxNew(9))
    [job] = run(model, Request(PROMPT, Sample(100),
                               (constrain(data=made), temperature(2.0)), stops))
    assert {tuple(b.tokens) for b in job.branches} == {(3, 11, 3), (7, 10), (7, 7, 0)}


# ── memory, batches, drafts ──────────────────────────────────────────────────────────────────────
def test_memory_and_company_change_nothing(model):
    requests = [ask(Sample(3), seed=4), ask(Beam(3, n=3)), ask(Sample(), greedy())]
    alone = [run(model, r)[0] for r in requests]
    free = Request(PROMPT, Sample(), (), (MaxNew(9),), seed=3)
    for memory in MEMORIES:
        *jobs, other = run(model, *requests, free, memory=memory)
        for one, job in zip(alone, jobs, strict=True):
            assert [t for t, _ in answers(one)] == [t for t, _ in answers(job)]
            assert [s for _, s in answers(one)] == pytest.approx([s for _, s in answers(job)])
        assert other.branches[0].tokens == run(model, free)[0].branches[0].tokens


class Script:
    """Drafts what it is given in turn, whatever was written."""

    def __init__(self, *drafts):
        self.drafts = itertools.cycle(drafts)

    def guess(self, branch):
        return next(self.drafts)


class Knows:
    """Drafts the rest of a text."""

    def __init__(self, text):
        self.text = text

    def guess(self, branch):
        return self.text[branch.written:]


DRAFTS = {
    "forbidden": [(4, 5, 6, 4)], "beyond the end": [(8, 2, 3, 3, 3)], "end": [(END, END)],
    "some fit": [(0, 1, 2, 0), (8,), (1, 2), (10, 7), (9, 0)], "mixed": [(7, 4), (10, 3, END), ()],
}


@pytest.mark.parametrize("drafts", DRAFTS.values(), ids=DRAFTS)
def test_drafts_change_nothing(model, drafts):
    """A forbidden token is never taken, and what stands behind it is not read."""
    for seed in range(20):
        [plain] = run(model, ask(Sample(), seed=seed))
        [job] = run(model, ask(Sample(), seed=seed, drafter=Script(*drafts)))
        one, other = plain.branches[0], job.branches[0]
        assert (one.tokens, one.ended) == (other.tokens, other.ended)
        assert one.score == pytest.approx(other.score, abs=1e-9)
        assert job.usage.accepted + job.usage.rejected == job.usage.drafted


def test_a_right_draft_is_taken_whole(model):
    """Up to the end of the choice: what the draft says behind it is not read."""
    for seed in range(9):
        [plain] = run(model, ask(Sample(), seed=seed))
        tokens = plain.branches[0].tokens
        [job] = run(model, ask(Sample(), seed=seed, drafter=Knows([*tokens, 3, END])))
        assert job.branches[0].tokens == tokens
        assert job.usage.accepted == len(tokens) - 1 and job.usage.forwards == 2


def test_forced_text_that_is_no_choice(model):
    """The forbidden token has no probability, and behind it nothing can be chosen."""
    [good] = run(model, ask(Force((8, 2, 3)), new=3))
    assert good.branches[0].score == pytest.approx(every(model)[8, 2, 3], abs=1e-5)
    engine = Engine(model, Dense())
    bad = engine.add(ask(Force((8, 7, 3)), new=3))
    good = engine.add(ask(Force((8, 2, 3)), new=3))
    for _ in range(9):
        engine.step()
    assert isinstance(bad.error, RowError) and "constrain(choice=" in str(bad.error)
    assert bad.branches[0].facts[1].processed == -np.inf and good.error is None


def test_a_rule_that_removes_the_only_choice_is_named(model):
    """It is an error of its own request."""
    other = constrain(data=choice([[4]], Vocabulary([b""] * SIZE)))  # no text begins with e
    engine = Engine(model, Dense())
    good, bad = engine.add(ask(Sample())), engine.add(ask(Sample(), other))
    for _ in range(12):
        engine.step()
    assert good.error is None and spelt(good.branches[0].tokens) in TEXTS
    assert isinstance(bad.error, RowError) and "removed every one" in str(bad.error)
    for name in ("constrain(choice=[[4]])", "constrain(choice=['abc', 'abcd', 'abch'"):
        assert name in str(bad.error)
