"""SGLang: `sampling_batch_info.py: apply_logits_bias`, then `layers/sampler.py`.

The additive penalties come before the one that scales. top_k and top_p look at one distribution,
so the nucleus is cut first and the k best of it are kept; beside min_p they work in turn.
"""
from __future__ import annotations

from unspool.rules.dialects.dialect import Dialect
from unspool.rules.rows import GENERATED

FIRST = ("frequency_penalty", "presence_penalty", "min_new_tokens", "repetition_penalty", "choice",
         "logit_bias", "custom", "temperature")

SGLANG = Dialect(
    "sglang", (*FIRST, "top_p", "top_k", "min_p", "watermark"),
    instead={"min_p": (*FIRST, "top_k", "top_p", "min_p", "watermark")},
    defaults={"temperature": 1.0},
    counted=dict.fromkeys(("repetition_penalty", "frequency_penalty", "presence_penalty"),
                          GENERATED),
)
