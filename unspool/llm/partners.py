"""Other models that requests bring in: loaded ones, or names, which are loaded once and kept."""
from __future__ import annotations

from pathlib import Path
from threading import RLock
from typing import Any

from unspool.core.errors import ParameterError, UnspoolError
from unspool.core.values import shown
from unspool.llm.facts import Partner


class Partners:
    """`numerics`: what a model that is named is loaded in. Safe from any thread."""

    def __init__(self, numerics: str) -> None:
        self.numerics = numerics
        self.loaded: dict[str, Any] = {}
        self.lock = RLock()

    def of(self, name: str, value: Any) -> Partner:
        """The model that parameter `name` says. Raises ParameterError."""
        worker = getattr(value, "worker", None)
        if worker is not None:
            return Partner(value.facts, worker.loop.engine.runner)
        if not isinstance(value, str | Path):
            raise ParameterError(f"{name}={shown(value)}: must be a loaded model, a name or a "
                                 "path; give one", name)
        from unspool.llm.load import load  # it makes what this belongs to

        with self.lock:
            if str(value) not in self.loaded:
                try:
                    self.loaded[str(value)] = load(value, numerics=self.numerics)
                except UnspoolError as error:
                    raise ParameterError(f"{name}={shown(value)}: {error}", name) from error
            return self.of(name, self.loaded[str(value)])

    def close(self) -> None:
        with self.lock:
            for other in self.loaded.values():
                other.close()
            self.loaded.clear()
