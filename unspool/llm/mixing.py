"""From parameters to mixes: which other readers a request brings in, in the order in which they are
joined: ensemble, layers, amateur, experts, context, guidance, attribute, boosts.

Another model must have this one's vocabulary, token by token; it is looked at before the first
forward.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unspool.core.errors import PromptError
from unspool.core.params import Params
from unspool.core.schedule import Schedule
from unspool.core.sockets import Mix, Voice
from unspool.core.values import shown
from unspool.llm.facts import Facts, Partner
from unspool.llm.prompts import whole
from unspool.llm.sequences import entries, ids_of, number_of, refuse, spelt
from unspool.mixes import (
    Attribute,
    Boost,
    ContextAware,
    Contrast,
    Dola,
    Ensemble,
    Experts,
    Guidance,
    buckets,
)

# What calls for a mix, with the parameters that then have a meaning.
BESIDE = {
    "ensemble": ("ensemble_weights", "ensemble_kind"),
    "dola_layers": ("contrast_alpha",),
    "amateur_model": ("contrast_alpha", "contrast_weight", "amateur_temperature"),
    "expert_model": ("anti_expert_model", "experts_alpha"),
    "context_alpha": ("context_free_prompt",), "guidance_scale": ("negative_prompt",),
    "attribute": ("attribute_weight",), "boosts": ("boost_weight",)}


@dataclass(frozen=True, slots=True)
class Wish:
    """What a maker may look at. `ids`: the prompt; `longest`: most tokens of the text."""

    facts: Facts
    ids: Sequence[int]
    user: Params
    params: Params
    longest: int

    def model(self, name: str, value: Any = None) -> Voice:
        """The voice that another model is. Raises ParameterError for one that cannot be."""
        value = getattr(self.user, name) if value is None else value
        if self.facts.partner is None:
            refuse(name, f"={shown(value)}: there is no model here that could be joined")
        return Voice(model=fit(self, name, self.facts.partner(name, value)))

    def prompt(self, name: str) -> Voice:
        """The voice that reads another prompt."""
        value = getattr(self.user, name)
        try:
            ids = self.facts.encode(value, Params())
        except PromptError as error:
            refuse(name, f"={shown(value)}: {error}")
        self.room(name, len(ids), self.facts.context)
        return Voice(tuple(ids))

    def room(self, name: str, prompt: int, context: int) -> None:
        most = prompt + self.longest - len(self.ids)
        if most > context:
            refuse(name, f": with it a text has up to {most} tokens, and the context is {context}; "
                         "shorten it, or write less")


def fit(w: Wish, name: str, other: Partner) -> Any:
    """The runner of a model that has the same vocabulary and room for the text."""
    mine, theirs = w.facts, other.facts
    if mine.vocab != theirs.vocab:
        refuse(name, f"={theirs.name}: it has {theirs.vocab} tokens and {mine.name} {mine.vocab}; "
                     "models that are joined must have one vocabulary")
    if mine.tokenizer is not None and theirs.tokenizer is not None and (
            mine.vocabulary.pieces != theirs.vocabulary.pieces):
        unlike = next(i for i, (a, b) in enumerate(zip(
            mine.vocabulary.pieces, theirs.vocabulary.pieces, strict=True)) if a != b)
        refuse(name, f"={theirs.name}: its token {unlike} is {theirs.text(unlike)!r} and that of "
                     f"{mine.name} is {mine.text(unlike)!r}; models that are joined must have one "
                     "vocabulary")
    w.room(name, len(w.ids), theirs.context)
    return other.runner


def mixes_of(facts: Facts, ids: Sequence[int], user: Params, params: Params, longest: int
             ) -> tuple[Mix, ...]:
    """Raises ParameterError: for values that cannot be, for models of another
    vocabulary, and for a parameter without the one that it belongs to."""
    wish = Wish(facts, ids, user, params, longest)
    asked = [name for name in MAKERS if user.active(name) is not None]
    given = [name for name in MAKERS if getattr(user, name) is not None]  # also a scale of 1
    meant = {other for name in given for other in BESIDE[name]}
    for name, others in BESIDE.items():
        for other in others:
            if user.active(other) is not None and other not in meant:
                refuse(other, f"={shown(getattr(user, other))}: it belongs to {name}, which is not "
                              "asked for; give that too, or leave this out")
    return tuple(MAKERS[name](wish) for name in asked)


# ── one maker for each ───────────────────────────────────────────────────────────────────────────
def ensemble(w: Wish) -> Mix:
    value = w.user.ensemble
    models = list(value) if isinstance(value, list | tuple) else [value]
    if len(models) > 16:
        refuse("ensemble", f" with {len(models)} models: at most 16; give fewer")
    voices = tuple(w.model("ensemble", model) for model in models)
    weights = w.user.ensemble_weights
    if weights is None:
        weights = [1.0] * (len(voices) + 1)
    if not isinstance(weights, list | tuple) or len(weights) != len(voices) + 1:
        refuse("ensemble_weights", f"={shown(weights)}: must be {len(voices) + 1} numbers, this "
                                   "model's first; give so many")
    return Ensemble(tuple(weights), voices, w.params.ensemble_kind or "linear")


def layers(w: Wish) -> Mix:
    found = buckets(w.facts.layers, w.facts.tied, w.user.dola_layers)
    return Dola(found, number(w, "contrast_alpha", 0.1))


def contrast(w: Wish) -> Mix:
    return Contrast(w.model("amateur_model"), number(w, "contrast_alpha", 0.1),
                    number(w, "contrast_weight", 1.0), number(w, "amateur_temperature", 1.0))


def experts(w: Wish) -> Mix:
    if w.user.anti_expert_model is None:
        refuse("expert_model", ": DExperts leans from an anti-expert to an expert; give "
                               "anti_expert_model too")
    return Experts(w.model("expert_model"), w.model("anti_expert_model"),
                   number(w, "experts_alpha", 2.0))


def context(w: Wish) -> Mix:
    if w.user.context_free_prompt is None:
        refuse("context_alpha", f"={shown(w.user.context_alpha)}: it needs context_free_prompt, "
                                "the prompt without its context")
    return ContextAware(number(w, "context_alpha", 0.0), w.prompt("context_free_prompt"))


def guidance(w: Wish) -> Mix:
    unset = w.user.active("negative_prompt") is None
    voice = Voice(tuple(w.ids[-1:])) if unset else w.prompt("negative_prompt")
    return Guidance(number(w, "guidance_scale", 1.0), voice)


def attribute(w: Wish) -> Mix:
    value = w.user.attribute
    if not callable(getattr(value, "log_probability", None)):
        refuse("attribute", f"={shown(value)}: must be a classifier with a method "
                            "log_probability(ids, candidates); pass one from Python")
    return Attribute(value, number(w, "attribute_weight", 1.0))


def boosts(w: Wish) -> Mix:
    """Words, each in the ways it may be spelt, and numbers."""
    name, value = "boosts", w.user.boosts
    pairs = list(value.items()) if isinstance(value, Mapping) else [
        tuple(item) if isinstance(item, list | tuple) else (item,)
        for item in entries(name, value, "{word: number} or [[word, number]]")]
    phrases: dict[tuple[int, ...], float] = {}
    for pair in pairs:
        weight = number_of(pair[1]) if len(pair) == 2 else float("nan")
        if not abs(weight) <= 1000:
            refuse(name, f": {shown(pair)} is no word with a number in -1000..1000; give both")
        ids = [ids_of(w.facts, name, [pair[0]])] if whole(pair[0]) is not None else (
            spelt(w.facts, name, pair[0]))
        phrases |= dict.fromkeys(ids, weight)
    return Boost(tuple(phrases.items()), number(w, "boost_weight", 1.0))


def number(w: Wish, name: str, default: float) -> float | Schedule:
    value = getattr(w.user, name)
    return default if value is None else value


MAKERS: Mapping[str, Callable[[Wish], Mix]] = {
    "ensemble": ensemble, "dola_layers": layers, "amateur_model": contrast,
    "expert_model": experts, "context_alpha": context, "guidance_scale": guidance,
    "attribute": attribute, "boosts": boosts}
assert set(MAKERS) == set(BESIDE)
