"""A file as read-only bytes in memory, without reading it.

Knows nothing of what the bytes mean. A file that another program shortens while it is mapped
ends the process on the next read, as with every memory map.
"""
from __future__ import annotations

import mmap
import os
import stat
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unspool.core.errors import FormatError, ModelError

Bytes = npt.NDArray[np.uint8]

_FOREIGN = (
    (b"PK\x03\x04", "a zip archive (torch saves pickles that way)"),
    (b"\x80\x02", "a pickle"),
    (b"\x80\x03", "a pickle"),
    (b"\x80\x04", "a pickle"),
    (b"\x80\x05", "a pickle"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file it stands for"),
    (b"<!DOCTYPE", "a web page"),
    (b"<html", "a web page"),
    (b"\x89HDF", "an HDF5 file"),
)


def map_file(path: Path) -> Bytes:
    """The whole file as a read-only uint8 array of shape (size,), paged in on demand.

    Raises ModelError when it cannot be opened, FormatError when it is empty or not a plain file.
    """
    try:
        # Non-blocking, so that a pipe with the right name cannot hang the program.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelError(f"{path}: cannot be opened ({reason}): check the path") from None
    try:
        facts = os.fstat(handle)
        plain = stat.S_ISREG(facts.st_mode)
        view = mmap.mmap(handle, 0, access=mmap.ACCESS_READ) if plain and facts.st_size else b""
    except (OSError, ValueError, OverflowError) as error:
        raise ModelError(f"{path}: cannot be mapped into memory ({error}): check disk and memory"
                         ) from None
    finally:
        os.close(handle)
    if not plain:
        raise FormatError(f"{path}: not a plain file: give the path of a weights file")
    if not facts.st_size:
        raise FormatError(f"{path}: the file is empty: fetch it again")
    return np.frombuffer(view, dtype=np.uint8)


def foreign(start: bytes) -> str | None:
    """What a file that is no weights file is instead, read off its first bytes; None if unknown."""
    return next((what for magic, what in _FOREIGN if start.startswith(magic)), None)
