"""From parameters to rules: what each stage of an order makes of them. `shaping.py` walks the
order."""
from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from unspool import rules
from unspool.core.errors import ParameterError
from unspool.core.params import Params
from unspool.core.schedule import Schedule
from unspool.core.sockets import Constraint
from unspool.core.values import shown
from unspool.llm.facts import Facts
from unspool.llm.prompts import whole
from unspool.llm.sequences import (
    attempt,
    banned,
    biases,
    breakers,
    ids_of,
    number_of,
    refuse,
)
from unspool.rules import RuleValue
from unspool.rules.dialects import Dialect
from unspool.rules.infill import Spelling
from unspool.rules.watermarks import watermark_of

Made = tuple[RuleValue, ...]
ALL = -1  # of the last tokens


@dataclass(frozen=True, slots=True)
class Asked:
    """What a stage may look at.

    `params`: those in effect. `longest`: most tokens of the text, the prompt included. `ends`: the
    model's end tokens, or those named in their place; `last`: those that end this text.
    `constraint`: what `choice` asks for. `changing`: parameters that change with the step, and how;
    `params` has one value of each, and its rule stands even where that value changes nothing.
    `notes` is added to.
    """

    facts: Facts
    params: Params
    dialect: Dialect
    longest: int
    ends: frozenset[int] = frozenset()
    last: frozenset[int] = frozenset()
    constraint: Constraint | None = None
    changing: Mapping[str, Schedule] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def ids(self, name: str) -> tuple[int, ...]:
        """A list of ids, checked."""
        value = getattr(self.params, name)
        return ids_of(self.facts, name, [value] if whole(value) is not None else value)


# ── stages of one number ─────────────────────────────────────────────────────────────────────────
def number(make: Callable[..., RuleValue], *names: str) -> Callable[[Asked], Made]:
    """The rule whose numbers are these parameters, as they are."""
    return lambda a: (make(*(getattr(a.params, name) for name in names)),)


def cut(name: str, make: Callable[..., RuleValue]) -> Callable[[Asked], Made]:
    """A cut that may keep ties."""
    def made(a: Asked) -> Made:
        ties = (1,) if name in a.dialect.ties else ()
        return (make(getattr(a.params, name), *ties),)

    return made


def ids(name: str, make: Callable[..., RuleValue]) -> Callable[[Asked], Made]:
    return lambda a: (make(data=a.ids(name)),)


def held_back(name: str, make: Callable[..., RuleValue]) -> Callable[[Asked], Made]:
    """Tokens that end the text are not written yet."""
    def made(a: Asked) -> Made:
        ends = tuple(sorted(a.last))
        return (make(getattr(a.params, name), data=ends),) if ends else ()

    return made


def penalty(name: str, make: Callable[..., RuleValue]) -> Callable[[Asked], Made]:
    def made(a: Asked) -> Made:
        last = ALL if a.params.repeat_last_n is None else a.params.repeat_last_n
        if last == 0:
            return ()
        return (make(getattr(a.params, name), a.dialect.counted[name], last),)

    return made


# ── stages that read more ────────────────────────────────────────────────────────────────────────
def logit_bias(a: Asked) -> Made:
    most, found = a.dialect.most_bias, biases(a.facts, a.params.logit_bias, a.dialect.bias_each)
    limited = tuple((ids, max(min(x, most), -most)) for ids, x in found)
    if limited != found:
        a.notes.append(f"logit_bias limited to {-most:g}..{most:g}, as in {a.dialect.name}")
    return (rules.logit_bias(data=limited),)


def bad_words(a: Asked) -> Made:
    found = banned(a.facts, a.params.bad_words)
    if a.dialect.spares_ends:
        kept = tuple(ids for ids in found if ids not in {(end,) for end in a.ends})
        if kept != found:
            a.notes.append("bad_words: an end token is none, as in transformers")
        found = kept
    return (rules.bad_words(data=found),) if found else ()


def dry(a: Asked) -> Made:
    p, last = a.params, a.params.dry_penalty_last_n
    if last == 0:
        return ()
    return (rules.dry(p.dry_multiplier, p.dry_base, p.dry_allowed_length,
                      ALL if last is None else last,
                      data=breakers(a.facts, p.dry_sequence_breakers)),)


def forced_last(a: Asked) -> Made:
    return (rules.forced_last(a.longest, data=a.ids("forced_eos_token_id")),)


def exponential_decay(a: Asked) -> Made:
    name, value = "exponential_decay_length_penalty", a.params.exponential_decay_length_penalty
    pair = value if isinstance(value, list | tuple) and len(value) == 2 else (None, None)
    start, factor = whole(pair[0]), number_of(pair[1])
    if start is None or start < 0 or not 0 < factor < 1e9:
        refuse(name, f"={shown(value)}: must be [start, factor], a whole number from 0 on and a "
                     "number above 0; give both")
    if not a.ends:
        a.notes.append(f"{name} changes nothing: this model has no end token")
        return ()
    return (rules.exponential_decay(start, factor, data=tuple(sorted(a.ends))),)


