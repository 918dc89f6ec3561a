"""What the figures depend on: processor, cores, memory, versions, and who else was working."""
from __future__ import annotations

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import unspool
from unspool.bench.runner import cores

PACKAGES = ("numba", "numpy", "torch")
INSTRUCTIONS = ("avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "asimd")


def machine() -> dict[str, Any]:
    """Plain data; None where the system does not tell. Memory is in bytes."""
    about = _cpuinfo()
    flags = set(about.get("flags", about.get("features", "")).split())
    return {
        "cpu": about.get("model name") or platform.processor() or platform.machine(),
        "instructions": [name for name in INSTRUCTIONS if name in flags],
        "cores": cores(),
        "memory": _memory(),
        "system": platform.system(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "versions": {"unspool": unspool.__version__, "python": platform.python_version(),
                     **{name: _version(name) for name in PACKAGES}},
    }


def _cpuinfo() -> dict[str, str]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return {name.lower(): value for name, value in re.findall(r"^(.+?)\s*:\s*(.*)$", text, re.M)}


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
