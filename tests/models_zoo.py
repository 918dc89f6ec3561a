"""Tiny models for every test: real checkpoints with random or exact weights, and spans to run them.

`tiny(...)` makes one of our own decoders from random weights, without files or transformers.
`hf_*` make the same shapes in transformers (imported only then); `native(model)` runs such a model
by our own families, `save(model, folder)` writes it as an ordinary checkpoint.
"""

from __future__ import annotations

import math

import torch

from unspool.core.sockets import Span
from unspool.models.decoder import Decoder
from unspool.models.fingerprint import fingerprint
from unspool.models.load import configure
from unspool.models.weights import expected

NO_IDS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
SHAPE = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}


# ------------------------------------------------------------------------------------- our own
def tiny(family="llama", dtype="float64", seed=0, std=0.3, **features) -> Decoder:
    """A decoder of `family` with random weights; `features` are keys of its config."""
    raw = {"model_type": family, **SHAPE, **features}
    raw.setdefault("head_dim", raw["hidden_size"] // raw["num_attention_heads"])
    config = configure(raw)
    noise = torch.Generator().manual_seed(seed)
    weights = {
        name: (torch.randn(shape, generator=noise, dtype=torch.float64) * std).to(
            getattr(torch, dtype)
        )
        for name, shape in expected(config).items()
    }
    for name in weights:
        if "norm" in name:
            weights[name] += 1
    return Decoder(config, weights, fingerprint(config, weights.items()))


def markov(table, dtype="float64") -> Decoder:
    """MK: a Llama whose logits are exactly `table[last token]`, whatever came before."""
    table = torch.as_tensor(table, dtype=getattr(torch, dtype))
    size = len(table)
    config = configure(markov_config(size))
    weights = {n: torch.zeros(s, dtype=table.dtype) for n, s in expected(config).items()}
    weights |= markov_weights(table)
    return Decoder(config, weights, fingerprint(config, weights.items()))


def markov_config(size):
    return {
        "model_type": "llama",
        "vocab_size": size,
        "hidden_size": size,
        "intermediate_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "head_dim": 4,
        "max_position_embeddings": 512,
        "rms_norm_eps": 0.0,
        "tie_word_embeddings": False,
    }


def markov_weights(table):
    """One-hot embeddings; attention and feed-forward write nothing; the norm scales by sqrt(V)."""
    size = len(table)
    ones = torch.ones(size, dtype=table.dtype)
    layer = "model.layers.0"
    return {
        "model.embed_tokens.weight": torch.eye(size, dtype=table.dtype),
        "lm_head.weight": table.T.contiguous() / math.sqrt(size),
        "model.norm.weight": ones,
        f"{layer}.input_layernorm.weight": ones,
        f"{layer}.post_attention_layernorm.weight": ones,
        f"{layer}.self_attn.o_proj.weight": torch.zeros(size, 4, dtype=table.dtype),
        f"{layer}.mlp.down_proj.weight": torch.zeros(size, 8, dtype=table.dtype),
    }


def cycle(size, second=None):
    """CY: a table in which i + 1 (mod size) follows i with logit 4 against -4.

    CY2: with `second`, the logit of the runner-up i + 2.
    """
    table = torch.full((size, size), -4.0)
    for i in range(size):
        table[i, (i + 1) % size] = 4.0
        if second is not None:
            table[i, (i + 2) % size] = second
    return table


# -------------------------------------------------------------------------------- transformers
def hf_tiny(family="llama", seed=0, **features):
    """A random transformers model of llama, mistral, qwen2 or qwen3; TL(seed) for llama."""
    import transformers

    names = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}
    made = getattr(transformers, f"{names[family]}Config")(
        **{**SHAPE, "initializer_range": 0.3, **NO_IDS, **features}
    )
    torch.manual_seed(seed)
    model = getattr(transformers, f"{names[family]}ForCausalLM")(made).eval()
    with torch.no_grad():  # biases start at zero and norms at one, which would hide a mistake
        noise = torch.Generator().manual_seed(seed + 1)
        for name, weight in model.named_parameters():
            if name.endswith("bias") or (features and "norm" in name):
                weight += 0.3 * torch.randn(weight.shape, generator=noise)
    return model


