"""`unspool env`: versions, devices and folders, for a report of a fault."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

import click

import unspool
from unspool.cli.verb import print_json
from unspool.show.progress import Progress

PACKAGES = (
    "numpy",
    "tokenizers",
    "torch",
    "transformers",
    "click",
    "rich",
    "plotly",
)
VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "HF_HOME",
    "HF_HUB_OFFLINE",
    "NO_COLOR",
    "OMP_NUM_THREADS",
    "OPENBLAS_CORETYPE",
    "UNSPOOL_CACHE",
)


@click.command("env")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
    """Show versions, devices and folders."""
    with Progress("looking for devices", sys.stderr):
        facts = gather()
    if as_json:
        print_json(facts)
        return
    for section, value in facts.items():
        lines = value.items() if isinstance(value, dict) else [("", value)]
        for name, fact in lines:
            label = f"{section} {name}".strip()
            click.echo(f"{label:<28} {'-' if fact is None else fact}")


def gather() -> dict[str, object]:
    """What a fault may depend on; None where a package or a device is missing."""
    from unspool.files.store import cache_folder, models

    return {
        "unspool": unspool.__version__,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "packages": {name: _version(name) for name in PACKAGES},
        "devices": _devices(),
        "cache": str(cache_folder()),
        "models": {known.name: str(path) if path else None for known, path in models()},
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _devices() -> dict[str, str | None]:
    found: dict[str, str | None] = {"cpu": platform.processor() or platform.machine()}
    if _version("torch") is None:
        return found
    import torch

    found["cuda"] = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    found["mps"] = "available" if torch.backends.mps.is_available() else None
    return found
