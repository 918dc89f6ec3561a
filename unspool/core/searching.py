"""The parameters that say how texts are searched and chosen. See `params.py`."""
# ruff: noqa: RUF009 -- each row of the table is declared by a short call
from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from unspool.core.shaping import Shaping
from unspool.core.sockets import Strategy
from unspool.core.values import p

search = partial(p, "strategy")
SEED = "0..18446744073709551615"  # 64 bits


@dataclass(frozen=True, slots=True)
class Searching(Shaping):  # a chain: classes with slots cannot be joined otherwise
    """The part of `Params` that strategies and drafters are made from."""

    strategy: str | Strategy | None = search(
        None, "1..4000", "how the next tokens are chosen: greedy, sample, beam:5, or a program "
        "as in 'beam:5@20 >> sample:t=0.8'; docs/strategies.md")
    do_sample: bool | None = search(None, "", "True draws tokens, False takes the likeliest")
    n: int | None = search(
        1, "1..1024", "continuations of each prompt", "num_return_sequences")
    best_of: int | None = search(
        1, "1..1024", "texts that are sampled, of which n are kept", part=4)
    num_beams: int | None = search(1, "1..1024", "width of beam search", "beam_width")
    length_penalty: float | None = search(
        1.0, "-100..100", "a beam's score is divided by its written length to this power; "
        "decides which finished text wins, not which are explored")
    length_penalty_type: str | None = search(
        "plain", "plain|gnmt|average", "what the length counts as: its power; that of (5 + length) "
        "/ 6; or the length itself", part=4)
    coverage_penalty: float | None = search(
        0.0, "0..1000", "cost of source positions that the text attended to too little", part=4)
    early_stopping: bool | str | None = search(
        False, "True|False|never", "when a search may end: at num_beams finished texts (True), "
        "when none is likely to do better (False), or when none can (never)")
    patience: float | None = search(
        1.0, "0<..1000", "a search ends at this many times num_beams finished texts", part=4)
    num_beam_groups: int | None = search(1, "1..1024", "groups of a diverse search", part=4)
    diversity_penalty: float | None = search(
        0.0, "0..1000", "cost of a token for each beam of an earlier group that chose it", part=4)
    sibling_penalty: float | None = search(
        0.0, "0..1000", "cost of each rank among the continuations of one beam", part=4)
    must_contain: Any = search(
        None, "", "words that the text contains, a list; of a list within it, one: [\"rain\", "
        "[\"sun\", \"sunny\"]]", "force_words_ids force_words constraints", 4)
    must_contain_ordered: bool | None = search(False, "", "in the order given", part=4)
    penalty_alpha: float | None = search(
        0.0, "0..1", "weight of the degeneration penalty of contrastive search, among top_k (4) "
        "tokens", part=4)
    reward: Any = search(
        None, "", "what ranks sampled texts or the leaves of a tree: logprob, mean_logprob, or a "
        "function of a list of texts", part=4)
    utility: Any = search(
        None, "", "what minimum Bayes risk maximises: chrf, chrf++, bleu, states (hidden ones), or "
        "a function of two texts", part=4)
    utility_weighted: bool | None = search(
        False, "", "texts weigh by their probability, not alike", part=4)
    answer: Any = search(
        None, "", "how the answer is read from a text: number, boxed, a pattern with a group, or a "
        "function of a text", part=4)
    search_budget: int | None = search(
        256, "1..1000000", "leaves that tree search expands", part=4, neutral=())
    search_branching: int | None = search(
        4, "1..1024", "continuations of each", part=4, neutral=())
    gate_confidence: float | None = search(
        None, "0..1000", "a sampled text is given up when its confidence falls below this: minus "
        "the mean log-probability of the 5 likeliest tokens", part=4)
    gate_window: int | None = search(16, "1..65536", "over the last so many tokens", part=4)
    assistant_model: Any = search(None, "", "a smaller model that drafts", "draft_model", 6)
    num_assistant_tokens: int | None = search(
        None, "0..1024", "tokens per draft", "num_draft_tokens num_speculative_tokens", 6, (0,))
    num_assistant_tokens_schedule: str | None = search(
        None, "1..64", "how the draft's length changes", part=6)
    assistant_confidence_threshold: float | None = search(
        None, "0..1", "a draft ends below this probability", part=6)
    assistant_lookbehind: int | None = search(
        None, "1..1024", "tokens compared when vocabularies differ, draft side", part=6)
    target_lookbehind: int | None = search(
        None, "1..1024", "tokens compared when vocabularies differ, model side", part=6)
    assistant_early_exit: int | None = search(
        None, "1..1024", "the layer whose output drafts", part=6)
    assistant_ensemble_weight: float | None = search(
        None, "0..1", "weight of the draft's distribution in the text's (changes the law)", part=6)
    speculation_type: str | None = search(None, "1..64", "the way of drafting", part=6)
    use_mtp: bool | None = search(False, "", "draft with the model's own further heads", part=6)
    prompt_lookup_num_tokens: int | None = search(
        None, "0..1024", "tokens drafted from the prompt's own n-grams", "", 6, (0,))
    max_matching_ngram_size: int | None = search(
        None, "1..1024", "longest n-gram looked up in the prompt", part=6)
    prediction: Any = search(None, "", "text that the answer probably is, as a draft", part=6)
    seed: int | None = search(None, SEED, "the noise; same seed, same text. Unset: a fresh one")
