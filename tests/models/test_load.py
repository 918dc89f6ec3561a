"""Loading: from folders, files and GGUF, natively or through transformers, or an error by name."""

import json
import sys

import numpy as np
import pytest
import torch
from models_zoo import (
    cycle,
    hf_gpt2,
    hf_logits,
    hf_markov,
    hf_tiny,
    logits,
    rand_ids,
    save,
    span,
)
from safetensors.torch import load_file, save_file

from unspool.core.errors import FormatError, ModelError, ParameterError
from unspool.files.folder import inspect
from unspool.files.gguf import read_gguf
from unspool.models import load
from unspool.models.decoder import Decoder
from unspool.models.load import another_device, choose, load_model, pick_device
from unspool.models.options import Options
from unspool.models.weights import gguf_name

IDS = rand_ids(3, 30)[0]
REFERENCE = {"device": "cpu", "numerics": "reference"}


def same(model, want):
    got = logits(model, IDS)
    torch.testing.assert_close(got, want.to(got.dtype), rtol=0, atol=1e-4)


# ------------------------------------------------------------------------------------- folders
@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2", "qwen3"])
def test_a_saved_checkpoint_loads_natively(family, tmp_path):
    theirs = hf_tiny(family)
    for source in (save(theirs, tmp_path), str(tmp_path), inspect(tmp_path)):
        model = load_model(source, **REFERENCE)
        assert isinstance(model, Decoder)
        assert (model.vocab, model.context, model.remembers) == (64, 256, True)
        assert (model.numerics, model.device, model.notes) == ("reference", "cpu", ())
        same(model, hf_logits(theirs, IDS))


def test_a_single_weights_file_and_a_sharded_folder(tmp_path):
    theirs = hf_tiny()
    want = hf_logits(theirs, IDS)
    save(theirs, tmp_path / "one")
    (tmp_path / "one" / "model.safetensors").rename(tmp_path / "one" / "other.safetensors")
    same(load_model(tmp_path / "one" / "other.safetensors", **REFERENCE), want)
    theirs.save_pretrained(tmp_path / "many", max_shard_size="20KB")
    assert len(list((tmp_path / "many").glob("*.safetensors"))) > 1
    same(load_model(tmp_path / "many", **REFERENCE), want)


def test_half_precision_weights_are_read_in_float32(tmp_path):
    from transformers import AutoModelForCausalLM

    save(hf_tiny().to(torch.bfloat16), tmp_path)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    model = load_model(tmp_path, **REFERENCE)
    assert model.embedding.dtype == torch.float32
    same(model, hf_logits(theirs, IDS))


def test_float64_on_request(tmp_path):
    theirs = hf_tiny()
    save(theirs, tmp_path)
    model = load_model(tmp_path, dtype="float64", **REFERENCE)
    assert logits(model, IDS).dtype == torch.float64
    same(model, hf_logits(theirs, IDS))
    weights = {k: v.double() + 1e-12 for k, v in load_file(tmp_path / "model.safetensors").items()}
    save_file(weights, tmp_path / "model.safetensors")
    stored = load_model(tmp_path, dtype="float64", **REFERENCE)
    assert torch.equal(stored.norm, weights["model.norm.weight"])


def test_a_markov_checkpoint_gives_its_table(tmp_path):
    table = cycle(12, second=2.0)
    model = load_model(save(hf_markov(table), tmp_path), **REFERENCE)
    torch.testing.assert_close(logits(model, list(range(12))), table, rtol=0, atol=1e-5)


