"""llama.cpp: `common/sampling.cpp: common_sampler_init` and the defaults of `common/common.h`.

The temperature comes last, so the cuts look at the model's own distribution. The penalties count
the last 64 tokens, the prompt's too. Mirostat takes the place of the whole chain.
"""
from __future__ import annotations

from unspool.rules.dialects.dialect import Dialect
from unspool.rules.dialects.stages import GROUPS
from unspool.rules.rows import EVERYTHING

LLAMA_CPP = Dialect(
    "llama.cpp", ("choice", "logit_bias", *GROUPS["penalties"], "dry", "top_n_sigma", "top_k",
                  "typical_p", "top_p", "min_p", "xtc", "temperature", "adaptive_p"),
    also=("llama-cpp", "llamacpp"),
    instead={"mirostat": ("choice", "logit_bias", "temperature", "mirostat")},
    defaults={"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "repeat_last_n": 64,
              "dry_penalty_last_n": 64},
    counted=dict.fromkeys(GROUPS["penalties"], EVERYTHING),
    bias_each=True,
    xtc_spares=False,
    unlike={"choice": "llama.cpp samples without the grammar first and again with it if the token "
                      "does not fit; here the choice always comes first",
            "dynatemp_range": "llama.cpp counts the tokens that top_n_sigma took away among those "
                              "that are left; here they are gone"},
)
