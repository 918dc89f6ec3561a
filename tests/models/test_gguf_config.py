"""What a GGUF's keys mean, and that nothing in them is passed over."""


import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from unspool.core.errors import FormatError, ModelError
from unspool.models.gguf_config import OTHER, ROPE, config_of
from unspool.models.load import configure
from unspool.models.rope import UnsupportedError
from unspool.models.weights import expected, gguf_name

KEYS = {
    "block_count": 2,
    "context_length": 256,
    "embedding_length": 32,
    "feed_forward_length": 64,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "attention.layer_norm_rms_epsilon": 1e-5,
    "rope.freq_base": 5000.0,
}


def read(arch="llama", tensors=("output.weight",), **keys):
    all_keys = {**KEYS, **{k.replace("__", "."): v for k, v in keys.items()}}
    metadata = {f"{arch}.{k}": v for k, v in all_keys.items()} | {"general.architecture": arch}
    return configure(config_of(metadata, tensors, 64))


def test_sizes():
    config = read()
    assert (config.family, config.vocab, config.width, config.inner) == ("llama", 64, 32, 64)
    assert (config.layers, config.heads, config.kv_heads, config.size) == (2, 4, 2, 8)
    assert (config.context, config.eps, config.tied) == (256, 1e-5, False)
    assert config.rope.frequencies[1] == pytest.approx(5000 ** (-1 / 4))


def test_a_missing_output_means_a_tied_head():
    assert read(tensors=()).tied


def test_what_the_files_of_each_architecture_may_have():
    assert read().windows == (None, None) and not read().qkv_bias
    biased = read(tensors=("blk.0.attn_output.bias", "blk.0.ffn_up.bias"))
    assert biased.qkv_bias and biased.out_bias and biased.mlp_bias
    mistral = read(attention__sliding_window=8)
    assert (mistral.family, mistral.windows) == ("mistral", (8, 8))
    assert read("qwen2").qkv_bias and not read("qwen2").out_bias
    assert read("qwen3", attention__key_length=16, attention__value_length=16).size == 16
    assert read("qwen3").qk_norm and read("qwen2", attention__sliding_window=8).windows == (8, 8)


def test_rotary_scaling():
    linear = read(rope__scaling__type="linear", rope__scaling__factor=2.0)
    assert linear.rope.frequencies[0] == 0.5
    yarn = read(
        rope__scaling__type="yarn",
        rope__scaling__factor=4.0,
        rope__scaling__original_context_length=64,
        rope__scaling__finetuned=True,
    )
    assert yarn.rope.factor == pytest.approx(1.1386, abs=1e-4)
    assert read(rope__scaling__type="none").rope == read().rope


def test_a_size_given_per_layer_must_be_the_same_in_all():
    assert read(attention__head_count_kv=[2, 2]).kv_heads == 2
    with pytest.raises(ModelError, match="differs by layer"):
        read(attention__head_count_kv=[2, 1])


@pytest.mark.parametrize(
    "keys, named",
    [
        ({"expert_count": 8}, "llama.expert_count = 8"),
        ({"attention__scale": 0.5}, "llama.attention.scale"),
        ({"rope__dimension_count": 4}, "rope.dimension_count = 4 is not the head size 8"),
        ({"attention__value_length": 4}, "attention.value_length"),
        ({"rope__scaling__type": "longrope"}, "longrope"),
        ({"tensor_data_layout": "another"}, "tensor_data_layout"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(keys, named):
    with pytest.raises(ModelError, match=named):
        read(**keys)


def test_keys_that_switch_something_off_pass():
    assert read(expert_count=0, tensor_data_layout="Meta AI original pth") == read()


def test_unknown_architectures_and_missing_keys_are_named():
    with pytest.raises(ModelError, match=r"architecture 'mamba' is not read.*llama, qwen2, qwen3"):
        config_of({"general.architecture": "mamba"}, (), 64)
    with pytest.raises(FormatError, match=r"llama\.block_count is missing"):
        config_of({"general.architecture": "llama"}, (), 64)


JUNK = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.one_of(st.integers(), st.text(max_size=2), st.lists(st.integers())), max_size=3),
)


@example(arch="llama", change={"attention.sliding_window": 1})
@given(
    arch=st.sampled_from(["llama", "qwen2", "qwen3"]),
    change=st.dictionaries(st.sampled_from([*KEYS, *sorted(OTHER), *ROPE]), JUNK, max_size=3),
)
def test_no_metadata_does_anything_but_work_or_be_refused(arch, change):
    try:
        config = read(arch, **change)
    except (ModelError, UnsupportedError) as refused:
        assert str(refused) and "\n" not in str(refused)
    else:
        windowed = arch == "llama" and any(config.windows)  # such a file is Mistral's
        assert config.family == ("mistral" if windowed else arch)
        assert config.heads % config.kv_heads == 0
        assert min(config.vocab, config.context, config.heads, config.size, len(config.windows)) > 0


def test_the_names_of_a_whole_file_are_known():
    names = {gguf_name(name) for name in expected(read("qwen3"))}
    assert {"token_embd.weight", "output_norm.weight", "output.weight"} <= names
    assert {"blk.1.attn_q_norm.weight", "blk.0.ffn_down.weight", "blk.1.attn_norm.weight"} <= names
