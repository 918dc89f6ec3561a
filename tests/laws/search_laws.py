"""Laws of searches and of mixes, held once for each subject."""
from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
from runs import EVERY, PROMPTS, Setting, answers, rows_of, run, same, same_numbers
from searches import GUIDANCE, LATE, OTHERS, WARM
from setting import COUNTING, END, fresh
from single_laws import texts
from subjects import CLOSE, Subject
from truth import truth

from unspool.core.sockets import Span, Voice
from unspool.engine.scheduler import Scheduler
from unspool.mixes import Ensemble, Guidance
from unspool.rules import greedy
from unspool.stops.length import MaxNew
from unspool.stops.tokens import EndTokens
from unspool.strategies import (
    Beam,
    Contrastive,
    DiverseBeam,
    Sample,
    StochasticBeam,
)


def texts_of(job):
    return [a[0] for a in answers(job)]


def alike(subject: Subject, one: Setting, other: Setting, what: str) -> None:
    """Both settings write the same, with the same scores."""
    for prompt in PROMPTS:
        [a], [b] = run(subject, one.request(prompt)), run(subject, other.request(prompt))
        same(subject, a, b, what)


# ── searches ─────────────────────────────────────────────────────────────────────────────────────
def one_group_is_a_beam(subject: Subject) -> None:
    for rules in ((), COUNTING):
        alike(subject, Setting(DiverseBeam(3, n=3, groups=1, penalty=2.0), rules),
              Setting(Beam(3, n=3), rules), "one group")


def contrast_of_nothing_is_greedy(subject: Subject) -> None:
    for rules in ((), (LATE, fresh())):
        for prompt in PROMPTS:
            [found] = run(subject, Setting(Contrastive(4, 0.0), rules).request(prompt))
            [best] = run(subject, Setting(Sample(), (*rules, greedy())).request(prompt))
            assert texts_of(found) == texts_of(best), "alpha 0 is not greedy"


def contrast_is_by_its_definition(subject: Subject) -> None:
    """Each token has the greatest merit: by plain forwards over the text with each candidate."""
    alpha, k = 0.6, 4
    for prompt in PROMPTS:
        [job] = run(subject, Setting(Contrastive(k, alpha), (LATE,)).request(prompt))
        [(text, _, _)] = answers(job)
        for i, token in enumerate(text):
            before = [*prompt, *text[:i]]
            row = rows_of(subject.model(), before)[-1].astype(np.float64)
            if i < 7:
                row[END] = -np.inf  # too early
            p = np.exp(row - row.max()) / np.exp(row - row.max()).sum()
            merit = {v: (1 - alpha) * p[v] - alpha * nearest(subject, [*before, v])
                     for v in np.argsort(-row, kind="stable")[:k].tolist()}
            assert merit[token] > max(merit.values()) - 1e-6, f"token {i} has not the most merit"


def nearest(subject: Subject, tokens) -> float:
    """The largest cosine of the last token's state with those of all before, in float64."""
    states = states_of(subject.model(), tokens).astype(np.float64)
    states /= np.linalg.norm(states, axis=1, keepdims=True)
    return float((states[:-1] @ states[-1]).max())


def states_of(model, tokens):
    """[len(tokens), width] of a plain forward."""
    from models_zoo import Held

    asked = Span(Held(), list(tokens), 0, len(tokens), True)
    return np.array(model.score([asked]).hidden(0))


@dataclass(frozen=True)
class Seen:
    """A search that writes down of each text what the slot behind it says."""

    search: object
    of: str
    found: dict = field(default_factory=dict, compare=False)
    searching = True

    def __getattr__(self, name):
        return getattr(self.search, name)

    def decide(self, job, slots):
        for branch, own in slots.items():
            for i, slot in enumerate(own):
                text = (*branch.settled.tokens(), *branch.draft[:i])
                self.found.setdefault(text, []).append(getattr(slot, self.of))
        return self.search.decide(job, slots)


def states_are_the_texts_own(subject: Subject) -> None:
    """A hidden state, and the largest cosine, is the same in any memory, chunk and company, and the
    one that a plain forward gives."""
    spy = Seen(Contrastive(4, 0.6), "similarity")
    mine = Setting(spy, (LATE,)).request(PROMPTS[2])
    for memory in ("none", "dense", "full"):
        run(subject, mine, memory=memory)
    for chunk in (1, 7):
        run(subject, mine, scheduler=Scheduler(chunk=chunk))
    run(subject, EVERY["mbr, states"].request(), mine, EVERY["guided"].request(PROMPTS[1]))
    assert len(spy.found) > 20
    for text, values in spy.found.items():
        assert len(values) >= 6, "a text was read in one way and not in another"
        assert all(subject.equal(value, values[0]) for value in values), "similarities differ"
        assert abs(values[0] - nearest(subject, text)) < 1e-5, "the similarity is not the text's"


def states_are_kept_with_candidates(subject: Subject) -> None:
    """A candidate's state is that of the token before it."""
    for prompt in PROMPTS:
        [job] = run(subject, EVERY["mbr, states"].request(prompt))
        for branch, _ in job.strategy.ranked(job):
            states = states_of(subject.model(), branch.settled.tokens())[len(prompt) - 1:-1]
            for fact, state in zip(branch.facts, states, strict=True):
                same_numbers(subject, fact.state, state, "a candidate's state is another's")


