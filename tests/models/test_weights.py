"""Names, shapes and the order of rows."""

import numpy as np
import pytest
from models_zoo import SHAPE, hf_tiny

from unspool.core.errors import ModelError
from unspool.models.load import configure
from unspool.models.weights import expected, gguf_name, row_order, take, unpermute


class Array:
    """A stored tensor in memory."""

    type = "F32"

    def __init__(self, values):
        self.values = np.asarray(values, np.float32)
        self.shape = self.values.shape

    def dequantised(self):
        return self.values.copy()

    def numpy(self):
        return self.values


def stored(config, **changes):
    return {name: Array(np.zeros(shape)) for name, shape in expected(config).items()} | changes


CONFIG = configure({"model_type": "llama", **SHAPE})


@pytest.mark.parametrize(
    "family, features",
    [
        ("llama", {}),
        ("llama", {"tie_word_embeddings": True}),
        ("llama", {"attention_bias": True, "mlp_bias": True}),
        ("mistral", {"head_dim": 16}),
        ("qwen2", {}),
        ("qwen3", {"head_dim": 16}),
        ("qwen3", {"head_dim": 16, "attention_bias": True}),
    ],
)
def test_names_and_shapes_are_those_of_transformers(family, features):
    theirs = hf_tiny(family, **features)
    ours = expected(configure(theirs.config.to_dict()))
    state = {name: tuple(w.shape) for name, w in theirs.state_dict().items()}
    if features.get("tie_word_embeddings"):
        del state["lm_head.weight"]
    assert ours == state


def test_gguf_names_are_those_of_the_gguf_package():
    gguf = pytest.importorskip("gguf", reason="compares with the gguf package")
    kinds = {"llama": "LLAMA", "mistral": "LLAMA", "qwen2": "QWEN2", "qwen3": "QWEN3"}
    for family, kind in kinds.items():
        config = configure({"model_type": family, **SHAPE})
        theirs = gguf.get_tensor_name_map(getattr(gguf.MODEL_ARCH, kind), config.layers)
        for name in expected(config):
            stem, tail = name.rsplit(".", 1)
            assert gguf_name(name) == f"{theirs.get_name(stem)}.{tail}"


def test_missing_extra_and_misshapen_tensors_are_named():
    lacking = stored(CONFIG)
    del lacking["model.layers.1.mlp.up_proj.weight"], lacking["model.norm.weight"]
    with pytest.raises(ModelError, match=r"lack model\.layers\.1\.mlp\.up_proj\.weight, model\.n"):
        take(lacking, CONFIG)
    extra = stored(CONFIG, **{"model.layers.0.self_attn.q_proj.bias": Array([0.0])})
    with pytest.raises(ModelError, match=r"no place for model\.layers\.0\.self_attn\.q_proj\.bias"):
        take(extra, CONFIG)
    other = stored(CONFIG, **{"lm_head.weight": Array(np.zeros((64, 31)))})
    with pytest.raises(ModelError, match=r"lm_head\.weight has shape \(64, 31\).*\(64, 32\)"):
        take(other, CONFIG)


def test_a_long_list_of_missing_tensors_is_cut():
    with pytest.raises(ModelError, match="and 18 more"):
        take({}, CONFIG)


def test_buffers_that_follow_from_the_config_are_no_weights():
    old = stored(CONFIG, **{"model.layers.0.self_attn.rotary_emb.inv_freq": Array([1.0])})
    assert take(old, CONFIG).keys() == expected(CONFIG).keys()


def test_a_tied_head_may_be_stored_too():
    tied = configure({"model_type": "llama", **SHAPE, "tie_word_embeddings": True})
    both = stored(tied, **{"lm_head.weight": Array(np.zeros((64, 32)))})
    assert "lm_head.weight" not in take(both, tied)


def test_rows_come_back_from_the_order_of_pairs():
    """Row 2 i of a head and row 2 i + 1 are the halves of pair i."""
    rows = np.arange(32.0).reshape(32, 1).repeat(32, 1)
    order = rows.reshape(4, 2, 4, 32).swapaxes(1, 2).reshape(32, 32).copy()
    assert order[:4, 0].tolist() == [0, 4, 1, 5]
    unpermute("model.layers.0.self_attn.q_proj.weight", order, CONFIG)
    assert (order == rows).all()
    values = rows.copy()
    unpermute("model.layers.0.self_attn.v_proj.weight", values, CONFIG)
    assert (values == rows).all()


def test_packed_rows_come_back_by_the_same_order():
    """The order as an index: for rows that are not decoded."""
    stored_rows = np.arange(32).reshape(4, 2, 4).swapaxes(1, 2).reshape(32)
    for part, heads in (("q", 4), ("k", 2)):
        name = f"model.layers.0.self_attn.{part}_proj.weight"
        order = row_order(name, CONFIG)
        assert len(order) == heads * CONFIG.size
        assert (stored_rows[: len(order)][order] == np.arange(len(order))).all()


@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2", "qwen3"])
def test_only_q_and_k_of_the_llama_architecture_are_stored_in_another_order(family):
    config = configure({"model_type": family, **SHAPE})
    moved = {n.split(".")[-2] for n in expected(config) if row_order(n, config) is not None}
    assert moved == ({"q_proj", "k_proj"} if family in ("llama", "mistral") else set())
