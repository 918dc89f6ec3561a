"""The default model twice: by our own decoder, and by transformers on the same float32 weights."""
from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import unspool
from unspool.core.request import Request
from unspool.core.sockets import Span
from unspool.files import store
from unspool.files.gguf import read_gguf
from unspool.memories.none import Blank
from unspool.models.gguf_config import config_of
from unspool.models.load import configure
from unspool.models.weights import EMBEDDING, HEAD, take
from unspool.rules import greedy
from unspool.stops.length import MaxNew
from unspool.strategies import Sample

Rows = NDArray[np.float32]


@cache
def ours(numerics: str = "reference") -> unspool.LLM:
    return unspool.load(numerics=numerics)


@cache
def peer() -> Any:
    """transformers' LlamaForCausalLM in float32, that ends at no token.

    Every parameter of it is one of ours; a missing or spare name is an error of torch's.
    """
    from transformers import LlamaConfig, LlamaForCausalLM

    file = read_gguf(store.find(store.DEFAULT))
    vocab = file.tensors["token_embd.weight"].shape[0]
    raw = config_of(file.metadata, file.tensors.keys(), vocab)
    arrays = take(file.tensors, configure(raw), gguf=True)
    weights = {name: torch.from_numpy(array) for name, array in arrays.items()}
    if raw["tie_word_embeddings"]:
        weights[HEAD] = weights[EMBEDDING]
    raw["rope_parameters"] = {"rope_type": "default", **raw["rope_parameters"]}
    config = LlamaConfig(**raw, bos_token_id=None, eos_token_id=None, pad_token_id=None)
    with torch.device("meta"):
        model = LlamaForCausalLM(config).eval()
    model.load_state_dict(weights, strict=True, assign=True)
    model.model.rotary_emb = type(model.model.rotary_emb)(config)  # its buffers are not weights
    return model


def ids(text: str) -> list[int]:
    """Control tokens written in the text are control tokens."""
    return ours().facts.needs_text("a measurement").encode(text, specials=True)


def asked(prompt: list[int], new: int) -> Request:
    """A request to write `new` tokens greedily."""
    return Request(tuple(prompt), Sample(), (greedy(),), (MaxNew(new),))


def our_rows(texts: list[list[int]], counts: list[int], numerics: str = "reference") -> list[Rows]:
    """The logits after the last `counts` tokens of every text, all texts in one forward. They hold
    until the next forward in these numerics."""
    spans = [Span(Blank(), text, 0, count) for text, count in zip(texts, counts, strict=True)]
    rows: Rows = ours(numerics).model.score(spans).rows()
    return list(np.split(rows, np.cumsum(counts)[:-1]))


def peer_rows(text: list[int]) -> Rows:
    """The logits after every token of one text, [tokens, vocabulary]."""
    with torch.inference_mode():
        rows: Rows = peer()(torch.tensor([text])).logits[0].numpy()
    return rows
