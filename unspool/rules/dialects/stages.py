"""The stages that an order is made of: which rules each makes, and the parameters it reads."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stage:
    """`rules`: the kinds of rule it may make. `switches`: the parameters that call for it.
    `beside`: those that it reads too. `also`: other names of the stage; its switches and its rules
    are names of it as well."""

    rules: tuple[str, ...]
    switches: tuple[str, ...]
    beside: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


def named(name: str, *beside: str, also: tuple[str, ...] = ()) -> Stage:
    """A stage, its rule and its parameter that have one name."""
    return Stage((name,), (name,), beside, also)


def of(rule: str, switch: str, *beside: str, also: tuple[str, ...] = ()) -> Stage:
    return Stage((rule,), (switch,), beside, also)


STAGES: Mapping[str, Stage] = {
    "logit_bias": named("logit_bias", also=("sequence_bias",)),
    "encoder_repetition_penalty": named("encoder_repetition_penalty"),
    "repetition_penalty": named("repetition_penalty", "repeat_last_n", also=("repeat_penalty",)),
    "frequency_penalty": named("frequency_penalty", "repeat_last_n"),
    "presence_penalty": named("presence_penalty", "repeat_last_n"),
    "dry": of("dry", "dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n",
              "dry_sequence_breakers"),
    "no_repeat_ngram": of("no_repeat_ngram", "no_repeat_ngram_size"),
    "encoder_no_repeat_ngram": of("encoder_no_repeat_ngram", "encoder_no_repeat_ngram_size"),
    "bad_words": named("bad_words", also=("bad_words_ids",)),
    "min_length": named("min_length"),
    "min_new_tokens": named("min_new_tokens", also=("min_tokens",)),
    "allowed_ids": of("allowed_ids", "allowed_token_ids"),
    "prefix_allowed": of("prefix_allowed", "prefix_allowed_tokens_fn"),
    "choice": of("constrain", "choice", also=("guided_choice",)),
    "forced_first": of("forced_first", "forced_bos_token_id"),
    "forced_last": of("forced_last", "forced_eos_token_id"),
    "exponential_decay": of("exponential_decay", "exponential_decay_length_penalty"),
    "suppress": of("suppress", "suppress_tokens"),
    "begin_suppress": of("begin_suppress", "begin_suppress_tokens"),
    "custom": of("custom", "logits_processor", also=("logits_processors",)),
    "temperature": Stage(("temperature", "dynamic_temperature", "greedy"),
                         ("temperature", "dynatemp_range"), ("dynatemp_exponent",),
                         ("temp", "dynatemp", "temp_ext")),
    "smoothing": of("smoothing", "smoothing_factor", "smoothing_curve", also=("quadratic",)),
    "top_n_sigma": named("top_n_sigma"),
    "top_h": named("top_h"),
    "top_k": named("top_k"),
    "top_p": named("top_p", also=("nucleus",)),
    "min_p": named("min_p"),
    "typical_p": named("typical_p", also=("typ_p", "typical", "typ")),
    "epsilon_cutoff": named("epsilon_cutoff", also=("epsilon",)),
    "eta_cutoff": named("eta_cutoff", also=("eta",)),
    "top_a": named("top_a"),
    "tfs_z": named("tfs_z", also=("tfs",)),
    "xtc": of("xtc", "xtc_probability", "xtc_threshold"),
    "mirostat": Stage(("mirostat_1", "mirostat_2"), ("mirostat",),
                      ("mirostat_tau", "mirostat_eta")),
    "infill": Stage(("infill",), ()),
    "watermark": Stage(("kgw", "gumbel_watermark", "synthid"), ("watermark",), (),
                       ("watermarking_config", "watermarking")),
    "adaptive_p": of("adaptive_p", "adaptive_target", "adaptive_decay", also=("adaptive",)),
}
# One name for several stages, in this order.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "penalties": ("repetition_penalty", "frequency_penalty", "presence_penalty")}
# These never take away the likeliest token.
CALM = frozenset(("temperature", "top_n_sigma", "top_h", "top_k", "top_p", "min_p",
                  "epsilon_cutoff", "eta_cutoff", "top_a", "tfs_z", "mirostat"))


def spellings() -> dict[str, tuple[str, ...]]:
    """Every name of a stage or a group to the stages that it means."""
    found = dict(GROUPS)
    for name, stage in STAGES.items():
        found |= dict.fromkeys((name, *stage.rules, *stage.switches, *stage.also), (name,))
    return found
