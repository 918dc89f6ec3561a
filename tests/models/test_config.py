"""Configs: what is left out gets transformers' value, what is not understood is never ignored."""

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from models_zoo import SHAPE, hf_tiny

from unspool.core.errors import FormatError
from unspool.models import qwen3
from unspool.models.config import DEFAULTS
from unspool.models.load import configure
from unspool.models.rope import UnsupportedError

BARE = {
    "vocab_size": 640,
    "hidden_size": 256,
    "intermediate_size": 96,
    "num_hidden_layers": 30,
    "num_attention_heads": 32,
}
FAMILIES = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("extra", [{}, {"use_sliding_window": True, "sliding_window": 77}])
def test_what_a_config_leaves_out_is_as_in_transformers(family, extra):
    import transformers

    if family in ("llama", "mistral"):
        extra = {}
    theirs = getattr(transformers, f"{FAMILIES[family]}Config")(**BARE, **extra)
    ours = configure({"model_type": family, **BARE, **extra})
    assert ours.kv_heads == theirs.num_key_value_heads
    assert ours.size == getattr(theirs, "head_dim", None) or BARE["hidden_size"] // 32
    assert ours.eps == theirs.rms_norm_eps
    assert ours.context == theirs.max_position_embeddings
    assert ours.tied == theirs.tie_word_embeddings
    assert ours.rope.frequencies[1] == pytest.approx(
        theirs.rope_parameters["rope_theta"] ** (-2 / ours.size)
    )
    window = getattr(theirs, "sliding_window", None)
    kinds = getattr(theirs, "layer_types", None) or ["sliding_attention"] * ours.layers
    assert ours.windows == tuple(window if k == "sliding_attention" else None for k in kinds)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_config_written_by_transformers_is_understood(family):
    config = hf_tiny(family).config
    assert configure(config.to_dict()) == configure(config.to_diff_dict())
    assert configure(config.to_dict()).family == family


def test_an_older_config_is_understood():
    """The keys that SmolLM2-135M-Instruct and Llama 3.1 were published with."""
    config = configure(
        {
            "architectures": ["LlamaForCausalLM"],
            "attention_bias": False,
            "attention_dropout": 0.0,
            "bos_token_id": 1,
            "eos_token_id": [2, 0],
            "hidden_act": "silu",
            "hidden_size": 576,
            "initializer_range": 0.04,
            "intermediate_size": 1536,
            "is_llama_config": True,
            "max_position_embeddings": 8192,
            "mlp_bias": False,
            "model_type": "llama",
            "num_attention_heads": 9,
            "num_hidden_layers": 30,
            "num_key_value_heads": 3,
            "pad_token_id": 2,
            "pretraining_tp": 1,
            "rms_norm_eps": 1e-05,
            "rope_interleaved": False,
            "rope_scaling": None,
            "rope_theta": 100_000,
            "tie_word_embeddings": True,
            "torch_dtype": "bfloat16",
            "transformers.js_config": {"kv_cache_dtype": {}},
            "transformers_version": "4.42.3",
            "use_cache": True,
            "vocab_size": 49_152,
        }
    )
    assert (config.size, config.tied, config.eps) == (64, True, 1e-5)
    assert config.rope.frequencies[1] == pytest.approx(100_000 ** (-1 / 32))


@pytest.mark.parametrize(
    "change, named",
    [
        ({"hidden_act": "gelu"}, "hidden_act 'gelu'"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ({"rope_interleaved": True}, "rope_interleaved"),
        ({"logit_scale": 0.1}, "logit_scale"),
        ({"sliding_window": 8}, "sliding_window"),
        ({"is_encoder_decoder": True}, "is_encoder_decoder"),
        ({"a_switch_of_the_future": False}, "a_switch_of_the_future"),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "dynamic"),
        ({"model_type": "gpt2"}, "model_type 'gpt2'"),
        ({"model_type": "load"}, "model_type 'load'"),
        ({"model_type": "../llama"}, "model_type"),
        ({"model_type": "config"}, "model_type 'config'"),
    ],
)
def test_what_is_not_understood_goes_elsewhere(change, named):
    with pytest.raises(UnsupportedError, match=named):
        configure({"model_type": "llama", **SHAPE, **change})


def test_unknown_keys_without_a_value_change_nothing():
    plain = {"model_type": "llama", **SHAPE}
    assert configure({**plain, "a_switch_of_the_future": None}) == configure(plain)


@pytest.mark.parametrize(
    "family, change, message",
    [
        ("llama", {"num_hidden_layers": 10**9}, "num_hidden_layers = 1000000000"),
        ("qwen2", {"layer_types": 5}, "layer_types = 5"),
        ("mistral", {"sliding_window": "8"}, "sliding_window = '8'"),
        ("llama", {"hidden_size": 0}, "hidden_size = 0 "),
        ("llama", {"vocab_size": "64"}, "vocab_size = '64'"),
        ("llama", {"num_attention_heads": None}, "num_attention_heads = None"),
        ("llama", {"num_hidden_layers": True}, "num_hidden_layers = True"),
        ("llama", {"num_key_value_heads": 3}, "no multiple of num_key_value_heads = 3"),
        ("llama", {"head_dim": 7}, "head_dim = 7"),
        ("llama", {"rms_norm_eps": "small"}, "rms_norm_eps = 'small'"),
        ("mistral", {"sliding_window": 0}, "sliding_window = 0"),
        ("qwen2", {"layer_types": ["full_attention"]}, "for 2 layers"),
        (
            "qwen2",
            {"use_sliding_window": True, "sliding_window": -1, "max_window_layers": 0},
            "sliding_window = -1",
        ),
    ],
)
def test_sizes_that_cannot_be_are_named(family, change, message):
    with pytest.raises(FormatError, match=message):
        configure({"model_type": family, **SHAPE, **change})


@pytest.mark.parametrize("kinds", [["chunked_attention"] * 2, ["sliding_attention"] * 2])
def test_layers_of_another_kind_go_elsewhere(kinds):
    with pytest.raises(UnsupportedError):
        configure({"model_type": "qwen3", **SHAPE, "layer_types": kinds})


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
)
ROPE_KEYS = ["rope_type", "factor", "rope_theta", "original_max_position_embeddings", "mscale"]
KINDS = ["default", "linear", "llama3", "yarn", "dynamic", None]


@given(
    family=st.sampled_from(sorted(FAMILIES)),
    change=st.dictionaries(st.sampled_from([*SHAPE, *DEFAULTS, *qwen3.DEFAULTS]), JUNK, max_size=2),
    rope=st.one_of(
        JUNK, st.dictionaries(st.sampled_from(ROPE_KEYS), st.one_of(st.sampled_from(KINDS), JUNK))
    ),
)
def test_no_config_does_anything_but_work_or_be_refused(family, change, rope):
    raw = {"model_type": family, **SHAPE, **change, "rope_parameters": rope}
    with suppress(FormatError, UnsupportedError):
        config = configure(raw)
        assert len(config.windows) == config.layers <= 2**12
        assert all(math.isfinite(f) for f in config.rope.frequencies)


def test_a_config_without_a_model_type():
    with pytest.raises(FormatError, match="model_type"):
        configure(SHAPE)
