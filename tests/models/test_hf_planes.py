"""Hidden states and inner logits of any model of transformers, packed, continued or alone."""
import numpy as np
import pytest
import torch
from models_zoo import NO_IDS, SHAPE, Held, hf_gpt2, hf_tiny, rand_ids, span

from unspool.kernels import reference
from unspool.models.hf_planes import depth
from unspool.models.load import load_model

TEXTS = rand_ids(23, 21, 5, 1)


def made(name, **features):
    import transformers

    config = getattr(transformers, f"{name}Config")(
        **{**SHAPE, "initializer_range": 0.3, **NO_IDS, **features}
    )
    torch.manual_seed(0)
    return getattr(transformers, f"{name.removesuffix('Text')}ForCausalLM")(config).eval()


PACKED = {
    "gpt2": hf_gpt2,
    "gpt neox": lambda: made("GPTNeoX"),
    "phi3": lambda: made("Phi3", sliding_window=8),
    "gemma3": lambda: made("Gemma3Text", head_dim=8, sliding_window=8,
                           layer_types=["sliding_attention", "full_attention"]),
    "opt": lambda: made("OPT", ffn_dim=64, word_embed_proj_dim=32, init_std=0.3),
    "mixtral": lambda: made("Mixtral"),
    "gptj": lambda: made("GPTJ", n_embd=32, n_head=4, n_layer=2, rotary_dim=4),
}
ALONE = {
    "bloom": lambda: made("Bloom", n_layer=2, n_head=4),
    "mamba": lambda: made("Mamba", state_size=4),
    "gpt-oss": lambda: made("GptOss", head_dim=8, num_local_experts=4, num_experts_per_tok=2),
}


def deep(ids, lease=None, rows=None, layers=(0, 1)):
    made = span(ids, lease, rows)
    made.hidden, made.layers = True, layers
    return made


def theirs(model, ids):
    with torch.inference_mode():
        out = model(torch.tensor([ids]), output_hidden_states=True)
        head = model.get_output_embeddings()
        inner = [head(out.hidden_states[j][0]) for j in (0, 1)]
    return [x.numpy() for x in (out.hidden_states[-1][0], *inner)]


def close(found, want):
    assert found.shape == want.shape and want.std() > 0.01
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-4 * np.abs(want).max())


@pytest.mark.parametrize("name", [*PACKED, *ALONE])
def test_they_are_those_of_a_plain_forward(name):
    model = load_model((PACKED | ALONE)[name]())
    assert model.remembers == (name in PACKED) and (model.layers, model.width) == (2, 32)
    scores = model.score([deep(TEXTS[0], rows=4), span(TEXTS[1]), deep(TEXTS[1])])
    for number, ids, rows in ((0, TEXTS[0], 4), (2, TEXTS[1], 5)):
        states, *inner = theirs(model.model, ids)
        close(scores.hidden(number), states[-rows:])
        for layer in (0, 1):
            close(scores.inner(number, layer), inner[layer][-rows:])
        want = reference.similarity(torch.from_numpy(states.copy()), rows)
        assert scores.similarity(number) == pytest.approx(want, abs=1e-5)
    if name in PACKED:
        lease, whole = Held(), torch.from_numpy(theirs(model.model, TEXTS[0])[0])
        want = reference.similarity(whole, 1)
        model.score([deep(TEXTS[0][:20], lease, rows=0)])
        lease.length = 20
        found = model.score([deep(TEXTS[1]), deep(TEXTS[0][20:], lease)]).similarity(1)
        assert found == pytest.approx(want, abs=1e-5)


def test_asking_leaves_the_logits_alone():
    model = load_model(hf_gpt2())
    plain = model.score([span(ids) for ids in TEXTS]).rows().copy()
    np.testing.assert_array_equal(model.score([deep(ids) for ids in TEXTS]).rows(), plain)


@pytest.mark.parametrize("kind", ["bfloat16", "float64"])
def test_numbers_come_in_float32_or_float64(kind):
    model = load_model(hf_gpt2().to(getattr(torch, kind)))
    scores = model.score([deep(TEXTS[0])])
    want = "float64" if kind == "float64" else "float32"
    assert {scores.hidden(0).dtype.name, scores.inner(0, 1).dtype.name} == {want}
    assert len(model.notes) == 1


def test_each_state_is_that_of_the_text_up_to_it_where_angles_depend_on_length():
    def fresh():
        return hf_tiny(max_position_embeddings=8, rope_parameters={
            "rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4})

    each = [theirs(fresh(), TEXTS[0][:n]) for n in range(1, 22)]
    states, *inner = (np.stack([one[i][-1] for one in each]) for i in range(3))
    whole = theirs(fresh(), TEXTS[0])[0]
    assert np.abs(whole - states).max() > 1e-2  # the case discriminates
    model = load_model(fresh())
    for rows in (0, 1, 15, 21):
        scores = model.score([deep(TEXTS[0], rows=rows), deep(TEXTS[1])])
        if rows:
            close(scores.hidden(0), states[-rows:])
            close(scores.inner(0, 1), inner[1][-rows:])
        want = reference.similarity(torch.from_numpy(states), rows)
        assert scores.similarity(0) == pytest.approx(want, abs=1e-5)
        close(scores.hidden(1), theirs(fresh(), TEXTS[1])[0])


def test_a_head_that_does_more_than_multiply_is_noted():
    layers, width, notes = depth(made("Cohere", logit_scale=0.5))
    assert (layers, width) == (2, 32)
    assert len(notes) == 1 and "not its head times its last hidden state" in notes[0]


def test_layers_that_do_not_fit_the_head_cannot_be_read():
    model = made("OPT", ffn_dim=64, word_embed_proj_dim=16, init_std=0.3)
    layers, width, notes = depth(model)
    assert layers == 0 and width and "inner layers" in notes[0]
    assert load_model(model).layers == 0


def test_a_model_that_gives_no_hidden_states_says_so(monkeypatch):
    model = hf_gpt2()
    plain = model.forward
    monkeypatch.setattr(model, "forward", lambda input_ids, use_cache: plain(input_ids))
    layers, width, notes = depth(model)
    assert (layers, width) == (0, 0) and "cannot be read (TypeError)" in notes[0]
