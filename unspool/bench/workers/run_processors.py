"""transformers' processors and torch's draw, as its generate applies them at each step."""
from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers.generation import logits_process as made
from wire import serve

# In the order in which generate applies them.
KINDS = {
    "repetition_penalty": made.RepetitionPenaltyLogitsProcessor,
    "temperature": made.TemperatureLogitsWarper,
    "top_k": made.TopKLogitsWarper,
    "top_p": made.TopPLogitsWarper,
    "min_p": made.MinPLogitsWarper,
}


def processors(numbers: dict[str, float]) -> Any:
    whole = {name: int(number) if name == "top_k" else number for name, number in numbers.items()}
    return made.LogitsProcessorList([KINDS[name](number) for name, number in whole.items()])


def load(settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    torch.set_num_threads(settings["threads"])
    folder = Path(settings["folder"])
    told = json.loads((folder / "told.json").read_text())
    rows = torch.from_numpy(
        np.fromfile(folder / "rows.f32", np.float32).reshape(len(told["texts"]), -1))
    texts = [torch.tensor([text]) for text in told["texts"]]

    @torch.inference_mode()
    def shaped(way: str, seed: int) -> dict[str, Any]:
        torch.manual_seed(seed)
        recipes = [told["usual"]] * len(texts) if way == "usual" else told["mixed"]
        lists = [processors(numbers) for numbers in recipes]
        begun, picks = time.perf_counter(), []
        # One list of processors serves a whole batch there, so mixed rows go one by one.
        for i, (apply, text) in enumerate(zip(lists, texts, strict=True)):
            scores = apply(text, rows[i:i + 1].clone())
            picks.append(int(torch.multinomial(torch.softmax(scores, -1), 1)))
        spent = time.perf_counter() - begun
        return {"ms": 1e3 * spent / (len(texts) if way == "usual" else 1), "picks": picks}

    facts = {"version": transformers.__version__, "threads": torch.get_num_threads(),
             "dtype": "float32", "cache": "no model",
             "build": f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"}
    return facts, {"shape": shaped}


if __name__ == "__main__":
    serve(load)
