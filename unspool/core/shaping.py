"""The parameters that shape the distribution of the next token. See `params.py`."""
# ruff: noqa: RUF009 -- each row of the table is declared by a short call
from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from unspool.core.values import IDS, p

shape = partial(p, "distribution")


@dataclass(frozen=True, slots=True)
class Shaping:
    """The part of `Params` that rules are made from, in the order in which they are read."""

    temperature: float | None = shape(
        1.0, "0..1000", "logits are divided by this; 0 is greedy", "temp")
    top_k: int | None = shape(0, "-1..", "keep the k likeliest tokens; 0 and -1 keep all",
                              neutral=(-1,))
    top_p: float | None = shape(1.0, "0..1", "keep the fewest tokens with this probability")
    min_p: float | None = shape(
        0.0, "0..1", "keep tokens at least this share as likely as the likeliest")
    typical_p: float | None = shape(
        1.0, "0..1", "keep the tokens nearest to the entropy with this mass", "typ_p", 3)
    epsilon_cutoff: float | None = shape(0.0, "0..1", "drop tokens less likely", part=3)
    eta_cutoff: float | None = shape(
        0.0, "0..1", "drop tokens less likely, the bound falling with the entropy", part=3)
    top_h: float | None = shape(1.0, "0<..1", "keep this share of the entropy", part=3)
    top_n_sigma: float | None = shape(
        -1.0, "-1..1000", "keep logits within n standard deviations of the highest", part=3)
    top_a: float | None = shape(
        0.0, "0..1", "keep tokens above a times the square of the highest probability", part=3)
    tfs_z: float | None = shape(1.0, "0..1", "tail-free sampling", part=3)
    smoothing_factor: float | None = shape(0.0, "0..1000", "quadratic smoothing", part=3)
    smoothing_curve: float | None = shape(1.0, "0..1000", "curve of the smoothing", part=3)
    xtc_probability: float | None = shape(
        0.0, "0..1", "how often all top choices but the last are dropped", part=3)
    xtc_threshold: float | None = shape(0.1, "0..1", "what counts as a top choice", part=3)
    dry_multiplier: float | None = shape(0.0, "0..1000", "strength of DRY", part=3)
    dry_base: float | None = shape(1.75, "1..1000", "growth of DRY per repeated token", part=3)
    dry_allowed_length: int | None = shape(2, "0..", "repeats that DRY lets pass", part=3)
    dry_penalty_last_n: int | None = shape(None, "-1..", "tokens DRY looks back on", "", 3, (0,))
    dry_sequence_breakers: Any = shape(None, "", "strings where DRY begins anew", "", 3, ([],))
    mirostat: int | None = shape(0, "0..2", "hold the surprise steady: version 1 or 2", part=3)
    mirostat_tau: float | None = shape(5.0, "0..1000", "the surprise to hold, in bits", part=3)
    mirostat_eta: float | None = shape(0.1, "0..1", "how fast it is corrected", part=3)
    dynatemp_range: float | None = shape(
        0.0, "0..1000", "temperature follows the entropy within this range", part=3)
    dynatemp_exponent: float | None = shape(
        1.0, "0..1000", "how it follows", "dynatemp_exp", 3)
    adaptive_target: float | None = shape(-1.0, "-1..1", "probability aimed at", part=3)
    adaptive_decay: float | None = shape(0.9, "0..1", "memory of that aim", part=3)
    repetition_penalty: float | None = shape(
        1.0, "0<..1000", "weakens tokens that have occurred", "repeat_penalty", 3)
    repeat_last_n: int | None = shape(
        None, "-1..", "how many last tokens the penalties count", part=3)
    presence_penalty: float | None = shape(
        0.0, "-1000..1000", "taken off the logit of a token that was written", part=3)
    frequency_penalty: float | None = shape(
        0.0, "-1000..1000", "taken off the logit for each time it was written", part=3)
    encoder_repetition_penalty: float | None = shape(
        1.0, "0<..1000", "strengthens tokens of the source", part=3)
    no_repeat_ngram_size: int | None = shape(0, "0..", "n-grams of this size come once", part=3)
    encoder_no_repeat_ngram_size: int | None = shape(
        0, "0..", "n-grams of the source do not come", part=3)
    exponential_decay_length_penalty: Any = shape(
        None, "", "(start, factor): the end grows likelier from start on", part=3)
    logit_bias: Any = shape(None, "", "added to a token's logit", "sequence_bias", 3, ({}, []))
    bad_words: Any = shape(None, "", "texts never written", "bad_words_ids", 3, ([],))
    allowed_token_ids: tuple[int, ...] | None = shape(
        None, "65536 x 0..", "the only ids written", part=3)
    prefix_allowed_tokens_fn: Any = shape(None, "", "a function that gives the ids allowed", part=3)
    suppress_tokens: tuple[int, ...] | None = shape(
        None, IDS, "ids never written", part=3, neutral=([],))
    begin_suppress_tokens: tuple[int, ...] | None = shape(
        None, IDS, "ids not written first", part=3, neutral=([],))
    forced_bos_token_id: int | None = shape(None, "0..", "the id written first", part=3)
    forced_eos_token_id: tuple[int, ...] | None = shape(
        None, IDS, "the id written at the length limit", part=3, neutral=([],))
    remove_invalid_values: bool | None = shape(False, "", "drop NaN and infinity", part=3)
    renormalize_logits: bool | None = shape(False, "", "log-softmax after the rules", part=3)
    order: Any = shape(
        None, "", "the rules' order: a dialect or a list", "samplers", 3, ("unspool",))
    logits_processor: Any = shape(None, "", "rules of your own", "logits_processors", 3, ([],))
    choice: Any = shape(None, "", "the text is one of these", "guided_choice", 3)
    structured_outputs: Any = shape(None, "", "a form that the text must have", part=8)
    response_format: Any = shape(None, "", "the same, OpenAI's form", "", 8, ({"type": "text"},))
    json_schema: Any = shape(None, "", "a JSON schema that the text obeys", "guided_json", 8)
    regex: Any = shape(None, "", "a pattern that the text matches", "guided_regex", 8)
    grammar: Any = shape(None, "", "a grammar that derives the text", "guided_grammar", 8, ("",))
    watermark: Any = shape(
        None, "", "a detectable mark in the choice of tokens", "watermarking_config watermarking",
        3)
