"""The command line as a caller sees it: what it prints and its exit code."""

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache

import pytest

import unspool as library
from unspool.cli import main
from unspool.core.errors import ModelError
from unspool.files.store import find

SKY = "The color of sky is"


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture(scope="session")
def weights():
    try:
        return find("smollm2")
    except ModelError as error:
        pytest.skip(f"the default weights are missing: {error}")


@pytest.fixture(scope="session")
def shared():
    """The default model, loaded once, by the first test that asks for it and nothing else."""
    loaded = cache(library.load)
    yield loaded
    if loaded.cache_info().currsize:
        loaded().close()


@pytest.fixture
def unspool(capsys, monkeypatch, shared):
    """Runs the command line in this process; it must succeed unless `code` says otherwise."""
    load = library.load

    def load_once(model=None, **settings):
        return load(model, **settings) if model or settings else nullcontext(shared())

    monkeypatch.setattr(library, "load", load_once, raising=False)

    def run(*args: str, code: int = 0) -> Ran:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main(args)
        out, err = capsys.readouterr()
        assert stop.value.code == code, err
        return Ran(code, out, err)

    return run


@pytest.fixture
def started():
    """Starts the command line in a process of its own."""
    processes = []

    def start(*args: str, **environment: str) -> subprocess.Popen:
        code = "import sys; from unspool.cli import main; main(sys.argv[1:])"
        process = subprocess.Popen(
            [sys.executable, "-u", "-c", code, *args],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()
