"""The effect matrix: every parameter of the distribution, generated from the table.

A strong value moves one fixed distribution to one worked out by hand; a neutral value changes no
bit; a neighbour in the batch, a search and the slots of a draft see the same effect.
"""
import dataclasses
from dataclasses import dataclass, field
from math import e, exp, inf, log, nan

import models_zoo as zoo
import numpy as np
import pytest
import torch
from engine_zoo import run

from unspool.core.errors import ParameterError
from unspool.core.params import fields
from unspool.core.shaping import Shaping
from unspool.llm.prompts import Request
from unspool.llm.resolve import resolve

P = (0.4, 0.3, 0.15, 0.1, 0.04, 0.01)  # of every next token, whatever came before
END = 4
ENTROPY = -sum(p * log(p) for p in P)


class Same:
    """A model whose row is the same after every token."""

    def __init__(self, row, dtype):
        self.model = zoo.markov(torch.zeros(len(row), len(row)))
        self.row = np.array(row, dtype)

    def __getattr__(self, name):
        return getattr(self.model, name)

    def score(self, spans):
        rows = np.tile(self.row, (sum(span.rows for span in spans), 1))
        return type("Scores", (), {"rows": lambda _: rows})()


@dataclass
class Case:
    """`given` at a place behind `prompt` and `written`, and the weights that it leaves there."""

    given: dict
    want: tuple
    prompt: tuple = (5,)
    written: tuple = ()
    row: tuple = field(default_factory=lambda: tuple(map(log, P)))
    beams: bool = True


def only(*ids):
    return tuple(p if i in ids else 0 for i, p in enumerate(P))


def but(changed):
    return tuple(changed.get(i, p) for i, p in enumerate(P))


def each(weigh):
    return tuple(map(weigh, P))


def d(p):
    """A logit, the highest being 0."""
    return log(p / P[0])


def aimed(target):
    """Adaptive-p's weights, and how far a probability is from what is wanted."""
    return each(lambda p: exp(-10 * (f := abs(p - target) / 0.3) ** 2 / (1 + f)))


def green():
    """The green half of KGW's list behind token 5 (Kirchenbauer et al. 2023, as transformers)."""
    order = torch.randperm(6, generator=torch.Generator().manual_seed(7 * 5)).tolist()
    return {i: P[i] * e ** 2 for i in order[:3]}


