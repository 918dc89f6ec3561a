"""Makers of plans: `beam(5)`, `sample(temperature=0.8)`, `mbr(8)`; joined by `>>`.

Each is a set of parameters, so that a strategy, a flag and an HTTP field mean the same. The
definitions are in `strategies/`; `core/plan.py` says what a plan can do.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from unspool.core.errors import ParameterError
from unspool.core.plan import Plan
from unspool.core.values import shown


def plan(name: str, /, **params: Any) -> Plan:
    return Plan(name, tuple((k, v) for k, v in params.items() if v is not None))


def greedy(**params: Any) -> Plan:
    """The likeliest token at every step."""
    return plan("greedy", **params)


def sample(**params: Any) -> Plan:
    """Sampling, with any of its parameters: temperature, top_k, top_p, min_p, n, ..."""
    return plan("sample", **params)


def beam(width: Any = 5, *, length_penalty: float | None = None,
         early_stopping: bool | Literal["never"] | None = None, **params: Any) -> Plan:
    """Beam search of `width` branches; see `strategies/beam.py` for the definitions."""
    return plan("beam", num_beams=width, length_penalty=length_penalty,
                early_stopping=early_stopping, **params)


def beam_sample(width: Any = 5, **params: Any) -> Plan:
    """Beams whose continuations are drawn without replacement, not the likeliest."""
    return plan("beam_sample", num_beams=width, **params)


def diverse_beam(width: int = 4, groups: int = 2, penalty: Any = 1.0, **params: Any) -> Plan:
    """Groups of beams, each of which pays for the tokens that earlier ones chose."""
    return plan("diverse_beam", num_beams=width, num_beam_groups=groups,
                diversity_penalty=penalty, **params)


def sibling_beam(width: Any = 5, penalty: Any = 0.5, **params: Any) -> Plan:
    """Beams that pay for the rank among the continuations of one parent."""
    return plan("sibling_beam", num_beams=width, sibling_penalty=penalty, **params)


def stochastic_beam(width: int = 5, **params: Any) -> Plan:
    """`width` texts drawn without replacement."""
    return plan("stochastic_beam", num_beams=width, **params)


def lexical_beam(words: Sequence[Any], width: int = 5, *, ordered: bool | None = None,
                 **params: Any) -> Plan:
    """Beams whose texts contain all `words`."""
    return plan("lexical_beam", must_contain=words, num_beams=width,
                must_contain_ordered=ordered, **params)


def contrastive(alpha: Any = 0.6, k: int = 4, **params: Any) -> Plan:
    """Of the `k` likeliest tokens the one whose state repeats the text least."""
    return plan("contrastive", penalty_alpha=alpha, top_k=k, **params)


def best_of(count: int = 8, reward: Any = None, **params: Any) -> Plan:
    """Of `count` samples the best by a reward."""
    return plan("best_of", best_of=count, reward=reward, **params)


def self_consistency(count: int = 8, answer: Any = "number", **params: Any) -> Plan:
    """Of `count` samples one that gives the answer of most."""
    return plan("self_consistency", best_of=count, answer=answer, **params)


def mbr(count: int = 8, utility: Any = "chrf", **params: Any) -> Plan:
    """Of `count` samples the one with the largest expected utility."""
    return plan("mbr", best_of=count, utility=utility, **params)


def tree(budget: int = 256, branching: int = 4, width: Any = 1, value: Any = None,
         **params: Any) -> Plan:
    """Best-first search: the `width` best leaves are expanded, as long as the budget lasts."""
    return plan("tree", search_budget=budget, search_branching=branching, num_beams=width,
                reward=value, **params)


def gated(threshold: float, count: int = 8, window: int | None = None, answer: Any = None,
          **params: Any) -> Plan:
    """`count` samples, of which those that lose confidence are given up."""
    return plan("gated", gate_confidence=threshold, best_of=count, gate_window=window,
                answer=answer, **params)


def cot(count: int = 10, answer: Any = None, **params: Any) -> Plan:
    """Chain-of-thought decoding: the `count` likeliest first tokens, each continued greedily."""
    return plan("cot", best_of=count, answer=answer, **params)


def own(strategy: Any, **params: Any) -> Plan:
    """A strategy object of your own as a part of a program. Raises ParameterError for others."""
    if not callable(getattr(strategy, "decide", None)) or isinstance(strategy, type):
        raise ParameterError(f"own({shown(strategy)}): no strategy; give an object with `open`, "
                             "`decide`, `ranked` and `reads`", "strategy")
    return Plan("own", plan("own", **params).params, own=strategy)