def hf_gpt2(seed=0):
    """TG: a tiny GPT-2, with learned positions."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(seed)
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=64,
            n_embd=32,
            n_layer=2,
            n_head=4,
            n_positions=256,
            initializer_range=0.3,
            bos_token_id=None,
            eos_token_id=None,
        )
    ).eval()


def hf_markov(table):
    """MK as a transformers model, to be saved as a checkpoint."""
    from transformers import LlamaConfig, LlamaForCausalLM

    table = torch.as_tensor(table, dtype=torch.float32)
    config = markov_config(len(table))
    model = LlamaForCausalLM(LlamaConfig(**{**config, **NO_IDS})).eval()
    model.load_state_dict(markov_weights(table), strict=False)
    return model


def save(model, folder):
    """Write a transformers model as an ordinary checkpoint; the folder."""
    model.save_pretrained(folder)
    return folder


def native(model, dtype="float32") -> Decoder:
    """A transformers model of one of our families, run by our own decoder."""
    config = configure(model.config.to_dict())
    weights = {
        name: weight.detach().to(getattr(torch, dtype))
        for name, weight in model.state_dict().items()
        if not (config.tied and name == "lm_head.weight")
    }
    return Decoder(config, weights, fingerprint(config, weights.items()))


def hf_logits(model, ids):
    """[len(ids), vocab] of one plain forward."""
    with torch.inference_mode():
        return model(torch.tensor([ids])).logits[0]


# --------------------------------------------------------------------------------------- spans
class Held:
    """The simplest lease: the model makes the store, and the test counts the tokens."""

    def __init__(self, length=0):
        self.length, self.reserve, self.store = length, 0, None


def span(ids, lease=None, rows=None):
    """A span of `ids` that follow what the lease holds; every token wants a row by default."""
    lease = lease or Held()
    return Span(lease, list(ids), lease.length, len(ids) if rows is None else rows)


def logits(model, ids):
    """[len(ids), vocab] of one text, in one forward."""
    return torch.from_numpy(model.score([span(ids)]).rows().copy())


def incremental(model, ids, sizes=None):
    """The same rows, in chunks of the given sizes (one by one by default)."""
    lease, out, at = Held(), [], 0
    for size in sizes or [1] * len(ids):
        out.append(torch.from_numpy(model.score([span(ids[at : at + size], lease)]).rows().copy()))
        at += size
        lease.length = at
    return torch.cat(out)


def rand_ids(seed, *lengths, low=2, vocab=64):
    """Rows of random ids; A and B of the bug cases are `rand_ids(1, 13, 4)`."""
    noise = torch.Generator().manual_seed(seed)
    return [torch.randint(low, vocab, (n,), generator=noise).tolist() for n in lengths]


def greedy(model, ids, count, lease=None):
    """The likeliest `count` tokens after `ids`, one forward each."""
    lease, todo, out = lease or Held(), list(ids), []
    for _ in range(count):
        row = model.score([span(todo, lease, rows=1)]).rows()[0]
        lease.length += len(todo)
        todo = [int(row.argmax())]
        out += todo
    return out


# -------------------------------------------------------------------- what a config can turn on
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 10_000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 64,
}
FEATURES = {
    "llama, GQA": ("llama", {}),
    "llama, MHA": ("llama", {"num_key_value_heads": 4}),
    "llama, MQA": ("llama", {"num_key_value_heads": 1}),
    "llama, tied": ("llama", {"tie_word_embeddings": True}),
    "llama, biases": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "llama, head size": ("llama", {"head_dim": 12}),
    "llama, eps": ("llama", {"rms_norm_eps": 0.1}),
    "theta": ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 50.0}}),
    "linear": (
        "llama",
        {"rope_parameters": {"rope_type": "linear", "factor": 3.0, "rope_theta": 1e4}},
    ),
    "llama3": ("llama", {"rope_parameters": LLAMA3}),
    "yarn": ("llama", {"rope_parameters": YARN}),
    "yarn, attention factor": ("llama", {"rope_parameters": {**YARN, "attention_factor": 1.7}}),
    "yarn, mscale": (
        "llama",
        {"rope_parameters": {**YARN, "mscale": 0.7, "mscale_all_dim": 1.2, "beta_fast": 16}},
    ),
    "yarn, no rounding": ("llama", {"rope_parameters": {**YARN, "truncate": False}}),
    "mistral, window": ("mistral", {"sliding_window": 8}),
    "mistral, none": ("mistral", {"sliding_window": None}),
    "qwen2": ("qwen2", {}),
    "qwen2, window from layer 1": (
        "qwen2",
        {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1},
    ),
    "qwen2, layer types": (
        "qwen2",
        {
            "use_sliding_window": True,
            "sliding_window": 8,
            "layer_types": ["sliding_attention", "full_attention"],
        },
    ),
    "qwen2, window off": ("qwen2", {"use_sliding_window": False, "sliding_window": 8}),
    "qwen3": ("qwen3", {"head_dim": 16, "rms_norm_eps": 1e-3}),
    "qwen3, biases, tied": (
        "qwen3",
        {"head_dim": 8, "attention_bias": True, "tie_word_embeddings": True},
    ),
}
WIDE = {
    "llama": {},
    "mistral": {"sliding_window": 8},
    "qwen2": {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1},
    "qwen3": {"head_dim": 16, "attention_bias": True},
}
