"""Where each value comes from: the user, else the model's own generation config, else the dialect
that the user named, else neutral.

Knows neither model nor tokenizer; a generation config is a mapping of names as its file has them.
"""
from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from unspool.core.errors import ParameterError
from unspool.core.params import Params, fields, spelled
from unspool.core.values import shown

# What shapes the draw of a token and nothing else: each asks for sampling by being set.
TRUNCATION = (
    "top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff", "top_h", "top_n_sigma",
    "top_a", "tfs_z", "smoothing_factor", "xtc_probability", "mirostat", "dynatemp_range",
    "adaptive_target")
SAMPLING = ("temperature", *TRUNCATION)
# Keys of a generation config that are no wish of the user's: ids the model room reads itself,
# and notes of the library that wrote the file.
BOOKKEEPING = frozenset((
    "_from_model_config", "transformers_version", "bos_token_id", "pad_token_id", "eos_token_id",
    "decoder_start_token_id", "is_assistant", "low_memory", "compile_config", "disable_compile",
    "continuous_batching_config", "cache_implementation", "cache_config", "max_cache_len",
    "prefill_chunk_size", "return_dict_in_generate", "output_scores", "output_logits",
    "output_attentions", "output_hidden_states", "use_cache", "num_assistant_tokens",
    "num_assistant_tokens_schedule", "assistant_confidence_threshold", "assistant_lookbehind",
    "target_lookbehind",
))
# Of strategies and other readers, what a generation config may ask for; the rest a request names.
ASKED = frozenset(("do_sample", "n", "num_beams", "length_penalty", "early_stopping", "seed"))
# What a user's value says about others: having given one, the model's of the rest do not count.
INSTEAD = (
    ({"max_new_tokens", "max_length"}, {"max_new_tokens", "max_length"}),
    ({"strategy", "do_sample", "temperature", *TRUNCATION}, {"num_beams"}),
    ({"strategy", "num_beams", "temperature"}, {"do_sample"}),
)


class Merged(NamedTuple):
    """Effective parameters, where each came from, and what of the model's was not applied."""

    params: Params
    origin: dict[str, str]  # canonical name to "user", "model", "dialect" or "default"
    notes: tuple[str, ...]


def merged(user: Params, model: Mapping[str, Any],
           dialect: Mapping[str, Any] = MappingProxyType({})) -> Merged:
    """Fills what the user left unset from the model's generation config, then from the dialect,
    then from the table.

    Of the model's, what is unknown, not in this version, out of range or in conflict becomes a
    note and is not applied. `do_sample`, `seed`, `max_length` and others without a default of
    their own stay None. With a `max_length` and no `max_new_tokens`, only the former limits.
    `dialect`: its defaults, by canonical name.
    """
    values = user.given()
    origin = dict.fromkeys(values, "user")
    wishes, notes = _wishes(user, model)
    for name, value in wishes.items():
        try:
            Params(**values, **{name: value})
        except ParameterError as error:
            notes.append(f"generation config not applied: {error}")
        else:
            values[name], origin[name] = value, "model"
    draws = user.do_sample or user.strategy == "sample"
    for name, value in dialect.items():
        if name not in values and not (draws and name == "temperature" and value == 0):
            values[name], origin[name] = value, "dialect"
    for name, row in fields().items():
        if row.built and row.default is not None and name not in values:
            if _superseded(name, values):
                continue
            values[name], origin[name] = row.default, "default"
    return Merged(Params(**values), origin, tuple(notes))


def decide_sampling(user: Params, model: Mapping[str, Any],
                    dialect: Mapping[str, Any] = MappingProxyType({})
                    ) -> Literal["greedy", "sample"]:
    """Greedy or sampling, by the first that applies; for requests that name no strategy.

    The user's temperature 0 (greedy); the user's `do_sample`; the user's temperature or a
    truncation that cuts (sampling); the model's `do_sample`; the model's temperature above 0 or a
    truncation (sampling); a temperature above 0 that is the dialect's default (sampling); else
    greedy.
    """
    config, _ = _wishes(user, model)
    if user.temperature == 0:
        return "greedy"
    if user.do_sample is not None:
        return "sample" if user.do_sample else "greedy"
    if user.temperature or any(user.active(name) is not None for name in TRUNCATION):
        return "sample"
    if "do_sample" in config:
        return "sample" if config["do_sample"] else "greedy"
    rows = fields()
    cuts = (n in config and not rows[n].is_neutral(config[n]) for n in TRUNCATION)
    drawn = config.get("temperature", dialect.get("temperature"))
    return "sample" if drawn or any(cuts) else "greedy"


def _wishes(user: Params, model: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The model's values that count beside the user's, by canonical name, and notes on others."""
    given = set(user.given())
    meant = {n for n in given if n == "temperature" or user.active(n) is not None}
    silent = {name for said, others in INSTEAD if said & meant for name in others}
    found: dict[str, Any] = {}
    notes: list[str] = []
    for spelling, value in model.items():
        if value is None or spelling in BOOKKEEPING:
            continue
        try:
            parsed = spelled({spelling: value})
        except ParameterError as error:
            notes.append(f"generation config not applied: {error}")
            continue
        for name, (_, checked) in parsed.items():
            if not named(name) and not fields()[name].is_neutral(checked):
                notes.append(f"generation config not applied: {spelling}={shown(value)} (only a "
                             "request names it)")
            elif name in found and found[name] != checked:
                notes.append(f"generation config not applied: {spelling}={shown(value)} (twice)")
            elif name not in given | silent and fields()[name].built:
                found[name] = checked
    return found, notes


def named(name: str) -> bool:
    """Whether a generation config may ask for this parameter."""
    searched = fields()[name].group in ("strategy", "other readers")
    return name != "order" and (name in ASKED or not searched)


def _superseded(name: str, values: Mapping[str, Any]) -> bool:
    """True where a value that was given leaves no place for this default."""
    if name == "max_new_tokens":
        return "max_length" in values
    return name == "add_generation_prompt" and bool(values.get("continue_final_message"))
