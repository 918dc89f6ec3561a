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
    "numba",
    "llvmlite",
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
    "NUMBA_CACHE_DIR",
    "NUMBA_CPU_FEATURES",
    "NUMBA_CPU_NAME",
    "NUMBA_DISABLE_JIT",
    "OMP_NUM_THREADS",
    "OPENBLAS_CORETYPE",
    "UNSPOOL_CACHE",
)
FEATURES = {"avx", "avx2", "avx512bw", "avx512f", "avx512vnni", "avxvnni", "dotprod", "f16c", "fma",
            "fullfp16", "i8mm", "neon", "sve"}  # fmt: skip


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
    from unspool.core.folders import cache_folder
    from unspool.files.store import models

    return {
        "unspool": unspool.__version__,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "packages": {name: _version(name) for name in PACKAGES},
        "compiled for": _compiled_for(),
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


def _compiled_for() -> dict[str, str | None]:
    """The processor that kernels are compiled for, and those of its features that speed them up.

    As Numba sees them, which may be told otherwise by NUMBA_CPU_NAME and NUMBA_CPU_FEATURES.
    """
    try:
        from llvmlite.binding import get_host_cpu_name
        from numba import config

        from unspool.kernels.machine.cpu import features
    except (ImportError, OSError) as error:
        return {"cpu": f"cannot be told ({error})"}
    return {
        "cpu": config.CPU_NAME or get_host_cpu_name(),
        "features": " ".join(sorted(features() & FEATURES)) or None,
    }


def _devices() -> dict[str, str | None]:
    found: dict[str, str | None] = {"cpu": platform.processor() or platform.machine()}
    if _version("torch") is None:
        return found
    try:
        import torch
    except (ImportError, OSError) as error:
        return {**found, "torch": f"cannot be imported ({error})"}
    found["cuda"] = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    found["mps"] = "available" if torch.backends.mps.is_available() else None
    return found
