"""OpenVINO GenAI, which reads a GGUF by itself. Its own counters tell when the tokens came."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import openvino as ov
import openvino_genai as genai
from wire import serve


def load(settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    pipe = genai.LLMPipeline(settings["model"], "CPU", INFERENCE_NUM_THREADS=settings["threads"])

    def write(prompts: Sequence[list[int]], new: int, sampled: bool) -> dict[str, Any]:
        ids = np.array(prompts, np.int64)  # rows of one length, so no padding
        inputs = genai.TokenizedInputs(ov.Tensor(ids), ov.Tensor(np.ones_like(ids)))
        how = genai.GenerationConfig(max_new_tokens=new, ignore_eos=True, do_sample=sampled)
        how.apply_chat_template = False
        if sampled:
            how.temperature, how.top_p, how.rng_seed = 0.8, 0.95, 0
        found = pipe.generate(inputs, how)
        raw = found.perf_metrics.raw_metrics
        moments = raw.m_new_token_times  # milliseconds, one for each step
        return {"first_s": raw.m_times_to_first_token[0] / 1e6,
                "rest_s": (moments[-1] - moments[0]) / 1e3,
                "after": sum(raw.m_batch_sizes[1:]), "token_ids": found.tokens}

    core = ov.Core()

    def chosen(name: str) -> Any:
        return core.get_property("CPU", name)

    precision, keys = chosen("INFERENCE_PRECISION_HINT"), chosen("KV_CACHE_PRECISION")
    facts = {
        "version": genai.__version__,
        "threads": settings["threads"],
        "dtype": f"stored weights, computed in {precision.get_type_name()}",
        "cache": f"paged, {keys.get_type_name()} keys and values",
        "build": f"openvino {ov.__version__}, "
                 f"activations quantised by {chosen('DYNAMIC_QUANTIZATION_GROUP_SIZE')}",
    }
    return facts, {"write": write}


if __name__ == "__main__":
    serve(load)
