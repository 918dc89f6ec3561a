"""vLLM: the sampler of V1 (`v1/sample/sampler.py`) and that of the second model runner
(`v1/worker/gpu/sample/sampler.py`), which puts biases and one's own processors elsewhere."""
from __future__ import annotations

from dataclasses import replace

from unspool.rules.dialects.dialect import Dialect
from unspool.rules.dialects.stages import GROUPS

LAST = ("temperature", "min_p", "top_k", "top_p", "watermark")

VLLM = Dialect(
    "vllm", ("choice", "allowed_ids", "bad_words", "min_new_tokens", "logit_bias", "custom",
             *GROUPS["penalties"], *LAST),
    also=("vllm-v1",),
    defaults={"temperature": 1.0},
    ties=("top_k",),
    floor=0.01,
    most_bias=100.0,
    unlike={"bad_words": "vLLM looks for them in what was written only; here the prompt counts"},
)

VLLM_V2 = replace(
    VLLM, name="vllm-v2", also=("vllm-mrv2",),
    order=("choice", "allowed_ids", "logit_bias", "min_new_tokens", *GROUPS["penalties"],
           "bad_words", "custom", *LAST))
