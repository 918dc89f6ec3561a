"""transformers 5: `GenerationMixin._get_logits_processor`, and its `logits_process.py`."""
from __future__ import annotations

from unspool.rules.dialects.dialect import Dialect

HF = Dialect(
    "hf", (
        "logit_bias", "encoder_repetition_penalty", "repetition_penalty", "no_repeat_ngram",
        "encoder_no_repeat_ngram", "bad_words", "min_length", "min_new_tokens", "prefix_allowed",
        "forced_first", "forced_last", "exponential_decay", "suppress", "begin_suppress", "custom",
        "temperature", "top_h", "top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff",
        "eta_cutoff", "watermark"),
    also=("transformers", "huggingface"),
    defaults={"top_k": 50},
    ties=("top_k", "typical_p"),
    spares_ends=True,
    adds_values=True,
    unlike={"forced_bos_token_id": "transformers forces it only behind a prompt of one token; here "
                                   "it is the first token written"},
)
