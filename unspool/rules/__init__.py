"""Rules: rows of logits in, rows out. Each is a value, and they stack in any order."""
from unspool.rules.adaptive import adaptive_p
from unspool.rules.ban import allowed_ids, bad_words, begin_suppress, suppress
from unspool.rules.bias import logit_bias
from unspool.rules.constrain import constrain
from unspool.rules.custom import custom, prefix_allowed
from unspool.rules.cut import greedy, min_p, top_k, top_p
from unspool.rules.cutoff import epsilon_cutoff, eta_cutoff, tfs_z, top_a, top_h, top_n_sigma
from unspool.rules.dry import dry
from unspool.rules.forced import forced_first, forced_last
from unspool.rules.infill import infill
from unspool.rules.length import exponential_decay, min_length, min_new_tokens
from unspool.rules.mirostat import mirostat_1, mirostat_2
from unspool.rules.ngram import encoder_no_repeat_ngram, no_repeat_ngram
from unspool.rules.penalty import (
    encoder_repetition_penalty,
    frequency_penalty,
    presence_penalty,
    repetition_penalty,
)
from unspool.rules.rule import KINDS, RuleValue, columns, rule
from unspool.rules.scale import temperature
from unspool.rules.smooth import dynamic_temperature, smoothing
from unspool.rules.typical import typical_p
from unspool.rules.watermarks import gumbel_watermark, kgw, synthid
from unspool.rules.xtc import xtc

__all__ = ["KINDS", "RuleValue", "adaptive_p", "allowed_ids", "bad_words", "begin_suppress",
           "columns", "constrain", "custom", "dry", "dynamic_temperature",
           "encoder_no_repeat_ngram", "encoder_repetition_penalty", "epsilon_cutoff", "eta_cutoff",
           "exponential_decay", "forced_first", "forced_last", "frequency_penalty", "greedy",
           "gumbel_watermark", "infill", "kgw", "logit_bias", "min_length", "min_new_tokens",
           "min_p", "mirostat_1", "mirostat_2", "no_repeat_ngram", "prefix_allowed",
           "presence_penalty", "repetition_penalty", "rule", "smoothing", "suppress", "synthid",
           "temperature", "tfs_z", "top_a", "top_h", "top_k", "top_n_sigma", "top_p", "typical_p",
           "xtc"]
