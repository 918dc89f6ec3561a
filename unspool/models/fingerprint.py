"""A name for a model's numbers: equal models get equal names, and changed weights another one.

Small tensors are hashed whole; of a large one, pages spread over it and the sum of all its 64-bit
words, so that any one change shows and a second of loading does not turn into ten.
"""
from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import torch
from torch import Tensor

WHOLE = 2**18  # bytes hashed without leaving any out
PAGES, PAGE = 16, 4096


def fingerprint(facts: object, weights: Iterable[tuple[str, Tensor]]) -> str:
    """32 hex digits from `facts` (by its repr, such as a config) and named tensors."""
    digest = sha256(repr(facts).encode())
    for name, tensor in weights:
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        data = tensor.detach().contiguous().view(-1).view(torch.uint8)
        if len(data) <= WHOLE:
            digest.update(data.cpu().numpy().tobytes())
            continue
        step = (len(data) - PAGE) // (PAGES - 1)
        for page in range(PAGES):
            digest.update(data[page * step :][:PAGE].cpu().numpy().tobytes())
        words = data[: len(data) // 8 * 8].view(torch.int64)
        # torch's threads wait for each other at every tensor, which on a busy CPU costs a second
        total = words.numpy().sum() if words.device.type == "cpu" else words.sum()
        digest.update(str(int(total)).encode())
    return digest.hexdigest()[:32]
