"""Copies of kernels with a passage of their source changed, to be compiled beside the right ones.

What is compiled from them is never kept, so no fault can outlive its test.
"""
from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any
from unittest.mock import patch

from unspool.kernels.machine import jit
from unspool.kernels.weights import embed, matmul, projection

OTHERS = count(100)  # format ids that no format has


def mutant(name: str, old: str, new: str) -> ModuleType:
    """`unspool.kernels.<name>` with `new` in place of `old`, which must be there once.

    `name`: with its room, such as "weights.q4".
    """
    original = importlib.import_module(f"unspool.kernels.{name}")
    path = Path(str(original.__file__))
    source = path.read_text()
    if source.count(old) != 1:
        raise ValueError(f"{name}.py has the passage {source.count(old)} times: look again\n{old}")
    with TemporaryDirectory() as folder:
        changed = Path(folder) / f"{name}_changed.py"
        changed.write_text(source.replace(old, new))
        spec = spec_from_file_location(changed.stem, changed)
        assert spec is not None and spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def unkept() -> Any:
    """Nothing is read from the folder of machine code or written into it."""
    return patch.object(jit, "kept_in", lambda: None)


@contextmanager
def tile_changed(name: str, old: str, new: str) -> Iterator[None]:
    """Every product of the formats in `<name>.py` uses the tiles of its mutant.

    They are registered as formats of their own: a tile is chosen once for each format.
    """
    importlib.import_module(f"unspool.kernels.{name}")  # registers the right ones
    known = dict(matmul.TILES)
    with patch.dict(matmul.TILES), patch.dict(embed.UNPACKERS):
        mutant(name, old, new)
        changed = {key: tile for key, tile in matmul.TILES.items() if known.get(key) != tile}
    shift = next(OTHERS) * 100

    def shifted(make: Callable[[int, int], Any]) -> Callable[[int, int], Any]:
        def kernel(format: int, form: int) -> Any:
            return make(format + shift if (format, form) in changed else format, form)
        return kernel

    added = {(format + shift, form): tile for (format, form), tile in changed.items()}
    with ExitStack() as stack:
        stack.enter_context(unkept())
        stack.enter_context(patch.dict(matmul.TILES, added))
        for module, make in ((matmul, "product"), (projection, "projection")):
            stack.enter_context(patch.object(module, make, shifted(getattr(module, make))))
        yield
