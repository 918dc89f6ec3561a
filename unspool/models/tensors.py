"""What the torch models share: the scores of a forward, and their numbers as numpy arrays.

It knows no model.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from unspool.kernels import reference
from unspool.models.planes import Planes


class Rows:
    """Scores of a forward that has been computed, or runs on its device.

    Hidden states and inner logits, see `planes`, come as arrays of float32 or float64.
    """

    def __init__(self, logits: Tensor, planes: Planes) -> None:
        self.logits, self._planes = logits, planes

    def rows(self) -> Any:
        """[wanted tokens, vocabulary]: a numpy view on the CPU, the tensor elsewhere."""
        return self.logits.numpy() if self.logits.device.type == "cpu" else self.logits

    def hidden(self, span: int) -> npt.NDArray[Any]:
        """[rows, width], a copy: the last hidden states of a span that asked for them."""
        return copied(self._planes.hidden(span))

    def similarity(self, span: int) -> list[float]:
        """[rows]: the largest cosine of each of these states with those of all tokens before."""
        return reference.similarity(self._planes.text(span), self._planes.spans[span].rows)

    def inner(self, span: int, layer: int) -> npt.NDArray[Any]:
        """[rows, vocab], a copy: the logits of an inner layer that the span asked for."""
        return copied(self._planes.logits(span, layer))


def copied(tensor: Tensor) -> npt.NDArray[Any]:
    """An array of its own, in float32 at least."""
    wide = torch.promote_types(tensor.dtype, torch.float32)
    return tensor.detach().to("cpu", wide, copy=True).numpy()


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
