"""unspool as one of the measured engines, through nothing but its public interface."""
from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from wire import Clock, serve

import unspool


def load(settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    lm = unspool.load(settings.pop("model"), **settings)

    def write(prompts: Sequence[list[int]], new: int, sampled: bool) -> dict[str, Any]:
        how = {"temperature": 0.8, "top_p": 0.95, "seed": 0} if sampled else {"do_sample": False}
        outputs: list[Any] = [None] * len(prompts)
        clock = Clock(len(prompts))
        for event in lm.stream(list(prompts), max_new_tokens=new, ignore_eos=True, **how):
            if event.type == "commit":
                clock.wrote(event.index, len(event.tokens))
            elif event.output is not None:
                if event.output.error is not None:
                    raise event.output.error
                outputs[event.index] = event.output
        return clock.answer([list(output.token_ids) for output in outputs])

    def search(prompt: Sequence[int], new: int, way: dict[str, float]) -> dict[str, Any]:
        begun = time.perf_counter()
        output = lm.generate(list(prompt), max_new_tokens=new, ignore_eos=True, seed=0, **way)
        spent = time.perf_counter() - begun
        return {"seconds": spent, "token_ids": [list(one.token_ids) for one in output.choices]}

    facts = {
        "version": unspool.__version__,
        "threads": settings.get("threads", int(os.environ["OMP_NUM_THREADS"])),
        "dtype": f"numerics {lm.numerics}",
        "cache": f"{settings.get('memory', 'dense')}, {settings.get('kv', 'f32')} keys and values",
        "build": f"python {platform.python_version()}, {known('numba')}, {known('numpy')}",
        "notes": list(lm.notes),
    }
    return facts, {"write": write, "search": search}


def known(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"no {package}"


if __name__ == "__main__":
    serve(load)
