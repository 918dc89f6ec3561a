"""The parameters that shape the distribution of the next token. See `params.py`."""
# ruff: noqa: RUF009 -- each row of the table is declared by a short call
from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from unspool.core.values import IDS, p

bend = partial(p, "temperature and curves")
cut = partial(p, "cuts")
weaken = partial(p, "penalties")
name = partial(p, "tokens asked for and forbidden")
other = partial(p, "order, marks, rules of your own")


@dataclass(frozen=True, slots=True)
class Shaping:
    """The part of `Params` that rules are made from, in the order in which they are read."""

    temperature: float | None = bend(
        1.0, "0..1000", "logits are divided by this; 0 is greedy", "temp")
    smoothing_factor: float | None = bend(
        0.0, "0..1000", "quadratic smoothing: how fast logits fall off from the highest",
        part=3)
    smoothing_curve: float | None = bend(
        1.0, "0..1000", "curve of the smoothing: 1 is quadratic, 3 cubic", part=3)
    dynatemp_range: float | None = bend(
        0.0, "0..1000", "the temperature follows the entropy, up to this far from its value",
        part=3)
    dynatemp_exponent: float | None = bend(
        1.0, "0..1000", "how it follows", "dynatemp_exp", 3)
    adaptive_target: float | None = bend(
        -1.0, "-1..1", "probability that tokens are to have on average; below 0 is off", part=3)
    adaptive_decay: float | None = bend(0.9, "0..0.99", "memory of that average", part=3)

    top_k: int | None = cut(
        0, "-1..", "keep the k likeliest tokens; 0 and -1 keep all", neutral=(-1,))
    top_p: float | None = cut(1.0, "0..1", "keep the fewest tokens with this probability")
    min_p: float | None = cut(
        0.0, "0..1", "keep tokens at least this share as likely as the likeliest")
    typical_p: float | None = cut(
        1.0, "0..1", "keep the tokens nearest to the entropy with this mass", "typ_p typical", 3)
    epsilon_cutoff: float | None = cut(
        0.0, "0..1", "drop tokens less likely than this", part=3)
    eta_cutoff: float | None = cut(
        0.0, "0..1", "drop tokens less likely than this, fewer where the entropy is high", part=3)
    top_h: float | None = cut(1.0, "0<..1", "keep this share of the entropy", part=3)
    top_n_sigma: float | None = cut(
        -1.0, "-1..1000", "keep logits within n standard deviations of the highest; 0 and below "
        "keep all", "top_nsigma", 3, (0.0,))
    top_a: float | None = cut(
        0.0, "0..1", "keep tokens of at least a times the square of the highest probability",
        part=3)
    tfs_z: float | None = cut(
        1.0, "0..1", "tail-free sampling: cut where the probabilities level off", part=3)
    xtc_probability: float | None = cut(
        0.0, "0..1", "how often all top choices but the last are dropped", part=3)
    xtc_threshold: float | None = cut(0.1, "0..1", "what counts as a top choice", part=3)
    mirostat: int | None = cut(0, "0..2", "hold the surprise steady: version 1 or 2", part=3)
    mirostat_tau: float | None = cut(
        5.0, "0..1000", "the surprise to hold, in bits", "mirostat_ent", 3)
    mirostat_eta: float | None = cut(
        0.1, "0..1", "how fast it is corrected", "mirostat_lr", 3)

    dry_multiplier: float | None = weaken(
        0.0, "0..1000", "strength of DRY, which weakens tokens that prolong a repetition", part=3)
    dry_base: float | None = weaken(1.75, "1..1000", "growth of DRY per repeated token", part=3)
    dry_allowed_length: int | None = weaken(2, "0..", "repeats that DRY lets pass", part=3)
    dry_penalty_last_n: int | None = weaken(
        None, "-1..", "tokens DRY looks back on; -1, and unset, are all of them", "", 3, (0,))
    dry_sequence_breakers: Any = weaken(
        None, "", "strings where DRY begins anew, a list; unset: a new line, : \" and *",
        "", 3, ([],))
    repetition_penalty: float | None = weaken(
        1.0, "0<..1000", "weakens tokens that have occurred", "repeat_penalty", 3)
    repeat_last_n: int | None = weaken(
        None, "-1..", "how many last tokens the penalties count; -1, and unset, are all of them",
        part=3)
    presence_penalty: float | None = weaken(
        0.0, "-1000..1000", "taken off the logit of a token that was written", part=3)
    frequency_penalty: float | None = weaken(
        0.0, "-1000..1000", "taken off the logit for each time it was written", part=3)
    encoder_repetition_penalty: float | None = weaken(
        1.0, "0<..1000", "strengthens tokens of the prompt", part=3)
    no_repeat_ngram_size: int | None = weaken(0, "0..", "n-grams of this size come once", part=3)
    encoder_no_repeat_ngram_size: int | None = weaken(
        0, "0..", "n-grams of the prompt do not come", part=3)
    exponential_decay_length_penalty: Any = weaken(
        None, "", "[start, factor]: the end grows likelier from start on", part=3)

    logit_bias: Any = name(
        None, "", "added to a token's logit: {id or text: number}, false forbids it, as in "
        "{\" red\": 2, \" blue\": false}", "sequence_bias", 3, ({}, []))
    bad_words: Any = name(
        None, "", "never written: texts, or lists of ids, as in [\"blue\", \"red\"]",
        "bad_words_ids", 3, ([],))
    allowed_token_ids: tuple[int, ...] | None = name(
        None, "65536 x 0..", "the only ids written", part=3)
    prefix_allowed_tokens_fn: Any = name(
        None, "", "a function that gives the ids allowed; from Python only", part=3)
    suppress_tokens: tuple[int, ...] | None = name(
        None, IDS, "ids never written", part=3, neutral=([],))
    begin_suppress_tokens: tuple[int, ...] | None = name(
        None, IDS, "ids not written first", part=3, neutral=([],))
    forced_bos_token_id: int | None = name(None, "0..", "the id written first", part=3)
    forced_eos_token_id: tuple[int, ...] | None = name(
        None, IDS, "the id written at the length limit", part=3, neutral=([],))
    choice: Any = name(
        None, "", "the text is one of these: texts, or lists of ids, as in [\" yes\", \" no\"]",
        "guided_choice", 3)
    structured_outputs: Any = name(None, "", "a form that the text must have", part=8)
    response_format: Any = name(None, "", "the same, OpenAI's form", "", 8, ({"type": "text"},))
    json_schema: Any = name(None, "", "a JSON schema that the text obeys", "guided_json", 8)
    regex: Any = name(None, "", "a pattern that the text matches", "guided_regex", 8)
    grammar: Any = name(None, "", "a grammar that derives the text", "guided_grammar", 8, ("",))

    remove_invalid_values: bool | None = other(
        False, "", "read NaN in the model's scores as 0 and infinity as the largest number", part=3)
    renormalize_logits: bool | None = other(
        False, "", "log-softmax after the rules; left out by order=hf alone, in a beam search",
        part=3)
    order: Any = other(
        None, "", "the order of the rules: a dialect (unspool, hf, vllm, vllm-v2, sglang, "
        "llama.cpp, mlx), or a list of stages, as in top_k,temperature", "samplers",
        3, ("unspool",))
    logits_processor: Any = other(
        None, "", "rules of your own, functions of (ids, logits); from Python only",
        "logits_processors", 3, ([],))
    watermark: Any = other(
        None, "", "a detectable mark in the choice of tokens: {\"kind\": \"kgw\"}, or gumbel, or "
        "synthid with keys", "watermarking_config watermarking", 3)
