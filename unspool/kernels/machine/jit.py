"""Compiles kernels when they are first needed, and keeps the machine code between processes.

What is kept lies in a folder named by a digest of every file of `kernels`, so an edited kernel
or helper can never meet stale code; Numba adds the CPU, its features and its own version. It knows
nothing of what the kernels do.
"""
from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import RLock
from time import perf_counter
from typing import Any

from numba import cfunc, config, njit

from unspool.core.folders import cache_folder

LOG = logging.getLogger("unspool")
LOCK = RLock()  # Numba reads the folder from a global setting
WATCHERS: list[Callable[[str], None]] = []  # told the name of each kernel that is to be compiled

SAID: list[str] = []

# A division by zero gives infinity, as in C; sums keep their order.
SETTINGS: dict[str, Any] = {"nopython": True, "error_model": "numpy", "fastmath": False}


class Kernel:
    """A function that becomes machine code at its first use.

    `address`: what compiled code calls; calling it from Python runs it with the GIL released.
    """

    def __init__(self, function: Callable[..., Any], signature: str) -> None:
        self.function, self.signature = function, signature
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._compiled: Any = None

    @property
    def address(self) -> int:
        return int(self.compiled.address)

    @property
    def compiled(self) -> Any:
        with LOCK:
            if self._compiled is None:
                if not is_kept(self.function):
                    announce(self.__name__)
                begun = perf_counter()
                self._compiled = _compile(self.function, self.signature)
                LOG.debug("kernel %s: %.2f s", self.__name__, perf_counter() - begun)
            return self._compiled

    def __call__(self, *arguments: Any) -> Any:
        return (self._compiled or self.compiled).ctypes(*arguments)


def kernel(signature: str, name: str = "") -> Callable[[Callable[..., Any]], Kernel]:
    """Make a function a Kernel: `@kernel("void(int64, int64)")`. It takes plain numbers, arrays
    by their addresses. `name`: what tells it from others made by the same lines."""

    def wrap(function: Callable[..., Any]) -> Kernel:
        if name:
            function.__name__ = function.__qualname__ = name
        return Kernel(function, signature)

    return wrap


def inner(function: Callable[..., Any]) -> Any:
    """A helper that kernels call: compiled as a part of each of them."""
    alone = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # nobody else calls it
    return njit(error_model="numpy", **alone)(function)


def _compile(function: Callable[..., Any], signature: str) -> Any:
    """From the cache if it is there. A damaged cache is thrown away, a missing one is missed."""
    folder = kept_in()
    if folder is not None:
        before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
        try:
            return cfunc(signature, cache=True, **SETTINGS)(function)
        except Exception as error:  # unpickling what was damaged may raise anything
            LOG.warning("the kept kernels in %s are made anew: %s", folder, error)
            forget()
        finally:
            config.CACHE_DIR = before
    return cfunc(signature, **SETTINGS)(function)


def announce(name: str) -> None:
    """Tell who watches that a kernel will be compiled; where nobody does, say it once."""
    for watcher in WATCHERS:
        watcher(name)
    if not WATCHERS and not SAID:
        SAID.append(name)
        LOG.warning("compiling kernels: seconds, once for each kind of work, and then kept")


def is_kept(function: Callable[..., Any]) -> bool:
    """Whether an earlier process has compiled it, for this CPU or another."""
    folder = kept_in()
    module = function.__module__.rpartition(".")[2]  # Numba names the file after the last part
    name = f"{module}.{function.__qualname__}".replace("<locals>", "locals")
    return folder is not None and any(folder.glob(f"*/*{name}-*.nbi"))


@cache
def kept_in() -> Path | None:
    """The folder of this version's machine code; None when nothing can be written there."""
    folder = cache_folder() / "kernels" / digest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        LOG.warning("kernels are compiled anew in every process: %s", error)
        return None


@cache
def digest() -> str:
    """Of every source file of the kernels."""
    total = sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        total.update(path.read_bytes())
    return total.hexdigest()[:16]


def forget() -> None:
    """Delete what was kept of this version."""
    folder = kept_in()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    kept_in.cache_clear()
