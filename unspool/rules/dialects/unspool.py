"""This program's own dialect: the order of transformers, with what it lacks put in."""
from __future__ import annotations

from unspool.rules.dialects.dialect import Dialect

UNSPOOL = Dialect("unspool", (
    "logit_bias", "encoder_repetition_penalty", "repetition_penalty", "frequency_penalty",
    "presence_penalty", "dry", "no_repeat_ngram", "encoder_no_repeat_ngram", "bad_words",
    "min_length", "min_new_tokens", "allowed_ids", "prefix_allowed", "choice", "forced_first",
    "forced_last", "exponential_decay", "suppress", "begin_suppress", "custom",
    "temperature", "smoothing", "top_n_sigma", "top_h", "top_k", "top_p", "min_p", "typical_p",
    "epsilon_cutoff", "eta_cutoff", "top_a", "tfs_z", "xtc", "mirostat", "watermark",
    "adaptive_p"))
