"""Which instructions the compiled code may use, as Numba sees this CPU.

NUMBA_CPU_NAME and NUMBA_CPU_FEATURES in the environment make it see another one.
"""
from __future__ import annotations

import platform
from functools import cache

from llvmlite import binding
from numba import config

X86 = platform.machine().lower() in ("x86_64", "amd64")
ARM = platform.machine().lower() in ("aarch64", "arm64")


@cache
def features() -> frozenset[str]:
    """Names as LLVM spells them: "avx2", "f16c", "avx512vnni"."""
    listed = config.CPU_FEATURES
    if listed is None:
        listed = binding.get_host_cpu_features().flatten()
    return frozenset(name[1:] for name in listed.split(",") if name.startswith("+"))


def has(*names: str) -> bool:
    return features() >= set(names)


def registers() -> int:
    """Vector registers that a kernel can fill before it spills."""
    return 32 if ARM or has("avx512vl") else 16