def test_a_head_tied_by_the_config_but_stored_with_other_numbers_is_used_as_stored(tmp_path):
    from transformers import AutoModelForCausalLM

    save(hf_tiny(), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": True}))
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    same(load_model(tmp_path, **REFERENCE), hf_logits(theirs, IDS))


def test_the_fingerprint_is_the_weights_and_the_config(tmp_path):
    first = load_model(save(hf_tiny(), tmp_path / "a"), **REFERENCE)
    again = load_model(save(hf_tiny(), tmp_path / "b"), **REFERENCE)
    other = load_model(save(hf_tiny(seed=1), tmp_path / "c"), **REFERENCE)
    assert first.fingerprint == again.fingerprint != other.fingerprint


# --------------------------------------------------------------------------- the other families
def test_a_family_that_we_lack_runs_through_transformers(tmp_path):
    theirs = hf_gpt2()
    model = load_model(save(theirs, tmp_path), **REFERENCE)
    assert model.remembers and any("model_type 'gpt2'" in note for note in model.notes)
    same(model, hf_logits(theirs, IDS))


def test_a_feature_that_we_lack_runs_through_transformers(tmp_path):
    theirs = hf_tiny(hidden_act="gelu")
    model = load_model(save(theirs, tmp_path), **REFERENCE)
    assert any("hidden_act 'gelu'" in note for note in model.notes)
    same(model, hf_logits(theirs, IDS))


def change(folder, **keys):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


# ------------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize("numerics", [None, "reference"])
@pytest.mark.parametrize(
    "keys, named",
    [
        ({"quantization_config": {"quant_method": "gptq"}}, "gptq"),
        ({"auto_map": {"AutoModelForCausalLM": "code.Model"}}, r"config\.json.*auto_map"),
        ({"model_type": "no_such_family"}, "no_such_family"),
        ({"model_type": "t5"}, "encoder-decoder"),
        ({"hidden_size": -1}, "hidden_size = -1"),
        ({"num_hidden_layers": 3}, r"lack model\.layers\.2"),
        ({"num_hidden_layers": 1}, r"no place for model\.layers\.1"),
        ({"vocab_size": 65}, r"model\.embed_tokens\.weight has shape \(64, 32\)"),
        ({"num_hidden_layers": 3, "hidden_act": "gelu"}, "weights are missing"),
    ],
)
def test_what_cannot_be_run_right_is_refused_by_name(keys, named, numerics, tmp_path):
    save(hf_tiny(), tmp_path)
    change(tmp_path, **keys)
    with pytest.raises(ModelError, match=named):
        load_model(tmp_path, device="cpu", numerics=numerics)


def test_code_beside_a_model_is_never_run(tmp_path):
    save(hf_tiny(), tmp_path)
    marker = tmp_path / "marker"
    (tmp_path / "code.py").write_text(f"open({str(marker)!r}, 'w').close()")
    for keys in ({}, {"model_type": "custom"}, {"hidden_act": "gelu"}):
        change(tmp_path, auto_map={"AutoConfig": "code.C", "AutoModel": "code.M"}, **keys)
        with pytest.raises(ModelError, match="auto_map"):
            load_model(tmp_path, **REFERENCE)
    assert not marker.exists()


def test_a_name_that_is_nowhere_is_not_fetched():
    with pytest.raises(ModelError, match="nothing is downloaded unasked"):
        load_model("somebody/no-such-model", **REFERENCE)
    with pytest.raises(ModelError, match="no-such-folder"):
        load_model("./no-such-folder", **REFERENCE)


@pytest.mark.parametrize(
    "asked, named",
    [
        ({"numerics": "exact"}, "numerics = 'exact': there are default, fast, reference"),
        ({"numerics": []}, r"numerics = \[\]: there are default, fast, reference"),
        ({"dtype": "float32", "numerics": "fast"}, "dtype = 'float32' with numerics = 'fast'"),
        ({"dtype": torch.float64, "numerics": "default"}, "with numerics = 'default'"),
        ({"dtype": "bfloat16"}, "dtype = 'bfloat16'"),
        ({"dtype": torch.float16}, "dtype = 'float16'"),
        ({"device": "nowhere"}, "device = 'nowhere'"),
    ],
)
def test_what_this_version_lacks_is_refused_by_name(asked, named, tmp_path):
    with pytest.raises(ParameterError, match=named) as raised:
        load_model(tmp_path, **asked)
    assert raised.value.name == next(iter(asked))


# ------------------------------------------------------------------------- what runs it, and where
CHOICES = [
    # device, dtype, numerics -> what runs it, its numerics
    ("cpu", None, None, "native", "default"),
    ("cpu", "float32", None, "torch", "reference"),
    ("cpu", "float64", None, "torch", "reference"),
    ("cuda", None, None, "torch", "reference"),
    ("mps", "float32", None, "torch", "reference"),
    ("cpu", None, "default", "native", "default"),
    ("cpu:0", None, "default", "native", "default"),
    ("cuda:1", None, "default", "torch", "default"),
    ("mps", None, "default", "torch", "default"),
    ("cpu", None, "fast", "native", "fast"),
    ("cpu", None, "reference", "torch", "reference"),
    ("cpu", "float64", "reference", "torch", "reference"),
    ("cuda", "float32", "reference", "torch", "reference"),
]


@pytest.mark.parametrize("device, dtype, numerics, way, named", CHOICES)
def test_what_runs_a_model_of_our_own_families(device, dtype, numerics, way, named):
    assert choose(device, dtype, numerics) == (way, named)


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "mps"])
def test_fast_is_refused_on_another_device(device):
    with pytest.raises(ParameterError, match=f"numerics = 'fast'.*device '{device}'") as raised:
        choose(device, None, "fast")
    assert raised.value.name == "numerics"


