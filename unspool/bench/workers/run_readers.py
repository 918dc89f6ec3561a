"""How fast this machine reads memory: the sum of 256 MB, by several readers, with all threads.

A reader that cannot be imported here is left out, with the reason; a new one is a line of READERS.
"""
from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from wire import named, serve

BYTES = 256 * 2**20
PASSES = 3
Pass = Callable[[], object]


def numpy_sum(numbers: Any, threads: int) -> Pass:
    parts = np.array_split(numbers, threads)
    pool = ThreadPoolExecutor(threads)
    return lambda: sum(pool.map(np.sum, parts))


def torch_sum(numbers: Any, threads: int) -> Pass:
    import torch

    torch.set_num_threads(threads)
    tensor = torch.from_numpy(numbers)
    return lambda: tensor.sum()


def own_sum(numbers: Any, threads: int) -> Pass:
    from unspool.kernels.machine.roofline import reader

    return reader(numbers, threads)


# Each makes a function of (float64 numbers, threads) that reads all of them once.
READERS = {"numpy": numpy_sum, "torch": torch_sum, "own": own_sum}


def load(settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    numbers = np.ones(BYTES // 8, np.float64)
    readers, missing = {}, {}
    for name in settings["readers"] or READERS:
        try:
            readers[name] = READERS[name](numbers, settings["threads"])
            readers[name]()
        except Exception as error:  # absent, or of another version
            missing[name] = named(error)

    def read() -> dict[str, list[float]]:
        """GB/s of every pass of every reader."""
        return {name: [BYTES / 1e9 / seconds(reader) for _ in range(PASSES)]
                for name, reader in readers.items()}

    return {"readers": sorted(readers), "missing": missing}, {"read": read}


def seconds(reader: Pass) -> float:
    begun = time.perf_counter()
    reader()
    return time.perf_counter() - begun


if __name__ == "__main__":
    serve(load)
