"""Where the environments of the engines are, and how each engine is started.

A peer lives in an environment of its own, which `make peers` fills: `.venv-peers`, and for vLLM
`.venv-peers-vllm`, beside the environment that runs this or in the current folder.
"""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import unspool
from unspool.bench.peers import OFFLINE, PASSIVE, PEERS, SHARED
from unspool.bench.worker import Command, WorkerError, laid
from unspool.files.folder import Source

WORKERS = Path(__file__).parent / "workers"
PACKAGE = Path(unspool.__file__).parent.parent
CONVERT_LIMIT_S = 600


@dataclass(frozen=True, slots=True)
class Target:
    """What every engine of a run is given: the model and how much of it is used.

    `model` is as the user named it (None: the default); `context`: most tokens of a text; `rows`:
    most texts at once.
    """

    model: str | None
    source: Source
    threads: int
    context: int
    rows: int = 1

    @property
    def path(self) -> str:
        """The GGUF file, or the folder of a safetensors checkpoint."""
        source = self.source
        return os.path.abspath(source.weights if source.kind == "gguf" else source.folder)


def ours(target: Target, numerics: str, name: str, cache: str | None = None,
         **choices: object) -> Command:
    """Our own engine. `choices` go to `load`; `cache`: a folder in place of the user's."""
    settings = {"model": target.model, "numerics": numerics, "device": "cpu",
                **{key: value for key, value in choices.items() if value is not None}}
    if numerics != "reference":
        settings["threads"] = target.threads
    paths = [str(PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**PASSIVE, **threads(target), "PYTHONPATH": os.pathsep.join(paths)}
    if cache is not None:
        env["UNSPOOL_CACHE"] = cache
    return Command(name, (sys.executable, script("unspool")), settings, env)


def peer(name: str, target: Target, python: str | None, scratch: Path) -> Command:
    """A peer that can read the model, or its weights as converted into the folder `scratch`.

    `python`: the interpreter of its environment, unless it is looked for. Raises WorkerError for a
    peer that is not installed or that cannot read the model.
    """
    kind, path, notes = PEERS[name], target.path, []
    found = interpreter(kind.home, python)
    if target.source.kind != "gguf" and not kind.folder:
        raise WorkerError(f"{name} reads a GGUF file here, and this model is {target.source.kind}")
    if target.source.kind == "gguf" and not kind.gguf:
        convert(name, found, path, scratch)
        path = str(scratch)
        notes = ["it reads no GGUF: these are the same weights, dequantised by transformers "
                 "beforehand, which counts nowhere"]
    settings = {"model": path, "threads": target.threads, "context": target.context,
                "rows": target.rows}
    env = {**threads(target), **kind.env, "PYTHONPATH": None, "OPENBLAS_CORETYPE": None}
    return Command(name, (found, script(name)), settings, env, notes)


def readers(count: int, python: str = sys.executable, only: str | None = None) -> Command:
    """The readers of memory that measure the roofline, all or one, with `count` threads."""
    settings = {"readers": [only] if only else None, "threads": count}
    env = {"PYTHONPATH": str(PACKAGE) if python == sys.executable else None,
           "OMP_NUM_THREADS": str(count), "OPENBLAS_CORETYPE": None, **PASSIVE}
    name = f"memory readers ({only or 'all'})"
    return Command(name, (python, script("readers")), settings, env)


def interpreter(home: str, given: str | None = None) -> str:
    """The Python of an environment; vLLM's own comes before the one that was `given` for all.

    Raises WorkerError when there is none.
    """
    if home != SHARED and (own := next(pythons(home), None)):
        return own
    if given is not None:
        return given
    found = next(pythons(home), None)
    if found is None:
        raise WorkerError(f"there is no {home} here: `make peers` in a checkout makes it, or name "
                          "an interpreter with --peers-python")
    return found


def pythons(home: str) -> Iterator[str]:
    for folder in (Path(sys.prefix).parent, Path.cwd()):
        for part in ("bin/python", "Scripts/python.exe"):
            if (folder / home / part).exists():
                yield str(folder / home / part)


def convert(name: str, python: str, path: str, folder: Path) -> None:
    """Write the weights of a GGUF as an ordinary checkpoint. Raises WorkerError."""
    try:
        ran = subprocess.run([python, script("gguf", "convert"), path, str(folder)],
                             env=laid({**OFFLINE, "PYTHONPATH": None}), timeout=CONVERT_LIMIT_S,
                             capture_output=True, text=True, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WorkerError(f"{name} reads no GGUF, and converting it failed: {error}") from None
    if ran.returncode:
        said = ran.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise WorkerError(f"{name} reads no GGUF, and converting it failed: {said[0]}")


def threads(target: Target) -> dict[str, str]:
    return {"OMP_NUM_THREADS": str(target.threads)}


def script(name: str, does: str = "run") -> str:
    return str(WORKERS / f"{does}_{name}.py")
