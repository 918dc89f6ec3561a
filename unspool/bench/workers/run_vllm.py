"""vLLM on the CPU, all in one process, stepped by hand so that every step has its time."""
from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import count
from typing import Any

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # read at import, as the others here
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")  # GiB

import torch
import vllm
from wire import Clock, serve

DTYPE = "bfloat16"  # its own choice for a float32 checkpoint, and the quicker one


def load(settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    llm = vllm.LLM(model=settings["model"], dtype=DTYPE, skip_tokenizer_init=True,
                   max_model_len=settings["context"], max_num_seqs=settings["rows"],
                   enable_prefix_caching=False, seed=0)
    names = count()

    def write(prompts: Sequence[list[int]], new: int, sampled: bool) -> dict[str, Any]:
        how = {"temperature": 0.8, "top_p": 0.95} if sampled else {"temperature": 0.0}
        params = vllm.SamplingParams(max_tokens=new, ignore_eos=True, detokenize=False, **how)
        engine, rows = llm.llm_engine, {}
        found: list[list[int]] = [[] for _ in prompts]
        clock = Clock(len(prompts))
        for row, prompt in enumerate(prompts):
            name = str(next(names))
            rows[name] = row
            engine.add_request(name, {"prompt_token_ids": prompt}, params)
        while engine.has_unfinished_requests():
            for output in engine.step():
                row = rows[output.request_id.split("-")[0]]
                ids = list(output.outputs[0].token_ids)
                clock.wrote(row, len(ids) - len(found[row]))
                found[row] = ids
        return clock.answer(found)

    facts = {
        "version": vllm.__version__,
        "threads": torch.get_num_threads(),
        "dtype": DTYPE,
        "cache": "paged, prefix caching off",
        "build": f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}",
    }
    return facts, {"write": write}


if __name__ == "__main__":
    serve(load)
