"""B27 an end inside a block, B30 the law of drafted samples, B32 the length limit, B38 with drafts.
"""
import functools
import math

import numpy as np
import pytest
from bug_zoo import A, PromptLookup, Script, asked, random_table, run, text, texts, tl
from models_zoo import cycle, markov

from unspool.engine.engine import Engine
from unspool.engine.scheduler import Scheduler
from unspool.memories import Dense, Nothing
from unspool.rules import greedy, min_p, temperature, top_k, top_p
from unspool.strategies import Sample

CY = markov(cycle(12))
GREEDY = (greedy(),)


# ── B27 ──────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("new", [1, 2, 4, 6, 7, 10])
@pytest.mark.parametrize("size", [1, 3, 8])
@pytest.mark.parametrize("drafter", ["target", "n-gram"])
def test_b27_an_end_inside_a_block_ends_the_text(drafter, size, new):
    guess = Script([*range(1, 12), 0] * 3, size) if drafter == "target" else PromptLookup(size)
    prompt = [0] if drafter == "target" else [*range(12), 0]
    engine = Engine(CY, Dense())
    job = engine.add(asked(prompt, new, rules=GREEDY, ends=[6], drafter=guess))
    shown = []
    while engine.jobs:
        for _, events in engine.step():
            shown += [c.token for e in events for c in getattr(e, "tokens", ())]
    want = [1, 2, 3, 4, 5, 6][:new]
    assert texts(job) == [want] and shown == want
    [branch] = job.branches
    assert branch.ended.reason == ("stop" if new >= 6 else "length")
    usage = job.usage
    assert usage.drafted == usage.accepted + usage.rejected and branch.draft == ()
    assert usage.accepted > 0 or new == 1
    again = engine.add(asked(prompt, 10, rules=GREEDY, ends=[6]))  # the same memory, no draft
    while engine.jobs:
        engine.step()
    assert texts(again) == [[1, 2, 3, 4, 5, 6]]


@pytest.mark.parametrize("size", [1, 3, 8])
@pytest.mark.parametrize("seed", range(6))
def test_b27_sampled_with_two_ends_it_is_the_text_without_a_draft(seed, size):
    model = markov(random_table(seed, 12, 1.5))
    plain = asked([0], 20, rules=(temperature(1.0),), ends=[6, 9], seed=seed)
    [job] = run(model, plain)
    [want] = texts(job)
    for known in (want, [*want[:2], 11, *want[3:]], [5] * 20):
        drafted = asked([0], 20, rules=(temperature(1.0),), ends=[6, 9], seed=seed,
                        drafter=Script([*known, 1, 2, 3, 4, 5, 6, 7, 8], size))
        [other] = run(model, drafted)
        assert texts(other) == [want]
        assert other.branches[0].ended == job.branches[0].ended


# ── B30 ──────────────────────────────────────────────────────────────────────────────────────────
TARGET, GUESSES = random_table(1, 4, 1.2).double().numpy(), random_table(5, 4, 1.2)


class ByTable:
    """Drafts what another model would: greedily, or at random by its own generator."""

    def __init__(self, size, sampled):
        self.size = size
        self.chance = np.random.default_rng(3) if sampled else None
        self.p = GUESSES.double().softmax(-1).numpy()

    def guess(self, branch):
        out, last = [], branch.settled.token
        for _ in range(self.size):
            row = self.p[last]
            last = int(row.argmax() if self.chance is None else self.chance.choice(4, p=row))
            out.append(last)
        return out


def law(*rules):
    """P(next | last) [4, 4] after the filters, by their definitions in plain float64."""
    out = np.zeros((4, 4))
    for last, row in enumerate(TARGET):
        logits = dict(enumerate(row))
        for rule in rules:
            number = rule.numbers[0]
            order = sorted(logits, key=lambda t, held=logits: -held[t])
            total = sum(math.exp(v) for v in logits.values())
            if rule.name == "temperature":
                logits = {t: v / number for t, v in logits.items()}
            elif rule.name == "top_k":
                logits = {t: logits[t] for t in order[:int(number)]}
            elif rule.name == "top_p":
                mass = np.cumsum([math.exp(logits[t]) / total for t in order])
                logits = {t: logits[t] for t in order[:int((mass < number - 1e-6).sum()) + 1]}
            else:
                least = max(logits.values()) + math.log(number)
                logits = {t: v for t, v in logits.items() if v >= least}
        total = sum(math.exp(v) for v in logits.values())
        for token, value in logits.items():
            out[last, token] = math.exp(value) / total
    return out


