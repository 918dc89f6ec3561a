"""What the torch models share: the scores of a forward, and their numbers as numpy arrays.

It knows no model.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor


class Rows:
    """Scores of a forward that has been computed, or runs on its device."""

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits

    def rows(self) -> Any:
        """[wanted tokens, vocabulary]: a numpy view on the CPU, the tensor elsewhere."""
        return self.logits.numpy() if self.logits.device.type == "cpu" else self.logits


def as_arrays(named: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Each tensor on the host, one after the other, views where it lies there already.

    A type that numpy lacks, such as bfloat16, is given by its bytes, and its name joins the
    tensor's.
    """
    for name, tensor in named:
        there = tensor.detach().cpu()
        try:
            yield name, there.numpy()
        except TypeError:
            whole = there.contiguous()
            plain = whole.view(-1).view(torch.uint8).view(*whole.shape, whole.element_size())
            yield f"{name} {whole.dtype}", plain.numpy()
