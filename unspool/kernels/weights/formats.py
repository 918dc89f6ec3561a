"""The weight formats that have kernels, by the names that files use, and how each is packed.

A matrix is packed in groups of eight rows. For each block of columns a group has one record, which
holds the eight rows' scales and codes in the order in which vector lanes want them: one lane, one
row. Packing moves codes and never changes a value.
"""
from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from unspool.kernels.machine.jit import Kernel

Q4_0, Q4_1, Q8_0, Q4_K, Q6_K, F32, BF16, F16 = range(8)

# pack(rows, blocks, first group, last group, out): `rows` is the address of the addresses of the
# raw rows, one for each packed row, 0 for a row that is left as it is (zeros).
PACK = "void(int64, int64, int64, int64, int64)"


@dataclass(frozen=True, slots=True)
class Format:
    """`block`: columns of a record; `raw`: bytes of a row's block in the file; `record`: of eight
    rows' block when packed; `quantised`: activations come as integer codes."""

    name: str
    id: int
    block: int
    raw: int
    record: int
    quantised: bool
    module: str

    @property
    def pack(self) -> Kernel:
        kernel: Kernel = import_module(f"unspool.kernels.weights.{self.module}").PACKERS[self.id]
        return kernel

    def prepare(self) -> Format:
        """Register the tiles of this format."""
        import_module(f"unspool.kernels.weights.{self.module}")
        return self


FORMATS = {
    f.name: f
    for f in (
        Format("Q4_0", Q4_0, 32, 18, 144, True, "q4"),
        Format("Q4_1", Q4_1, 32, 20, 160, True, "q4"),
        Format("Q8_0", Q8_0, 32, 34, 272, True, "q8"),
        Format("Q4_K", Q4_K, 256, 144, 1184, True, "q4_k"),
        Format("Q6_K", Q6_K, 256, 210, 1680, True, "q6_k"),
        Format("F32", F32, 1, 4, 32, False, "unquantised"),
        Format("BF16", BF16, 1, 2, 16, False, "unquantised"),
        Format("F16", F16, 1, 2, 16, False, "unquantised"),
    )
}
