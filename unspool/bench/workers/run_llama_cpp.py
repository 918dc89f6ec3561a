"""llama.cpp through the low-level calls of llama-cpp-python: one sequence for each row."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import llama_cpp as lib
import numpy as np
from wire import Clock, serve

BATCH = 2048
CELLS = 256  # llama.cpp's own padding of a context


def load(settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    lib.llama_backend_init()
    model = lib.llama_model_load_from_file(settings["model"].encode(),
                                           lib.llama_model_default_params())
    if not model:
        raise RuntimeError(f"llama.cpp cannot read {settings['model']}")
    vocab = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))

    def write(prompts: Sequence[list[int]], new: int, sampled: bool) -> dict[str, Any]:
        rows = Rows(model, vocab, prompts, new, settings["threads"])
        try:
            return rows.write(new, sampled)
        finally:
            lib.llama_free(rows.context)

    described = ctypes.create_string_buffer(128)
    lib.llama_model_desc(model, described, 128)
    facts = {
        "version": lib.__version__,
        "threads": settings["threads"],
        "dtype": described.value.decode(),
        "cache": "f16 keys and values",
        "build": " ".join(instructions()),
    }
    return facts, {"write": write}


def instructions() -> list[str]:
    """What it was compiled with, of its own list "CPU : SSE3 = 1 | SSSE3 = 1 | ..."."""
    parts = lib.llama_print_system_info().decode().replace("CPU :", "").split("|")
    return [name.strip() for name, _, value in (part.partition("=") for part in parts)
            if value.strip() == "1"]


class Rows:
    """A context of its own for one request, made before the clock starts."""

    def __init__(self, model: Any, vocab: int, prompts: Sequence[list[int]], new: int,
                 threads: int) -> None:
        self.prompts, self.vocab = prompts, vocab
        length = max(map(len, prompts)) + new
        params = lib.llama_context_default_params()
        params.n_ctx = (length + CELLS - 1) // CELLS * CELLS * len(prompts)
        params.n_batch, params.n_ubatch = BATCH, 512
        params.n_seq_max = params.n_outputs_max = len(prompts)
        params.n_threads = params.n_threads_batch = threads
        self.context = lib.llama_init_from_model(model, params)
        if not self.context:
            raise RuntimeError(f"no context of {params.n_ctx} tokens")

    def write(self, new: int, sampled: bool) -> dict[str, Any]:
        rows = range(len(self.prompts))
        samplers = [sampler(row) for row in rows] if sampled else []
        batch = lib.llama_batch_init(BATCH, 0, 1)
        clock = Clock(len(self.prompts))
        written: list[list[int]] = [[] for _ in rows]
        places = self.read(batch)
        for at in range(new):
            for row in rows:
                if samplers:
                    token = lib.llama_sampler_sample(samplers[row], self.context, places[row])
                else:
                    token = self.likeliest(places[row])
                written[row].append(token)
            clock.step()
            if at + 1 < new:
                steps = [(written[row][-1], len(self.prompts[row]) + at, row) for row in rows]
                self.decode(batch, steps, set(rows))
                places = list(rows)
        lib.llama_batch_free(batch)
        for chain in samplers:
            lib.llama_sampler_free(chain)
        return clock.answer(written)

    def read(self, batch: Any) -> list[int]:
        """Read the prompts, as many tokens a batch as fit; where each row's logits are then.

        Rows whose prompts end in different batches would lose the earlier logits: the prompts of
        several rows must fit into one batch.
        """
        tokens = [(token, at, row) for row, prompt in enumerate(self.prompts)
                  for at, token in enumerate(prompt)]
        if len(self.prompts) > 1 and len(tokens) > BATCH:
            raise RuntimeError(f"prompts of {len(tokens)} tokens do not fit into one batch")
        ends = {i for i, (_, at, row) in enumerate(tokens) if at == len(self.prompts[row]) - 1}
        for start in range(0, len(tokens), BATCH):
            self.decode(batch, tokens[start : start + BATCH], {end - start for end in ends})
        last = (len(tokens) - 1) // BATCH * BATCH
        return [end - last for end in sorted(ends)]

    def decode(self, batch: Any, tokens: list[tuple[int, int, int]], wanted: set[int]) -> None:
        batch.n_tokens = len(tokens)
        for i, (token, at, row) in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.logits[i] = token, at, i in wanted
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, row
        if status := lib.llama_decode(self.context, batch):
            raise RuntimeError(f"llama_decode: status {status}")

    def likeliest(self, place: int) -> int:
        logits = lib.llama_get_logits_ith(self.context, place)
        return int(np.argmax(np.ctypeslib.as_array(logits, shape=(self.vocab,))))


def sampler(seed: int) -> Any:
    chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
    lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_top_p(0.95, 1))
    lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_temp(0.8))
    lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_dist(seed))
    return chain


if __name__ == "__main__":
    serve(load)
