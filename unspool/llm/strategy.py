"""From parameters to a strategy: which one they ask for.

A parameter that the strategy has no use for is refused by name.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Any

from unspool.core.defaults import decide_sampling
from unspool.core.errors import ParameterError
from unspool.core.sockets import Strategy
from unspool.core.values import shown
from unspool.llm.searches import DRAWN, FIELDS, KINDS, OWNED, Wanted, inner
from unspool.llm.shaping import Mode
from unspool.strategies import Contrastive, Sample, Scheduled, StochasticBeam, TreeSearch

SAME = "n greedy texts are equal: sample, or use beam search, for different ones"


def asked_for(w: Wanted) -> str | None:
    """The name of the search that these parameters ask for without naming one."""
    user, params = w.user, w.params
    sampled = [name for name, switch in (("gated", "gate_confidence"), ("mbr", "utility"),
                                         ("self_consistency", "answer"), ("best_of", "best_of"))
               if user.active(switch) is not None]
    if user.active("must_contain") is not None:
        return "lexical_beam"
    if user.active("penalty_alpha") is not None:
        return "contrastive"
    if sampled:
        return sampled[0]
    width = user.num_beams or params.num_beams or 1
    if user.active("num_beam_groups") is not None:
        return "diverse_beam"
    if width != 1:
        sibling_ = user.active("sibling_penalty") is not None
        return "sibling_beam" if sibling_ else "beam_sample" if params.do_sample else "beam"
    return None


def name_of(w: Wanted) -> str | None:
    """Of the search that is asked for, None for greedy and sampling."""
    named = w.params.strategy
    if named is None:
        return asked_for(w)
    return named if isinstance(named, str) and named in KINDS else None


def strategy_of(w: Wanted) -> tuple[Strategy, Mode, tuple[str, ...]]:
    """The strategy, what it makes of a distribution, and notes. Raises ParameterError."""
    params = w.params
    if params.strategy is not None and not isinstance(params.strategy, str):
        return own(w)
    name = name_of(w)
    if name is not None:
        kind = KINDS[name]
        unfit(w, name, kind.takes)
        if w.user.do_sample not in (None, kind.mode in DRAWN):
            raise ParameterError(f"do_sample={w.user.do_sample}: {name} "
                                 f"{'draws' if kind.mode in DRAWN else 'does not draw'} its tokens;"
                                 " leave it out", "do_sample")
        made = kind.make(w)
        if w.user.temperature == 0:
            raise ParameterError(f"temperature=0: greedy leaves one continuation, and {name} needs "
                                 "several; give one of them", "temperature")
        return made, kind.mode, ()
    mode = params.strategy or decide_sampling(w.user, w.facts.defaults, w.dialect.defaults)
    unfit(w, mode, ())
    if mode == "greedy" or params.temperature == 0:
        return Sample(w.n), "greedy", (SAME,) if w.n > 1 else ()
    return Sample(w.n), "sample", ()


def own(w: Wanted) -> tuple[Strategy, Mode, tuple[str, ...]]:
    """A strategy object of the caller's own."""
    strategy: Any = w.params.strategy
    if w.n > 1:
        raise ParameterError(f"n={w.n} with a strategy object, which decides by itself how many "
                             "texts it writes: leave n out", "n")
    unfit(w, str(strategy), ())
    if w.user.do_sample is not None:
        raise ParameterError(f"do_sample={w.user.do_sample}: {strategy} has no use for it; leave "
                             "it out", "do_sample")
    search: Mode = "search" if strategy.searching else "sample"
    return strategy, "greedy" if w.params.temperature == 0 else search, ()


def unfit(w: Wanted, name: str, takes: tuple[str, ...]) -> None:
    """Refuses what the user asked of a search and this strategy does not do."""
    for other in OWNED:
        value = w.user.active(other)
        if value is not None and other not in takes:
            who = [n for n, kind in KINDS.items() if other in kind.takes]
            raise ParameterError(f"{other}={shown(value)}: {name} has no use for it; leave it out, "
                                 f"or use {' or '.join(who[:3])}", other)


def at_once(strategy: Strategy) -> tuple[str, int]:
    """How many texts it may have at a time, and the parameter that says so."""
    maker = inner(strategy)
    numbers = dict(strategy.numbers) if isinstance(strategy, Scheduled) else {}
    if "width" in numbers:
        return "num_beams", round(max(numbers["width"].values))
    found = [(name, getattr(maker, FIELDS[name], 1)) for name in ("best_of", "num_beams", "n")]
    return max(found, key=lambda f: f[1])


def offering(strategy: Strategy, count: int) -> Strategy:
    """A search with as many answers as are taken over from it, if it can have so many."""
    maker, (_, most) = inner(strategy), at_once(strategy)
    if count == 1 or not hasattr(maker, "n") or isinstance(maker, TreeSearch | StochasticBeam):
        return strategy
    found = replace(maker, n=min(count, most))
    return replace(strategy, strategy=found) if isinstance(strategy, Scheduled) else found


def in_effect(w: Wanted, strategy: Strategy, mode: Mode) -> dict[str, Any]:
    """What the strategy makes of the parameters, so that they ask for the same again."""
    name, maker = name_of(w), inner(strategy)
    if strategy is w.user.strategy:
        return {}
    if name is None:
        return {"n": w.n} | ({"do_sample": mode != "greedy"} if w.user.strategy is None else {})
    changing = [field for field, _ in strategy.numbers] if isinstance(strategy, Scheduled) else []
    out = {param: getattr(maker, field) for param, field in FIELDS.items()
           if (param == "n" or param in KINDS[name].takes) and hasattr(maker, field)
           and field not in changing}
    if isinstance(maker, Contrastive):
        out["top_k"] = maker.k
    return out
