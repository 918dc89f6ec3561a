"""Any model of transformers: packed where that is exact, alone where it is not, never silently."""

import pytest
import torch
from models_zoo import (
    NO_IDS,
    SHAPE,
    Held,
    hf_gpt2,
    hf_logits,
    hf_tiny,
    incremental,
    logits,
    rand_ids,
    save,
    span,
)

from unspool.core.errors import ModelError, ParameterError
from unspool.models.load import load_model

ROWS = rand_ids(1, 13, 4, 30, 1)


def made(name, **features):
    """A random model of any class; large weights, so that a mistake shows."""
    import transformers

    config = getattr(transformers, f"{name}Config")(
        **{**SHAPE, "initializer_range": 0.3, **NO_IDS, **features}
    )
    torch.manual_seed(0)
    return getattr(transformers, f"{name.removesuffix('Text')}ForCausalLM")(config).eval()


PACKED = {
    "gpt2, learned positions": hf_gpt2,
    "llama": hf_tiny,
    "mistral, window": lambda: hf_tiny("mistral", sliding_window=8),
    "gpt neox, partial rotary": lambda: made("GPTNeoX"),
    "phi3, window": lambda: made("Phi3", sliding_window=8),
    "gemma3, windows by layer": lambda: made(
        "Gemma3Text",
        head_dim=8,
        sliding_window=8,
        layer_types=["sliding_attention", "full_attention"],
    ),
    "opt, learned positions": lambda: made("OPT", ffn_dim=64, word_embed_proj_dim=32, init_std=0.3),
    "mixtral, experts": lambda: made("Mixtral"),
    "gptj, interleaved rotary": lambda: made(
        "GPTJ", n_embd=32, n_head=4, n_layer=2, rotary_dim=4
    ),
}
ALONE = {
    "bloom": (lambda: made("Bloom", n_layer=2, n_head=4), "its attention cannot be replaced"),
    "gemma2": (lambda: made("Gemma2", head_dim=8), "softcap"),
    "gpt-oss": (
        lambda: made("GptOss", head_dim=8, num_local_experts=4, num_experts_per_tok=2),
        "s_aux",
    ),
    "mamba": (lambda: made("Mamba", state_size=4), "a state that is not keys and values"),
    "llama4": (
        lambda: made("Llama4Text", intermediate_size_mlp=64, head_dim=8, num_local_experts=2),
        "chunked_attention",
    ),
    "dynamic": (
        lambda: hf_tiny(
            max_position_embeddings=16,
            rope_parameters={"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4},
        ),
        "dynamic rotary positions",
    ),
}


@pytest.mark.parametrize("name", PACKED)
def test_packed_and_continued_texts_get_their_plain_logits(name):
    theirs = PACKED[name]()
    want = [hf_logits(theirs, ids) for ids in ROWS]
    model = load_model(theirs)
    assert model.remembers and model.numerics == "reference"
    assert len(model.notes) == 1 and "through transformers" in model.notes[0]
    for order in ((0, 1, 2, 3), (3, 2, 1, 0)):
        got = torch.from_numpy(model.score([span(ROWS[i]) for i in order]).rows())
        torch.testing.assert_close(got, torch.cat([want[i] for i in order]), rtol=0, atol=1e-4)
    for sizes in (None, [7, 20, 3]):
        got = incremental(model, ROWS[2], sizes)
        torch.testing.assert_close(got, want[2], rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", ALONE)
def test_what_cannot_be_packed_runs_alone_and_says_why(name):
    make, why = ALONE[name]
    theirs = make()
    want = [hf_logits(theirs, ids) for ids in ROWS[:2]]
    model = load_model(theirs)
    assert not model.remembers
    assert "alone and whole" in model.notes[-1] and why in model.notes[-1]
    got = torch.from_numpy(model.score([span(ids) for ids in ROWS[:2]]).rows())
    torch.testing.assert_close(got, torch.cat(want), rtol=0, atol=1e-4)
    with pytest.raises(ModelError, match=r"continued at token 3.*'none'"):
        model.score([span([1], Held(length=3))])


def test_b01_rows_of_unequal_length_go_on_as_alone():
    theirs = hf_gpt2()
    model = load_model(theirs)
    a, b = ROWS[0], ROWS[1]
    rows, leases, todo = [[*a], [*b]], [Held(), Held()], [[*a], [*b]]
    for _ in range(16):
        spans = [span(t, x, 1) for t, x in zip(todo, leases, strict=True)]
        got = torch.from_numpy(model.score(spans).rows())
        for i in range(2):
            want = hf_logits(theirs, rows[i])[-1]
            torch.testing.assert_close(got[i], want, rtol=0, atol=1e-4)
            leases[i].length += len(todo[i])
            todo[i] = [int(got[i].argmax())]
            rows[i] += todo[i]


# ------------------------------------------------------------- angles that depend on the length
LONG = {
    "dynamic": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4},
    "longrope": {
        "rope_type": "longrope",
        "factor": 2.0,
        "rope_theta": 1e4,
        "short_factor": [1.0, 1.0, 1.0, 1.0],
        "long_factor": [1.0, 3.0, 5.0, 7.0],
        "original_max_position_embeddings": 16,
    },
}


@pytest.mark.parametrize("kind", LONG)
def test_each_row_is_that_of_the_text_up_to_it_whatever_ran_before(kind):
    def fresh():
        return hf_tiny(max_position_embeddings=16, rope_parameters=dict(LONG[kind]))

    ids = ROWS[2]
    want = torch.stack([hf_logits(fresh(), ids[:n])[-1] for n in range(1, 31)])
    model = load_model(fresh())
    torch.testing.assert_close(logits(model, ids), want, rtol=0, atol=1e-5)
    torch.testing.assert_close(logits(model, ids[:20]), want[:20], rtol=0, atol=1e-5)
    # the case discriminates: the row of a shorter text is another one in a longer text
    assert (hf_logits(fresh(), ids)[9] - want[9]).abs().max() > 1e-3


# ----------------------------------------------------------------------------- loaded objects
def test_a_loaded_model_is_left_as_it_was():
    theirs = hf_tiny().train()
    before = {name: weight.clone() for name, weight in theirs.state_dict().items()}
    implementation = theirs.config._attn_implementation
    want = hf_logits(theirs.eval(), ROWS[0])
    theirs.train()
    model = load_model(theirs)
    model.score([span(ROWS[0])])
    torch.testing.assert_close(hf_logits(theirs, ROWS[0]), want, rtol=0, atol=0)  # while in use
    model.close()
    assert theirs.training and theirs.config._attn_implementation == implementation
    assert all(torch.equal(before[name], w) for name, w in theirs.state_dict().items())
    out = theirs(torch.tensor([ROWS[0]]), labels=torch.tensor([ROWS[0]]))
    out.loss.backward()
    assert theirs.model.embed_tokens.weight.grad is not None


def test_a_forward_that_fails_leaves_the_attention_as_it_was():
    theirs = hf_tiny()
    model = load_model(theirs)
    with pytest.raises(IndexError):
        model.score([span([10**6])])
    assert theirs.config._attn_implementation == "sdpa"


def test_half_precision_is_kept_and_rows_come_in_float32():
    theirs = hf_gpt2().to(torch.bfloat16)
    model = load_model(theirs)
    rows = model.score([span(ROWS[0])]).rows()
    assert rows.dtype == "float32" and theirs.dtype == torch.bfloat16
    want = hf_logits(theirs, ROWS[0]).float()
    assert abs(rows - want.numpy()).max() < 0.05 * float(want.abs().max())


def test_b45_the_vocabulary_may_be_narrowed():
    model = load_model(hf_gpt2())
    wide = logits(model, ROWS[0])
    model.vocab = 60
    torch.testing.assert_close(logits(model, ROWS[0]), wide[:, :60])


def test_fingerprints_tell_models_apart():
    names = [load_model(m).fingerprint for m in (hf_gpt2(), hf_gpt2(), hf_gpt2(seed=1), hf_tiny())]
    assert names[0] == names[1] and len(set(names)) == 3


def test_loading_prints_nothing(tmp_path, capfd):
    from transformers.utils import logging

    place = save(hf_gpt2(), tmp_path)
    capfd.readouterr()
    load_model(place)
    assert capfd.readouterr() == ("", "")
    assert logging.is_progress_bar_enabled()


def test_a_folder_in_float64(tmp_path):
    theirs = hf_gpt2()
    model = load_model(save(theirs, tmp_path), dtype="float64", device="cpu")
    got = model.score([span(ROWS[0])]).rows()
    assert got.dtype == "float64"
    assert abs(got - hf_logits(theirs, ROWS[0]).numpy()).max() < 1e-4


# ------------------------------------------------------------------------------------- refusals
def test_other_objects_are_no_models():
    with pytest.raises(ModelError, match="a Linear is no model"):
        load_model(torch.nn.Linear(2, 2))
    with pytest.raises(ModelError, match="LlamaModel has no language-model head"):
        load_model(hf_tiny().model)


def test_encoder_decoders_are_refused_by_name():
    from transformers import T5Config, T5ForConditionalGeneration

    model = T5ForConditionalGeneration(
        T5Config(vocab_size=48, d_model=32, d_kv=8, d_ff=64, num_layers=1, num_heads=4)
    )
    with pytest.raises(ModelError, match="'t5' is an encoder-decoder"):
        load_model(model)


def test_a_model_that_sees_the_future_is_refused():
    from transformers import BertConfig, BertLMHeadModel

    torch.manual_seed(0)
    config = BertConfig(**SHAPE, initializer_range=0.3, is_decoder=False)
    with pytest.raises(ModelError, match="change when tokens follow"):
        load_model(BertLMHeadModel(config).eval())


def test_weights_that_are_no_numbers_are_refused():
    theirs = hf_gpt2().train()
    with torch.no_grad():
        theirs.transformer.h[0].mlp.c_fc.weight[:] = float("nan")
    with pytest.raises(ModelError, match="not numbers"):
        load_model(theirs)
    assert theirs.training


@pytest.mark.parametrize(
    "asked, name", [({"device": "cuda:7"}, "device"), ({"dtype": "float64"}, "dtype")]
)
def test_a_loaded_model_stays_where_and_as_it_is(asked, name):
    with pytest.raises(ParameterError, match="but the loaded model has") as raised:
        load_model(hf_gpt2(), **asked)
    assert raised.value.name == name
    assert load_model(hf_gpt2(), device="cpu", dtype="float32").remembers