def a_sample_without_replacement(subject: Subject) -> None:
    """Which texts a stochastic beam of 2 has, in what order: chi-square with the exact chances."""
    model, runs, ends = subject.model(5), 800, frozenset({4})
    request = Setting(StochasticBeam(2), stops=(EndTokens(ends), MaxNew(2))).request((1, 0))
    p = {text: math.exp(sum(truth(subject, request, text, model=model)[0]))
         for text in texts(5, 2, ends)}
    assert abs(sum(p.values()) - 1) < CLOSE
    jobs = run(subject, *(replace(request, seed=seed) for seed in range(runs)), model=model,
               scheduler=Scheduler(rows=2 * runs))
    pairs = Counter(tuple(map(tuple, texts_of(job))) for job in jobs)
    both = Counter(text for pair in pairs.elements() for text in pair)
    assert all(one != other for one, other in pairs), "a text is in a sample twice"
    due = {(t, u): p[t] * p[u] / (1 - p[t]) for t, u in itertools.permutations(p, 2)}
    included = {t: sum(chance for pair, chance in due.items() if t in pair) for t in p}
    assert chi_square(pairs, due, runs) < 1.7, "the pairs have other chances"
    assert chi_square(both, included, runs) < 1.9, "the texts have other chances"


def noise_is_of_the_text(subject: Subject) -> None:
    """What is drawn behind a text is the same in any company, and not that of another text."""
    spy = Seen(StochasticBeam(4), "perturbed")
    mine = Setting(spy, (LATE,)).request(PROMPTS[2])
    run(subject, mine)
    run(subject, EVERY["beam sample"].request(PROMPTS[2]), mine, memory="none")
    noise: dict[int, dict[tuple, list]] = {}
    for text, seen in spy.found.items():
        [one, other] = [[(c.token, value - c.processed) for c, value in drawn] for drawn in seen]
        assert [t for t, _ in one] == [t for t, _ in other], "other tokens are drawn"
        noise.setdefault(len(text), {})[text] = one
    for texts_of_a_length in noise.values():
        for a, b in itertools.combinations(texts_of_a_length.values(), 2):
            known = dict(b)
            assert not any(abs(x - known.get(t, x + 1)) < 1e-4 for t, x in a), "noise is shared"
    assert max(map(len, noise.values())) == 4


def chi_square(counts, chances, runs) -> float:
    """Over its degrees of freedom; about 1 where the chances are true. Rare texts count as one."""
    often = {t for t, p in chances.items() if p * runs >= 5}
    cells = [(counts[t], runs * chances[t]) for t in often]
    cells.append((sum(n for t, n in counts.items() if t not in often),
                  sum(runs * p for t, p in chances.items() if t not in often)))
    return sum((seen - due) ** 2 / due for seen, due in cells) / (len(cells) - 1)


# ── mixes ────────────────────────────────────────────────────────────────────────────────────────
def guidance_of_1_is_none(subject: Subject) -> None:
    """Also under beams; the scores are the plain ones to within rounding."""
    one = replace(GUIDANCE, scale=1.0)
    for strategy, rules in ((Sample(), ()), (Sample(), WARM), (Beam(4, n=4), ()),
                            (Beam(3, n=3), (LATE, fresh(), *WARM[1:])), (Contrastive(3, 0.5), ()),
                            (DiverseBeam(4, n=2, groups=2, penalty=1.0), ())):
        for prompt in PROMPTS:
            [plain] = run(subject, Setting(strategy, rules).request(prompt))
            [mixed] = run(subject, Setting(strategy, rules, mixes=(one,)).request(prompt))
            unchanged(subject, plain, mixed, bool(rules))


def equal_voices_change_nothing(subject: Subject) -> None:
    """An ensemble of a model with itself, guidance by the own prompt: the plain texts."""
    twin = Voice()
    for mix in (Ensemble((2.0, 1.0), (twin,)), Ensemble((1.0, 3.0, 1.0), (twin, twin), "log"),
                Guidance(2.5, twin)):
        for strategy in (Sample(2), Beam(3, n=3)):
            for prompt in PROMPTS[:2]:
                [plain] = run(subject, Setting(strategy).request(prompt))
                [mixed] = run(subject, Setting(strategy, mixes=(mix,)).request(prompt))
                unchanged(subject, plain, mixed, False)


def unchanged(subject: Subject, plain, mixed, ruled: bool) -> None:
    """The mix changes no more than how float32 numbers round, where the rows are such."""
    near = 1e-5 if subject.exact else CLOSE
    assert texts_of(plain) == texts_of(mixed), "the texts differ"
    for a, b in zip(answers(plain), answers(mixed), strict=True):
        assert abs(a[1] - b[1]) < near and abs(a[2] - b[2]) < near * (10 if ruled else 1), "scores"


def an_ensemble_of_one_is_that_model(subject: Subject) -> None:
    """All weight on the other model: its texts, with its scores."""
    for strategy in (Sample(), Beam(3, n=3)):
        for prompt in PROMPTS[:2]:
            setting = Setting(strategy, mixes=(Ensemble((0.0, 1.0), (OTHERS,)),))
            [mixed] = run(subject, setting.request(prompt))
            [theirs] = run(subject, Setting(strategy).request(prompt), model=subject.other)
            unchanged(subject, theirs, mixed, False)


SEARCHING = (one_group_is_a_beam, contrast_of_nothing_is_greedy, contrast_is_by_its_definition,
             states_are_the_texts_own, states_are_kept_with_candidates,
             a_sample_without_replacement, noise_is_of_the_text, guidance_of_1_is_none,
             equal_voices_change_nothing, an_ensemble_of_one_is_that_model)
