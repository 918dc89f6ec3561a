"""Rotary frequencies against transformers' own, and what is refused."""

import pytest
import torch

from unspool.core.errors import FormatError
from unspool.models.rope import Rope, UnsupportedError, rope

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
KINDS = {
    "default": {},
    "linear": {"rope_type": "linear", "factor": 2.5},
    "llama3": LLAMA3,
    "llama3, original from the context": {
        k: v for k, v in LLAMA3.items() if not k.startswith("original")
    },
    "yarn": YARN,
    "yarn of small factor": {**YARN, "factor": 1.0},
    "yarn, attention factor": {**YARN, "attention_factor": 1.3},
    "yarn, mscale": {**YARN, "mscale": 1.0, "mscale_all_dim": 0.8},
    "yarn, one mscale": {**YARN, "mscale": 1.0},
    "yarn, betas": {**YARN, "beta_fast": 8, "beta_slow": 2},
    "yarn, no rounding": {**YARN, "truncate": False},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spelling", ["new", "old"])
def test_frequencies_are_those_of_transformers(kind, spelling):
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    shape = {"hidden_size": 256, "num_attention_heads": 4, "max_position_embeddings": 8192}
    theta, settings = 500_000.0, KINDS[kind]
    config = LlamaConfig(
        **shape, rope_parameters={"rope_type": "default", **settings, "rope_theta": theta}
    )
    theirs = LlamaRotaryEmbedding(config)
    if spelling == "new":
        raw = {**shape, "rope_parameters": {**settings, "rope_theta": theta}}
    else:
        old = {("type" if k == "rope_type" else k): v for k, v in settings.items()}
        raw = {**shape, "rope_scaling": old or None, "rope_theta": theta}
    ours = rope(raw, 64)
    got = torch.tensor(ours.frequencies)
    torch.testing.assert_close(got, theirs.inv_freq, rtol=2e-6, atol=0)
    assert ours.factor == pytest.approx(theirs.attention_scaling, rel=1e-12)


def test_factors_of_a_file_divide_the_frequencies():
    assert Rope((1.0, 0.5), 2.0).divided([1.0, 4.0]) == Rope((1.0, 0.125), 2.0)
    with pytest.raises(FormatError, match="3 rotary factors for 2 pairs"):
        Rope((1.0, 0.5)).divided([1, 1, 1])


@pytest.mark.parametrize(
    "settings, named",
    [
        ({"rope_type": "dynamic", "factor": 2.0}, "dynamic"),
        ({"rope_type": "longrope"}, "longrope"),
        ({"type": "mrope", "mrope_section": [1, 2]}, "mrope"),
        ({"rope_type": "linear", "factor": 2.0, "partial_rotary_factor": 0.5}, "partial_rotary"),
        ({"rope_type": "default", "mrope_section": [1, 2]}, "mrope_section"),
        ({"full_attention": {"rope_type": "default"}}, "full_attention"),
    ],
)
def test_what_is_not_understood_goes_elsewhere(settings, named):
    with pytest.raises(UnsupportedError, match=named):
        rope({"rope_parameters": settings, "max_position_embeddings": 64}, 8)


@pytest.mark.parametrize("factor", [None, 0, -1.0, "2", True, float("nan"), float("inf")])
def test_a_factor_that_is_no_number_is_an_error(factor):
    settings = {"rope_type": "linear", "factor": factor}
    with pytest.raises(FormatError, match="rotary setting factor"):
        rope({"rope_parameters": settings, "max_position_embeddings": 64}, 8)
