"""transformers' generate in float32; a GGUF is dequantised by transformers itself."""
from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import torch
import transformers
from wire import Clock, serve


def load(settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    torch.set_num_threads(settings["threads"])
    path = settings["model"]
    source = {"pretrained_model_name_or_path": path}
    if path.endswith(".gguf"):
        folder, name = os.path.split(path)
        source = {"pretrained_model_name_or_path": folder, "gguf_file": name}
    model = transformers.AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    model.eval()
    # Greedy or sampled as the request says, and never ended by a token.
    model.generation_config = transformers.GenerationConfig(pad_token_id=0)

    def write(prompts: Sequence[list[int]], new: int, sampled: bool) -> dict[str, Any]:
        ids = torch.tensor(prompts)  # rows of one length, so no padding
        how = {"temperature": 0.8, "top_p": 0.95, "top_k": 0} if sampled else {}
        torch.manual_seed(0)
        clock = Clock(len(prompts))

        def tick(_: Any, scores: Any) -> Any:
            clock.step()  # the scores of the next token of every row are there
            return scores

        with torch.inference_mode():
            out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new,
                                 do_sample=sampled, logits_processor=[tick], **how)
        return clock.answer(out[:, ids.shape[1]:].tolist())

    def search(prompt: Sequence[int], new: int, way: dict[str, float]) -> dict[str, Any]:
        ids = torch.tensor([prompt])
        how = dict(way)
        if "n" in how:
            how |= {"num_return_sequences": how.pop("n"), "do_sample": True, "top_k": 0}
        torch.manual_seed(0)
        begun = time.perf_counter()
        with torch.inference_mode():
            out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new,
                                 **how)
        spent = time.perf_counter() - begun
        return {"seconds": spent, "token_ids": out[:, ids.shape[1]:].tolist()}

    facts = {
        "version": transformers.__version__,
        "threads": torch.get_num_threads(),
        "dtype": str(model.dtype).removeprefix("torch."),
        "cache": "dynamic, float32 keys and values",
        "build": f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, "
                 f"attention {model.config._attn_implementation}",
    }
    return facts, {"write": write, "search": search}


if __name__ == "__main__":
    serve(load)