def unlikely(counts, p):
    """Chi-square over its bound at p = 1e-4 (Wilson and Hilferty's; 44.6 at 15 degrees of freedom).

    Nothing may fall where nothing can; cells that expect less than 5 are joined.
    """
    assert counts[p == 0].sum() == 0
    cells = [list(cell) for cell in zip(p[p > 0] * counts.sum(), counts[p > 0], strict=True)]
    while (least := min(cells))[0] < 5:
        cells.remove(least)
        other = min(cells)
        other[0], other[1] = other[0] + least[0], other[1] + least[1]
    part = 2 / (9 * (len(cells) - 1))
    bound = (len(cells) - 1) * (1 - part + 3.719 * math.sqrt(part)) ** 3
    return sum((seen - expected) ** 2 / expected for expected, seen in cells) / bound


LAWS = {
    "T .6": (3, True, (temperature(0.6),)),
    "T 1, greedy draft": (3, False, (temperature(1.0),)),
    "T 1, one token": (1, True, (temperature(1.0),)),
    "top_k": (3, True, (temperature(0.6), top_k(2))),
    "top_p": (3, True, (top_p(0.8),)),
    "min_p": (3, True, (temperature(1.0), min_p(0.1))),
}


@pytest.mark.parametrize("count", [1_500, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", LAWS)
def test_b30_drafted_samples_are_distributed_as_the_target(name, count):
    """The joint law of tokens 1 and 2, and of 2 and 3, which lie in one drafted block."""
    size, sampled, rules = LAWS[name]
    engine = Engine(markov(TARGET), Nothing(), Scheduler(rows=10**6, chunk=10**9))
    job = engine.add(asked([0], 3, Sample(count), rules, seed=11, drafter=ByTable(size, sampled)))
    while engine.jobs:
        engine.step()
    assert job.error is None and job.usage.accepted > 0 and job.usage.rejected > 0
    tokens = np.array(texts(job))
    step = law(*rules)
    first = step[0][:, None] * step
    second = (step[0] @ step)[:, None] * step
    for pair, p in ((tokens[:, :2], first), (tokens[:, 1:], second)):
        counts = np.bincount(pair[:, 0] * 4 + pair[:, 1], minlength=16).reshape(4, 4)
        assert unlikely(counts, p) < 1


# ── B32 ──────────────────────────────────────────────────────────────────────────────────────────
LOOKED = [0, 1, 2, 3, 4, 5, 7, 8, 0, 1]


@pytest.mark.parametrize("new", range(1, 9))
def test_b32_prompt_lookup_writes_no_token_too_many(new):
    [job] = run(CY, asked(LOOKED, new, rules=GREEDY, drafter=PromptLookup(5)))
    assert texts(job) == [[2, 3, 4, 5, 6, 7, 8, 9][:new]]
    assert job.usage.accepted > 0 or new < 2


def test_b32_an_end_inside_what_was_looked_up():
    request = asked(LOOKED, 8, rules=GREEDY, ends=[4], drafter=PromptLookup(5))
    assert text(CY, request) == [2, 3, 4]


@pytest.mark.parametrize("prompt", [[3], [5] * 9, [0, 1, 2], [0, 1, 2, 3, 4, 3, 4], [7, 0, 1, 0]],
                         ids=["one id", "one repeated id", "no match", "own tail", "at the end"])
@pytest.mark.parametrize("size", [1, 5, 40])
def test_b32_odd_prompts_give_the_greedy_text(prompt, size):
    want = text(CY, asked(prompt, 15, rules=GREEDY))
    assert text(CY, asked(prompt, 15, rules=GREEDY, drafter=PromptLookup(size))) == want
    assert len(want) == 15


@pytest.mark.parametrize("context", [14, 15, 18])
def test_b32_the_context_ends_inside_a_block(context):
    """As many tokens as fit are written, and none is read behind the context."""
    model = markov(cycle(12))
    model.context = context
    read = []

    class Watched:
        def __getattr__(self, name):
            return getattr(model, name)

        def score(self, spans):
            read.extend(span.start + len(span.tokens) for span in spans)
            return model.score(spans)

    request = asked(LOOKED, context - len(LOOKED), rules=GREEDY, drafter=PromptLookup(8))
    assert text(Watched(), request) == [2, 3, 4, 5, 6, 7, 8, 9][:context - len(LOOKED)]
    assert max(read) < context


# ── B38 ──────────────────────────────────────────────────────────────────────────────────────────
@functools.cache
def facts(drafter=None, neighbours=0):
    recipe = (temperature(0.8), top_k(20))
    jobs = run(tl(), asked(A, 16, rules=recipe, seed=5, drafter=drafter),
               *(asked(A[i:], 9, rules=recipe, seed=i) for i in range(neighbours)))
    return jobs[0].branches[0].facts


def test_b38_drafts_and_neighbours_change_no_log_probability():
    plain = facts()
    known = [f.token for f in plain]
    for other in (facts(Script(known, 5)), facts(Script(known[:4] + [1] * 12, 5)), facts(None, 4)):
        assert [f.token for f in other] == known
        for kind in ("logprob", "processed"):
            got = [getattr(f, kind) for f in other]
            assert got == pytest.approx([getattr(f, kind) for f in plain], abs=1e-9)
            assert max(got) < -1e-6  # no one-hot of a verifier