REPEATED, LONGER = (0, 1, 2, 0, 1), (0, 1, 2, 3, 0, 1, 2)
CASES = {
    "temperature": Case({"temperature": 0.5}, each(lambda p: p ** 2)),
    "top_k": Case({"top_k": 2}, only(0, 1)),
    "top_p": Case({"top_p": 0.6}, only(0, 1)),
    "min_p": Case({"min_p": 0.3}, only(0, 1, 2)),
    # -log p is 0.50, 0.21, 0.48, 0.89 ... from the entropy of 1.417
    "typical_p": Case({"typical_p": 0.4}, only(1, 2)),
    "epsilon_cutoff": Case({"epsilon_cutoff": 0.05}, only(0, 1, 2, 3)),
    "eta_cutoff": Case({"eta_cutoff": 0.5}, only(0, 1)),  # sqrt(0.5) exp(-1.417) = 0.171
    "top_h": Case({"top_h": 0.6}, only(0, 1)),  # 0.367 + 0.361 <= 0.850
    "top_n_sigma": Case({"top_n_sigma": 0.5}, only(0, 1)),  # sigma is 1.253
    "top_a": Case({"top_a": 1.0}, only(0, 1)),
    "tfs_z": Case({"tfs_z": 0.5}, only(0, 1)),  # second differences 0.05 0.10 0.01 0.03 of 0.19
    "smoothing_factor": Case({"smoothing_factor": 0.5}, each(lambda p: exp(-0.5 * d(p) ** 2))),
    "smoothing_curve": Case({"smoothing_factor": 0.5, "smoothing_curve": 2.0},
                            each(lambda p: exp(-0.25 * d(p) ** 2 + 0.25 * d(p) ** 3))),
    "xtc_probability": Case({"xtc_probability": 1.0, "xtc_threshold": 0.12}, only(2, 3, 4, 5),
                            beams=False),
    "xtc_threshold": Case({"xtc_probability": 1.0, "xtc_threshold": 0.2}, only(1, 2, 3, 4, 5),
                          beams=False),
    "dry_multiplier": Case({"dry_multiplier": 2.0}, but({2: P[2] / e ** 2}), REPEATED),
    "dry_base": Case({"dry_multiplier": 1.0, "dry_base": 3.0}, but({3: P[3] / e ** 3}), LONGER),
    "dry_allowed_length": Case({"dry_multiplier": 1.0, "dry_allowed_length": 3}, P, REPEATED),
    "dry_penalty_last_n": Case({"dry_multiplier": 1.0, "dry_penalty_last_n": 3}, P, REPEATED),
    "dry_sequence_breakers": Case({"dry_multiplier": 1.0, "dry_sequence_breakers": ["b"]}, P,
                                  REPEATED),
    "mirostat": Case({"mirostat": 2, "mirostat_tau": 0.9}, only(0, 1)),  # p >= 2^-1.8 = 0.287
    "mirostat_tau": Case({"mirostat": 2, "mirostat_tau": 1.5}, only(0, 1, 2)),
    # 0.3 of 0.7 are 1.22 bits, 0.32 too many: 2^-(1.8 - 0.32) = 0.359
    "mirostat_eta": Case({"mirostat": 2, "mirostat_tau": 0.9, "mirostat_eta": 1.0}, only(0),
                         written=(1,)),
    "dynatemp_range": Case({"dynatemp_range": 0.5},
                           each(lambda p: p ** (1 / (0.5 + ENTROPY / log(6))))),
    "dynatemp_exponent": Case({"dynatemp_range": 0.5, "dynatemp_exponent": 2.0},
                              each(lambda p: p ** (1 / (0.5 + (ENTROPY / log(6)) ** 2)))),
    "adaptive_target": Case({"adaptive_target": 0.3}, aimed(0.3)),
    # half of two tokens at 0.4 and one at 0.3: 0.35; 2 * 0.4 - 0.35
    "adaptive_decay": Case({"adaptive_target": 0.4, "adaptive_decay": 0.5}, aimed(0.45),
                           written=(1,)),
    "repetition_penalty": Case({"repetition_penalty": 2.0}, but({0: P[0] ** 2}), (0,)),
    "repeat_last_n": Case({"repetition_penalty": 2.0, "repeat_last_n": 1}, but({1: P[1] ** 2}),
                          (0, 1)),
    "presence_penalty": Case({"presence_penalty": 1.0}, but({1: P[1] / e}), (0,), (1, 1)),
    "frequency_penalty": Case({"frequency_penalty": 1.0}, but({1: P[1] / e ** 2}), (0,), (1, 1)),
    "encoder_repetition_penalty": Case({"encoder_repetition_penalty": 2.0}, but({0: P[0] ** 0.5}),
                                       (0,), (1,)),
    "no_repeat_ngram_size": Case({"no_repeat_ngram_size": 2}, but({1: 0}), (5, 0), (1, 0)),
    "encoder_no_repeat_ngram_size": Case({"encoder_no_repeat_ngram_size": 2}, but({1: 0}), (0, 1),
                                         (3, 0)),
    # the end's logit is log 0.04 < 0; the second token is one after the start: it becomes 0
    "exponential_decay_length_penalty": Case({"exponential_decay_length_penalty": (0, 2.0)},
                                             but({END: 1}), written=(0,)),
    "logit_bias": Case({"logit_bias": {5: 3.0}}, but({5: P[5] * e ** 3})),
    "bad_words": Case({"bad_words": [[0], [2, 3]]}, but({0: 0, 3: 0}), (2,)),
    "allowed_token_ids": Case({"allowed_token_ids": [1, 3]}, only(1, 3)),
    "prefix_allowed_tokens_fn": Case({"prefix_allowed_tokens_fn": lambda batch, ids: [2, 3]},
                                     only(2, 3)),
    "suppress_tokens": Case({"suppress_tokens": [0]}, but({0: 0})),
    "begin_suppress_tokens": Case({"begin_suppress_tokens": [0]}, but({0: 0})),
    "forced_bos_token_id": Case({"forced_bos_token_id": 5}, only(5)),
    "forced_eos_token_id": Case({"forced_eos_token_id": 3, "max_new_tokens": 2}, only(3),
                                written=(0,)),
    "min_new_tokens": Case({"min_new_tokens": 2}, but({END: 0}), written=(0,)),
    "min_length": Case({"min_length": 3}, but({END: 0}), written=(0,)),
    "remove_invalid_values": Case({"remove_invalid_values": True}, (0, 1, 0, 0, 0, 0),
                                  row=(nan, inf, 2, 3, 4, 5)),
    "renormalize_logits": Case({"renormalize_logits": True}, P),
    # k first: of 0.85 two are enough; p first: of 1 it takes three
    "order": Case({"order": ["top_p", "top_k"], "top_p": 0.75, "top_k": 3}, only(0, 1, 2)),
    "logits_processor": Case({"logits_processor": lambda ids, logits: 2 * logits},
                             each(lambda p: p ** 2)),
    "choice": Case({"choice": [[3, 0], [2]]}, only(2, 3)),
    "watermark": Case({"watermark": {"kind": "kgw", "greenlist_ratio": 0.5, "hashing_key": 7}},
                      but(green())),
}
NAMES = pytest.mark.parametrize("name", CASES)


