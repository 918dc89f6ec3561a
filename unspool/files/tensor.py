"""One stored tensor: its name, shape, number format and bytes. Does not know its file's format."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unspool.core.errors import FormatError
from unspool.files.quants import PLAIN, Floats, dequantise


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tensor:
    """A tensor of a weights file; nothing is read before it is asked for.

    `shape` is row-major, `type` a name such as "F32", "BF16", "I64" or "Q4_1", and `raw` the
    stored bytes, a read-only uint8 view of shape (bytes,) into the mapped file.
    """

    name: str
    type: str
    shape: tuple[int, ...]
    raw: npt.NDArray[np.uint8]

    def __repr__(self) -> str:
        return f"Tensor({self.name!r}, {self.type}, {self.shape})"

    def dequantised(self, out: Floats | None = None) -> Floats:
        """A new float32 array of `shape` (or `out`, filled). FormatError for integer types."""
        try:
            return dequantise(self.raw, self.type, self.shape, out)
        except FormatError as error:
            raise FormatError(f"tensor {self.name!r}: {error}") from None

    def numpy(self) -> npt.NDArray[Any]:
        """The tensor in its stored type, a read-only view; BF16 and quantised ones in float32."""
        if self.type not in PLAIN or self.type == "BF16":
            return self.dequantised()
        return self.raw.view(PLAIN[self.type]).reshape(self.shape)