def test_the_compiled_way_reads_what_the_reference_reads(tmp_path):
    for source in (
        save(hf_tiny(), tmp_path / "folder"),
        write_gguf(tmp_path / "model.gguf", hf_tiny(), "llama"),
    ):
        want = logits(load_model(source, **REFERENCE), IDS)
        for asked in ({}, {"numerics": "default", "options": Options(threads=1)}):
            model = load_model(source, device="cpu", **asked)
            assert (model.numerics, model.device) == ("default", "cpu")
            torch.testing.assert_close(logits(model, IDS), want, rtol=0, atol=1e-2)
        assert load_model(source, device="cpu", numerics="fast").numerics == "fast"


@pytest.mark.parametrize("numerics", [None, "default", "fast", "reference"])
def test_what_only_transformers_runs_is_reference_and_says_so(numerics, tmp_path):
    for source in (hf_gpt2(), save(hf_gpt2(), tmp_path)):
        model = load_model(source, device="cpu", numerics=numerics)
        assert model.numerics == "reference"
        assert any("runs through transformers, in numerics 'reference'" in n for n in model.notes)
        asked = any(f"numerics {numerics!r} are not to be had" in note for note in model.notes)
        assert asked == (numerics in ("default", "fast"))


@pytest.mark.parametrize("options", [{"threads": 2}, {"kv": "bf16"}, {"quantize": "int8"}])
def test_the_compiled_way_s_options_are_refused_on_the_others(options, tmp_path):
    (name, value), made = *options.items(), Options(**options)
    said = rf"{name}={value!r}: .*"
    for source, asked, why in (
        (hf_gpt2(), {}, "runs through transformers"),
        (save(hf_gpt2(), tmp_path / "g"), {"device": "cpu"}, "runs through transformers"),
        (save(hf_tiny(), tmp_path / "t"), REFERENCE, "numerics 'reference' on cpu runs in torch"),
    ):
        with pytest.raises(ParameterError, match=said + why) as raised:
            load_model(source, options=made, **asked)
        assert raised.value.name == name


def test_the_device_is_the_best_there_is(monkeypatch):
    best = "mps" if torch.backends.mps.is_available() else "cpu"
    best = "cuda" if torch.cuda.is_available() else best
    assert pick_device(None) == pick_device("auto") == best
    monkeypatch.setattr(load, "another_device", lambda: True)
    assert pick_device(None) == best


