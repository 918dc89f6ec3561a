"""Our own shaping and picking, as the engine does it, without a model."""
from __future__ import annotations

import json
import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from wire import serve

import unspool
from unspool import rules
from unspool.core.history import history
from unspool.engine.shape import shape
from unspool.kernels.reading.logits import logits_of
from unspool.rules.plain import Seat


def recipe(numbers: dict[str, float]) -> tuple[Any, ...]:
    return tuple(getattr(rules, name)(number) for name, number in numbers.items())


def load(settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    folder = Path(settings["folder"])
    told = json.loads((folder / "told.json").read_text())
    rows = np.fromfile(folder / "rows.f32", np.float32).reshape(len(told["texts"]), -1)
    texts = [history(text) for text in told["texts"]]

    def seats(way: str, seed: int) -> list[Seat]:
        recipes = [recipe(told["usual"])] * len(texts) if way == "usual" else [
            recipe(numbers) for numbers in told["mixed"]]
        return [Seat(own, (None,) * len(own), text, (seed, 0, text.length, 0), True)
                for own, text in zip(recipes, texts, strict=True)]

    def shaped(way: str, seed: int) -> dict[str, Any]:
        logits = logits_of(rows)
        assert logits.facts  # the model's head takes them as it makes the rows
        asked = seats(way, seed)
        size = 1 if way == "usual" else len(texts)  # one after the other, or all together
        begun, picks = time.perf_counter(), []
        for first in range(0, len(texts), size):
            places = range(first, first + size)
            for group, place in shape(logits, places, asked[first:first + size]):
                picks.append(group.pick(place)[0])
        spent = time.perf_counter() - begun
        return {"ms": 1e3 * spent / (len(texts) / size), "picks": picks}

    facts = {"version": unspool.__version__, "threads": 1, "dtype": "float32 rows, float64 lists",
             "cache": "no model", "build": f"python {platform.python_version()}, numba "
             f"{version('numba')}, numpy {version('numpy')}"}
    return facts, {"shape": shaped}


if __name__ == "__main__":
    serve(load)