def function(name: str, value: Any) -> Hashable:
    """Something that can be called, and be part of a rule."""
    if not callable(value) or isinstance(value, type):
        refuse(name, f"={shown(value)}: must be a function; pass one from Python")
    try:
        hash(value)
    except TypeError:
        refuse(name, f"={shown(value)}: must be hashable; pass a function, or leave __eq__ out")
    return value  # type: ignore[no-any-return]


def prefix_allowed(a: Asked) -> Made:
    name = "prefix_allowed_tokens_fn"
    return (rules.prefix_allowed(data=function(name, getattr(a.params, name))),)


def custom(a: Asked) -> Made:
    """Functions of a user's own, and rules."""
    value = a.params.logits_processor
    many = value if isinstance(value, list | tuple) else [value]
    return tuple(one if isinstance(one, RuleValue) else
                 rules.custom(data=function("logits_processor", one)) for one in many)


def temperature(a: Asked) -> Made:
    t, reach = a.params.temperature, a.params.dynatemp_range
    t = 1.0 if t is None else t
    if 0 < t < a.dialect.floor:
        a.notes.append(f"temperature={t:g} raised to {a.dialect.floor:g}, as in {a.dialect.name}")
        t = a.dialect.floor
    if reach:
        return (rules.dynamic_temperature(max(t - reach, 0.0), t + reach,
                                          a.params.dynatemp_exponent),)
    return (rules.temperature(t),) if t != 1 or "temperature" in a.changing else ()


def xtc(a: Asked) -> Made:
    spared = a.ends | frozenset(line_of(a.facts)) if a.dialect.xtc_spares else frozenset()
    return (rules.xtc(a.params.xtc_probability, a.params.xtc_threshold,
                      data=tuple(sorted(spared))),)


def line_of(facts: Facts) -> tuple[int, ...]:
    """The token of a new line."""
    return () if facts.tokenizer is None else attempt(facts, "\n")[-1:]


def mirostat(a: Asked) -> Made:
    make = rules.mirostat_1 if a.params.mirostat == 1 else rules.mirostat_2
    return (make(a.params.mirostat_tau, a.params.mirostat_eta),)


def watermark(a: Asked) -> Made:
    return (watermark_of(a.params.watermark, a.facts.vocab),)


def choice(a: Asked) -> Made:
    a.notes.extend(f"{name}={getattr(a.params, name)}: a choice that is complete ends the text, "
                   "however short it is" for name in ("min_new_tokens", "min_length")
                   if a.params.active(name) is not None)
    return (rules.constrain(data=a.constraint),)


def infill(a: Asked) -> Made:
    facts = a.facts
    facts.needs_text("order")
    if not a.ends:
        raise ParameterError("order: infill needs an end token, and this model has none; name an "
                             "eos_token_id", "order")
    return (rules.infill(data=Spelling(facts.vocabulary.pieces, tuple(sorted(a.ends)))),)


MAKERS: Mapping[str, Callable[[Asked], Made]] = {
    "logit_bias": logit_bias,
    "encoder_repetition_penalty": number(
        rules.encoder_repetition_penalty, "encoder_repetition_penalty"),
    "repetition_penalty": penalty("repetition_penalty", rules.repetition_penalty),
    "frequency_penalty": penalty("frequency_penalty", rules.frequency_penalty),
    "presence_penalty": penalty("presence_penalty", rules.presence_penalty),
    "dry": dry,
    "no_repeat_ngram": number(rules.no_repeat_ngram, "no_repeat_ngram_size"),
    "encoder_no_repeat_ngram": number(
        rules.encoder_no_repeat_ngram, "encoder_no_repeat_ngram_size"),
    "bad_words": bad_words,
    "min_length": held_back("min_length", rules.min_length),
    "min_new_tokens": held_back("min_new_tokens", rules.min_new_tokens),
    "allowed_ids": ids("allowed_token_ids", rules.allowed_ids),
    "prefix_allowed": prefix_allowed,
    "choice": choice,
    "forced_first": ids("forced_bos_token_id", rules.forced_first),
    "forced_last": forced_last,
    "exponential_decay": exponential_decay,
    "suppress": ids("suppress_tokens", rules.suppress),
    "begin_suppress": ids("begin_suppress_tokens", rules.begin_suppress),
    "custom": custom,
    "temperature": temperature,
    "smoothing": number(rules.smoothing, "smoothing_factor", "smoothing_curve"),
    "top_n_sigma": number(rules.top_n_sigma, "top_n_sigma"),
    "top_h": number(rules.top_h, "top_h"),
    "top_k": cut("top_k", rules.top_k),
    "top_p": number(rules.top_p, "top_p"),
    "min_p": number(rules.min_p, "min_p"),
    "typical_p": cut("typical_p", rules.typical_p),
    "epsilon_cutoff": number(rules.epsilon_cutoff, "epsilon_cutoff"),
    "eta_cutoff": number(rules.eta_cutoff, "eta_cutoff"),
    "top_a": number(rules.top_a, "top_a"),
    "tfs_z": number(rules.tfs_z, "tfs_z"),
    "xtc": xtc,
    "mirostat": mirostat,
    "infill": infill,
    "watermark": watermark,
    "adaptive_p": number(rules.adaptive_p, "adaptive_target", "adaptive_decay"),
}
