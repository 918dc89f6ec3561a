"""Modules of the tests that the measurements share: tiny models, laws, hostile files."""
from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

TESTS = Path(__file__).resolve().parent.parent / "tests"


def load_test(name: str) -> ModuleType:
    """The module `tests/<name>.py`, with its neighbours importable as they are in the tests."""
    path = TESTS / f"{name}.py"
    for folder in (str(path.parent), str(TESTS)):
        if folder not in sys.path:
            sys.path.append(folder)
    if path.stem in sys.modules:
        return sys.modules[path.stem]
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python module: restore the tests beside bench/")
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
