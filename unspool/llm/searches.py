"""Makers of searches: what each strategy makes of the parameters."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from unspool.core.errors import ParameterError
from unspool.core.params import Params
from unspool.core.schedule import Schedule, steady
from unspool.core.sockets import Strategy
from unspool.core.values import shown
from unspool.llm.facts import Facts
from unspool.llm.judges import extractor_of, reward_of, utility_of
from unspool.llm.shaping import Mode
from unspool.llm.words import writable_words
from unspool.rules.dialects import Dialect
from unspool.strategies import (
    MBR,
    Beam,
    BeamSample,
    BestOf,
    ChainOfThought,
    Contrastive,
    DiverseBeam,
    Gated,
    LexicalBeam,
    Scheduled,
    SelfConsistency,
    SiblingBeam,
    StochasticBeam,
    TreeSearch,
)
from unspool.strategies.lexical_beam import unreachable

WIDTH, COUNT, CANDIDATES, BRANCHES, PATHS = 5, 8, 4, 4, 10
DRAWN = ("sample", "draws")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a maker may look at. `user`: the parameters that the request names; `params`: those in
    effect; `room`: how many tokens may be written; `ends`: how many may end a text."""

    facts: Facts
    user: Params
    params: Params
    dialect: Dialect
    room: int
    ends: int

    @property
    def n(self) -> int:
        return self.params.n or 1

    def shaping(self, strategy: Strategy, mode: Mode) -> Params:
        """The parameters that make rules: without those that the strategy takes for itself, and
        without a dialect's wish for greedy where texts are drawn."""
        out = self.params
        if isinstance(inner(strategy), Contrastive):
            out = replace(out, top_k=None)
        return replace(out, temperature=1.0) if mode in DRAWN and out.temperature == 0 else out

    def given(self, name: str, default: Any) -> Any:
        """What the user asks for, or the strategy's own default."""
        value = getattr(self.user, name)
        return default if value is None else value

    def fixed(self, name: str, default: Any) -> Any:
        """The same, of what must not change on the way."""
        value = self.given(name, default)
        if isinstance(value, Schedule):
            raise ParameterError(f"{name}={value}: this strategy takes one number for the whole "
                                 "text; give one", name)
        return value


class Kind(NamedTuple):
    """`mode`: what it makes of a distribution. `takes`: parameters of searches that the strategy
    has a use for."""

    make: Callable[[Wanted], Any]
    mode: Mode
    takes: tuple[str, ...] = ()


# ── beams ────────────────────────────────────────────────────────────────────────────────────────
TAIL = ("num_beams", "length_penalty", "length_penalty_type", "early_stopping", "patience")


def width_of(w: Wanted) -> Any:
    """Of a search that was asked for by name, or by its width. A schedule as it is."""
    width = w.user.num_beams or w.params.num_beams or 1
    return WIDTH if w.user.num_beams is None and width == 1 else width


def tail(w: Wanted) -> dict[str, Any]:
    """What beams have in common."""
    p, width = w.params, width_of(w)
    most = max(width.values) if isinstance(width, Schedule) else width
    if w.n > most:
        raise ParameterError(f"n={w.n} with num_beams={width}: a search has at most "
                             "num_beams answers; widen it", "n")
    if w.user.temperature == 0:
        raise ParameterError(f"temperature=0 with num_beams={width}: greedy leaves one "
                             "continuation, a search needs several; give one of them",
                             "temperature")
    if p.length_penalty_type == "average" and w.user.length_penalty not in (None, 1.0):
        raise ParameterError(f"length_penalty={p.length_penalty} with length_penalty_type=average: "
                             "the average has no power; give one of them", "length_penalty")
    return {"width": width, "n": w.n, "length_penalty": orelse(p.length_penalty, 1.0),
            "early_stopping": p.early_stopping or False, "longest": w.room, "ends": w.ends,
            "kind": p.length_penalty_type or "plain", "patience": orelse(p.patience, 1.0)}


def orelse(value: Any, default: Any) -> Any:
    return default if value is None else value


def beam(w: Wanted) -> Any:
    coverage = w.params.active("coverage_penalty")
    if coverage is not None:
        raise ParameterError(f"coverage_penalty={coverage}: this model attends to no source text; "
                             "it is for encoder-decoders, which are not in this version",
                             "coverage_penalty")
    return made(Beam, tail(w))


def diverse(w: Wanted) -> Any:
    groups = w.given("num_beam_groups", 2)
    beam_ = tail(w)
    if w.user.num_beams is None:
        beam_["width"] = max(2 * groups, w.n)
    width = w.fixed("num_beams", beam_["width"])
    if width % groups:
        raise ParameterError(f"num_beam_groups={groups} with num_beams={width}: each group has as "
                             "many beams; give a divisor of num_beams", "num_beam_groups")
    return made(DiverseBeam, {**beam_, "groups": groups,
                              "penalty": w.given("diversity_penalty", 1.0)})


def sibling(w: Wanted) -> Any:
    return made(SiblingBeam, {**tail(w), "rate": w.given("sibling_penalty", 0.5)})


def stochastic(w: Wanted) -> Any:
    width = w.fixed("num_beams", tail(w)["width"])
    return StochasticBeam(width, w.given("n", width))