@pytest.fixture
def load(make, kit):
    def loaded(case, dtype=np.float32):
        return make(Same(case.row, dtype), kit.letters(6), ends={END})

    return loaded


def at(lm, case, given, written=None):
    """The distribution behind `written`, which is chosen token by token."""
    tokens = list(case.written if written is None else written)
    asked = {"do_sample": True, "max_new_tokens": 8, "ignore_eos": False, **given}
    for step in lm.steps(list(case.prompt), **asked):
        if not tokens:
            return step.shaped.logprobs
        step.choose(tokens.pop(0))
    raise AssertionError("the text ended early")


def test_no_parameter_is_forgotten():
    built = {f.name for f in dataclasses.fields(Shaping) if fields()[f.name].built}
    assert set(CASES) == built | {"min_new_tokens", "min_length"}
    for name, case in CASES.items():
        assert name in case.given and not fields()[name].is_neutral(case.given[name])


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["defined", "compiled"])
@NAMES
def test_a_strong_value_has_the_effect_worked_out_by_hand(load, name, dtype):
    case = CASES[name]
    got = np.exp(at(load(case, dtype), case, case.given))
    np.testing.assert_allclose(got, np.array(case.want) / sum(case.want), rtol=2e-5, atol=1e-9)


@pytest.mark.parametrize(("name", "value"), [
    (name, value) for name in CASES for value in (*fields()[name].neutral, None)], ids=str)
def test_a_neutral_value_changes_no_bit(load, name, value):
    case = Case({}, P, CASES[name].prompt, CASES[name].written)
    lm = load(case)
    assert at(lm, case, {name: value}).tobytes() == at(lm, case, {}).tobytes()
    how = {"max_new_tokens": 6, "seed": 5, "do_sample": True}
    assert told(lm.generate([5], **how, **{name: value})) == told(lm.generate([5], **how))


def told(output):
    return [[(t.id, t.logprob, t.processed_logprob) for t in choice.tokens] for choice in output]


@NAMES
def test_a_neutral_neighbour_in_the_batch_sees_nothing_and_changes_nothing(load, name):
    case = CASES[name]
    lm = load(case if name != "remove_invalid_values" else Case({}, P))
    how = {"max_new_tokens": 5, "seed": 3, "do_sample": True}
    mine = Request(list(case.prompt), **{**how, **case.given})
    plain = Request(list(case.prompt), **how)
    together = lm.generate([plain, mine, plain])
    assert [told(o) for o in together] == [told(lm.generate(r)) for r in (plain, mine, plain)]


@NAMES
def test_a_search_sees_the_same(load, name):
    """Each token of each answer has the log-probability that it has when it is chosen by hand."""
    case = CASES[name]
    lm = load(case)
    how = {**case.given, "num_beams": 2, "n": 2}
    if not case.beams:
        with pytest.raises(ParameterError, match="a search compares texts and draws none"):
            lm.generate(list(case.prompt), **how)
        return
    found = lm.generate(list(case.prompt), **{"max_new_tokens": 3, **how})
    for choice in found:
        for i, token in enumerate(choice.tokens):
            want = at(lm, case, {"max_new_tokens": 3, **case.given}, choice.token_ids[:i])
            assert token.processed_logprob == pytest.approx(want[token.id], abs=1e-6)


class Known:
    """Drafts what was written once, the token at `wrong` excepted."""

    def __init__(self, tokens, wrong=None):
        self.tokens = [5 if i == wrong else t for i, t in enumerate(tokens)]

    def guess(self, branch):
        return self.tokens[branch.written:branch.written + 3]


def bits(job):
    return [(f.processed, f.logprob, f.rank) for f in job.branches[0].facts]


@pytest.mark.parametrize("wrong", [None, 2])
@NAMES
def test_the_slots_of_a_draft_see_the_same(load, name, wrong):
    case = CASES[name]
    lm = load(case)
    given = {"do_sample": True, "seed": 11, "max_new_tokens": 7, "ignore_eos": True, **case.given}
    model, prompt = lm.model, list(case.prompt)
    [plain] = run(model, resolve(lm.facts, prompt, given).request)
    tokens = plain.branches[0].tokens
    drafter = Known(tokens, wrong)
    [drafted] = run(model, resolve(lm.facts, prompt, given, {"drafter": drafter}).request)
    assert drafted.branches[0].tokens == tokens
    assert bits(drafted) == bits(plain)
    assert drafted.usage.accepted > 0 or len(tokens) < 3
