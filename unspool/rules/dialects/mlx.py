"""mlx-lm: `sample_utils.py: make_logits_processors, make_sampler`.

The temperature comes last. The penalties count the last 20 tokens, the prompt's too.
"""
from __future__ import annotations

from unspool.rules.dialects.dialect import Dialect
from unspool.rules.rows import EVERYTHING

PENALTIES = ("repetition_penalty", "presence_penalty", "frequency_penalty")

MLX = Dialect(
    "mlx", ("logit_bias", *PENALTIES, "custom", "top_p", "min_p", "xtc", "top_k", "temperature"),
    also=("mlx-lm",),
    defaults={"temperature": 0.0, "repeat_last_n": 20},
    counted=dict.fromkeys(PENALTIES, EVERYTHING),
    unlike={"xtc_probability": "mlx-lm takes the other top choices away where an end token or a "
                               "new line is one of them; here the row is left alone"},
)