def test_a_driver_s_files_are_a_reason_to_ask_torch(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(load, "DRIVERS", (str(tmp_path / "nvidia*"),))
    assert not another_device()
    (tmp_path / "nvidia0").touch()
    assert another_device()
    for absent in (lambda name: None, blocked):
        monkeypatch.setattr(load.importlib.util, "find_spec", absent)
        assert not another_device()


def blocked(name):
    raise ImportError(f"{name} is hidden")


# ----------------------------------------------------------------------------------------- gguf
def write_gguf(path, model, arch, *, extra=(), drop=(), factors=None):
    """A transformers model as the GGUF file that its usual converter would write."""
    gguf = pytest.importorskip("gguf", reason="writes a file with the gguf package")
    config, writer = model.config, gguf.GGUFWriter(path, arch)
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_key_length(size)
    writer.add_value_length(size)
    writer.add_vocab_size(config.vocab_size)
    for add, value in extra:
        getattr(writer, add)(value)
    for name, weight in model.state_dict().items():
        array = weight.detach().numpy()
        heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
        if arch == "llama" and name.split(".")[-2] in heads:
            count = heads[name.split(".")[-2]]
            halves = array.reshape(count, 2, size // 2, *array.shape[1:])
            array = halves.swapaxes(1, 2).reshape(array.shape)
        if gguf_name(name) not in drop:
            writer.add_tensor(gguf_name(name), np.ascontiguousarray(array))
    if factors is not None:
        writer.add_tensor("rope_freqs.weight", np.array(factors, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_weights_at_the_oddest_places_that_a_file_may_have(tmp_path):
    """Eight bytes from where vectors would like them: the compiled path gives the same bits."""
    rows, places = [], []
    for align in (8, 64):
        path = tmp_path / f"{align}.gguf"
        write_gguf(path, hf_tiny("llama", vocab_size=61), "llama",
                   extra=[("add_custom_alignment", align)])
        places.append({t.raw.ctypes.data % 32 for t in read_gguf(path).tensors.values()})
        model = load_model(path, device="cpu", numerics="default")
        rows.append(model.score([span([3, 60, 7, 7, 2])]).rows().copy())
        model.close()
    assert any(places[0]) and not any(places[1])
    assert np.array_equal(*(r.view(np.int32) for r in rows)) and np.isfinite(rows[0]).all()


@pytest.mark.parametrize(
    "arch, family, features",
    [
        ("llama", "llama", {}),
        ("llama", "llama", {"attention_bias": True, "mlp_bias": True}),
        ("llama", "llama", {"num_key_value_heads": 1, "head_dim": 16}),
        ("qwen2", "qwen2", {}),
        ("qwen3", "qwen3", {"head_dim": 16}),
    ],
)
def test_a_gguf_file_gives_the_logits_of_the_model_it_was_made_from(
    arch, family, features, tmp_path
):
    theirs = hf_tiny(family, **features)
    path = write_gguf(tmp_path / "model.gguf", theirs, arch)
    for source in (path, tmp_path):
        model = load_model(source, **REFERENCE)
        assert isinstance(model, Decoder) and model.config.family == family
        same(model, hf_logits(theirs, IDS))


def test_a_gguf_file_of_mistral_keeps_its_window(tmp_path):
    theirs = hf_tiny("mistral", sliding_window=8)
    extra = [("add_sliding_window", 8)]
    model = load_model(write_gguf(tmp_path / "m.gguf", theirs, "llama", extra=extra), **REFERENCE)
    same(model, hf_logits(theirs, IDS))


def test_a_gguf_file_without_an_output_has_a_tied_head(tmp_path):
    theirs = hf_tiny(tie_word_embeddings=True)
    path = write_gguf(tmp_path / "m.gguf", theirs, "llama", drop=["output.weight"])
    model = load_model(path, **REFERENCE)
    assert model.config.tied
    same(model, hf_logits(theirs, IDS))


def test_rotary_factors_in_a_gguf_file(tmp_path):
    """Llama 3.1's settings travel as one factor for each pair."""
    settings = {
        "rope_type": "llama3",
        "rope_theta": 10_000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    }
    theirs = hf_tiny(rope_parameters=settings)
    plain = 10_000.0 ** (-torch.arange(0, 8, 2) / 8)
    factors = (plain / theirs.model.rotary_emb.inv_freq).tolist()
    assert min(factors) == pytest.approx(1) and max(factors) > 7
    path = write_gguf(tmp_path / "m.gguf", theirs, "llama", factors=factors)
    same(load_model(path, **REFERENCE), hf_logits(theirs, IDS))


def test_what_a_gguf_file_lacks_is_named(tmp_path):
    path = tmp_path / "m.gguf"
    with pytest.raises(ModelError, match=r"lack blk\.1\.ffn_up\.weight"):
        load_model(write_gguf(path, hf_tiny(), "llama", drop=["blk.1.ffn_up.weight"]), **REFERENCE)
    with pytest.raises(ModelError, match=r"no token_embd\.weight"):
        load_model(write_gguf(path, hf_tiny(), "llama", drop=["token_embd.weight"]), **REFERENCE)
    with pytest.raises(FormatError, match="5 rotary factors for 4 pairs"):
        load_model(write_gguf(path, hf_tiny(), "llama", factors=[1] * 5), **REFERENCE)
    with pytest.raises(ModelError, match="'gemma' is not read"):
        load_model(write_gguf(path, hf_tiny(), "gemma"), **REFERENCE)


# ---------------------------------------------------------------------------- the default model
TOP = {
    253: 0.1134,
    216: 0.0945,
    260: 0.0742,
    441: 0.0435,
    4461: 0.0323,
    5250: 0.0254,
    6392: 0.0217,
    476: 0.0147,
    1129: 0.0144,
    932: 0.0113,
}


@pytest.fixture(scope="module")
def smollm2():
    from unspool.files.store import models

    path = {known.name: path for known, path in models()}["smollm2"]
    if path is None:
        pytest.skip("the default weights are not on this machine")
    model = load_model(path, **REFERENCE)
    yield model
    model.close()


def test_the_default_model_s_next_tokens(smollm2):
    """After "The color of sky is"."""
    row = smollm2.score([span([504, 2380, 282, 6376, 314], rows=1)]).rows()[0]
    probs = np.exp(row - np.logaddexp.reduce(row))
    best = np.argsort(-probs)[:10].tolist()
    assert best == list(TOP)
    assert probs[best].tolist() == pytest.approx(list(TOP.values()), abs=5e-4)


def test_the_default_model_s_logits_are_those_of_transformers(smollm2):
    """The same weights in transformers' Llama, on rows of unequal length."""
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=8192,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 100_000.0},
    )
    with torch.device("meta"):
        theirs = transformers.LlamaForCausalLM(config).eval()
    weights = {"model.embed_tokens.weight": smollm2.embedding, "model.norm.weight": smollm2.norm}
    for i, layer in enumerate(smollm2.stack):
        parts = {
            "input_layernorm": layer.attention_norm,
            "self_attn.q_proj": layer.q.weight,
            "self_attn.k_proj": layer.k.weight,
            "self_attn.v_proj": layer.v.weight,
            "self_attn.o_proj": layer.out.weight,
            "post_attention_layernorm": layer.mlp_norm,
            "mlp.gate_proj": layer.gate.weight,
            "mlp.up_proj": layer.up.weight,
            "mlp.down_proj": layer.down.weight,
        }
        weights |= {f"model.layers.{i}.{name}.weight": weight for name, weight in parts.items()}
    theirs.load_state_dict(weights, strict=False, assign=True)
    theirs.tie_weights()
    theirs.model.rotary_emb = type(theirs.model.rotary_emb)(config)
    rows = rand_ids(2, 40, 7, vocab=49152)
    want = torch.cat([hf_logits(theirs, ids) for ids in rows])
    got = torch.from_numpy(smollm2.score([span(ids) for ids in rows]).rows())
    torch.testing.assert_close(got, want, rtol=0, atol=1e-3)


@pytest.mark.parametrize("damage", [
    {"hidden_act": 3}, {"layer_types": 3}, {"layer_types": ["x"]}, {"sliding_window": [4]},
    {"rope_scaling": {"rope_type": "dynamic", "factor": "x"}}, {"rope_scaling": {"rope_type": []}},
    {"rope_scaling": {"rope_type": "yarn", "factor": 4, "beta_fast": 1e300}},
], ids=repr)
def test_a_damaged_config_is_an_error_by_name_whoever_reads_it(tmp_path, damage):
    save(hf_tiny("mistral"), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **damage}))
    with pytest.raises(ModelError):
        load_model(tmp_path, **REFERENCE)


@pytest.mark.parametrize("device", ["meta", "x", []])
def test_a_device_that_cannot_compute_is_refused(device):
    with pytest.raises(ParameterError, match="cannot be used"):
        pick_device(device)


def test_a_home_that_is_not_there(tmp_path):
    with pytest.raises(ModelError, match=r"no such file|neither a path"):
        load_model("~nobody-of-this-name/x", **REFERENCE)
