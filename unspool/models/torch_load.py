"""The part of loading that needs torch: its devices, and a decoder of our own families in it.

Imported only when a model or a device asks for it. It knows neither files nor who decides.
"""
from __future__ import annotations

from collections.abc import Mapping

import torch

from unspool.core.errors import ParameterError
from unspool.models.config import Config
from unspool.models.decoder import Decoder
from unspool.models.fingerprint import fingerprint
from unspool.models.tensors import as_arrays
from unspool.models.weights import Array


def load(
    config: Config,
    arrays: Mapping[str, Array],
    *,
    device: str,
    dtype: str,
    numerics: str,
    notes: tuple[str, ...],
) -> Decoder:
    """A decoder of `arrays`, under transformers' names, in `dtype` on `device`.

    `numerics` is what it calls its numbers. Its fingerprint does not depend on the device.
    """
    kind = getattr(torch, dtype)
    weights = {name: torch.from_numpy(array).to(kind) for name, array in arrays.items()}
    mark = fingerprint(config, as_arrays(weights.items()))
    on_device = {name: tensor.to(device) for name, tensor in weights.items()}
    model = Decoder(config, on_device, mark, notes)
    model.numerics = numerics
    return model


def best_device() -> str:
    """cuda, mps or cpu, the first there is."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def usable(device: str) -> str:
    """The device, by its name. Raises ParameterError for one that is not there."""
    try:
        if torch.empty(0, device=device).is_meta:
            raise RuntimeError("it holds no numbers")
    except (RuntimeError, AssertionError, TypeError) as error:
        first = str(error).splitlines()[0]
        raise ParameterError(
            f"device = {device!r} cannot be used ({first}): try 'cpu'", "device"
        ) from None
    return str(device)
