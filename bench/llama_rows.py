"""llama.cpp's logits after every token of some texts, written to files.

Started by `bench/quality.py` in the environment that has llama-cpp-python, and importing nothing
of the project. Reads {"model", "texts", "folder"} from its input; writes text i as i.npy.
"""
from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

import llama_cpp as lib
import numpy as np
from numpy.typing import NDArray


def rows(model: Any, vocab: int, tokens: list[int]) -> NDArray[np.float32]:
    """[tokens, vocab]."""
    params = lib.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = -(-len(tokens) // 256) * 256
    params.n_outputs_max = len(tokens)
    context = lib.llama_init_from_model(model, params)
    batch = lib.llama_batch_init(len(tokens), 0, 1)
    batch.n_tokens = len(tokens)
    for at, token in enumerate(tokens):
        batch.token[at], batch.pos[at], batch.logits[at] = token, at, 1
        batch.n_seq_id[at], batch.seq_id[at][0] = 1, 0
    if status := lib.llama_decode(context, batch):
        raise RuntimeError(f"llama_decode: status {status}")
    found = lib.llama_get_logits(context)
    copied = np.ctypeslib.as_array(ctypes.cast(found, ctypes.POINTER(ctypes.c_float)),
                                   shape=(len(tokens), vocab)).copy()
    lib.llama_batch_free(batch)
    lib.llama_free(context)
    return copied


def main() -> None:
    asked = json.load(sys.stdin)
    lib.llama_backend_init()
    model = lib.llama_model_load_from_file(asked["model"].encode(),
                                           lib.llama_model_default_params())
    if not model:
        raise RuntimeError(f"llama.cpp cannot read {asked['model']}")
    vocab = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))
    for i, tokens in enumerate(asked["texts"]):
        np.save(Path(asked["folder"]) / f"{i}.npy", rows(model, vocab, tokens))


if __name__ == "__main__":
    main()