def lexical(w: Wanted) -> Any:
    if w.user.must_contain is None:
        raise ParameterError("strategy=lexical_beam: it needs must_contain, the words of the text, "
                             "as in lexical_beam:rain", "must_contain")
    words = writable_words(w.facts, w.params)
    problem = unreachable(words, w.room, bool(w.user.must_contain_ordered))
    if problem:
        raise ParameterError(f"must_contain={shown(w.user.must_contain)}: {problem}",
                             "must_contain")
    return made(LexicalBeam, {"words": words, "ordered": bool(w.user.must_contain_ordered),
                              **tail(w)})


# ── samples ──────────────────────────────────────────────────────────────────────────────────────
def count_of(w: Wanted, default: int = COUNT) -> int:
    count = w.given("best_of", max(default, w.n))
    if w.n > count:
        raise ParameterError(f"n={w.n} with best_of={count}: no more texts can be kept than were "
                             "made; raise best_of", "n")
    return int(count)


def best_of(w: Wanted) -> Any:
    return BestOf(count_of(w), w.n, reward_of(w.facts, w.user.reward))


def consistent(w: Wanted) -> Any:
    return SelfConsistency(count_of(w), extractor_of(w.facts, w.given("answer", "number")), w.n)


def mbr(w: Wanted) -> Any:
    return MBR(count_of(w), utility_of(w.facts, w.given("utility", "chrf")), w.n,
               bool(w.user.utility_weighted))


def gated(w: Wanted) -> Any:
    if w.user.gate_confidence is None:
        raise ParameterError("strategy=gated: it needs gate_confidence, below which a text is "
                             "given up, as in 'gated:1.5'", "gate_confidence")
    extractor = None if w.user.answer is None else extractor_of(w.facts, w.user.answer)
    return Gated(count_of(w), w.user.gate_confidence, w.given("gate_window", 16), n=w.n,
                 extractor=extractor)


def cot(w: Wanted) -> Any:
    extractor = None if w.user.answer is None else extractor_of(w.facts, w.user.answer)
    return ChainOfThought(min(count_of(w, PATHS), w.facts.vocab), w.n, extractor, w.facts.piece())


# ── the others ───────────────────────────────────────────────────────────────────────────────────
def contrastive(w: Wanted) -> Any:
    if w.n > 1:
        raise ParameterError(f"n={w.n}: contrastive search writes one text; leave n out", "n")
    if not w.facts.width:
        raise ParameterError(f"penalty_alpha={shown(w.user.penalty_alpha)}: contrastive search "
                             f"needs hidden states, which {w.facts.name} does not give",
                             "penalty_alpha")
    k = w.fixed("top_k", CANDIDATES)
    return made(Contrastive, {"k": k if k > 0 else CANDIDATES,
                              "alpha": w.given("penalty_alpha", 0.6)})


def tree(w: Wanted) -> Any:
    reward = None if w.user.reward in (None, "logprob") else reward_of(w.facts, w.user.reward)
    return made(TreeSearch, {
        "width": w.given("num_beams", 1), "branching": w.given("search_branching", BRANCHES),
        "budget": w.given("search_budget", 256), "value": reward, "n": w.n})


def inner(strategy: Strategy) -> Any:
    """The strategy whose numbers follow schedules, or the one that it is."""
    return strategy.strategy if isinstance(strategy, Scheduled) else strategy


def made(kind: type[Any], settings: dict[str, Any]) -> Any:
    """A strategy, which follows a schedule where one of its settings has one."""
    changing = {k: v for k, v in settings.items() if not steady(v)}
    known = {f.name: f.type for f in fields(kind)}
    first = {k: round(v.at(0)) if known.get(k) == "int" else v.at(0) for k, v in changing.items()}
    fixed = {k: first.get(k, v) for k, v in settings.items() if k in known}
    strategy = kind(**fixed)
    return Scheduled(strategy, tuple(changing.items())) if changing else strategy


KINDS: Mapping[str, Kind] = {
    "beam": Kind(beam, "search", (*TAIL, "coverage_penalty")),
    "beam_sample": Kind(lambda w: made(BeamSample, tail(w)), "draws", TAIL),
    "diverse_beam": Kind(diverse, "search", (*TAIL, "num_beam_groups", "diversity_penalty")),
    "sibling_beam": Kind(sibling, "search", (*TAIL, "sibling_penalty")),
    "stochastic_beam": Kind(stochastic, "draws", ("num_beams",)),
    "lexical_beam": Kind(lexical, "search", (*TAIL, "must_contain", "must_contain_ordered")),
    "contrastive": Kind(contrastive, "search", ("penalty_alpha",)),
    "best_of": Kind(best_of, "sample", ("best_of", "reward")),
    "self_consistency": Kind(consistent, "sample", ("best_of", "answer")),
    "mbr": Kind(mbr, "sample", ("best_of", "utility", "utility_weighted")),
    "gated": Kind(gated, "sample", ("best_of", "gate_confidence", "gate_window", "answer")),
    "cot": Kind(cot, "search", ("best_of", "answer")),
    "tree": Kind(tree, "search", ("num_beams", "search_branching", "search_budget", "reward")),
}
FIELDS = {  # of a strategy, by the parameters that say them
    "n": "n", "num_beams": "width", "num_beam_groups": "groups", "diversity_penalty": "penalty",
    "sibling_penalty": "rate", "penalty_alpha": "alpha", "best_of": "count",
    "gate_confidence": "threshold", "gate_window": "window", "search_branching": "branching",
    "search_budget": "budget"}
OWNED = tuple(dict.fromkeys(name for kind in KINDS.values() for name in kind.takes))
