"""Number formats of weights files: how many bytes they take, and their values as float32.

Layouts follow ggml's block formats: a block is a little-endian record of scales and packed
integers, and a value is computed in float32 in ggml's order of operations, so that results are
equal bit for bit. Knows nothing of files or tensor names.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from unspool.core.errors import FormatError

Floats = npt.NDArray[np.float32]
Blocks = npt.NDArray[Any]  # structured: one record per block
Decoder = Callable[[Blocks, Floats], None]

CHUNK = 32_768  # values decoded at a time: the temporaries stay in the cache

PLAIN: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"), "F32": np.dtype("<f4"), "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),  # numpy has no bfloat16: the stored bits
    "I64": np.dtype("<i8"), "I32": np.dtype("<i4"), "I16": np.dtype("<i2"), "I8": np.dtype("i1"),
    "U64": np.dtype("<u8"), "U32": np.dtype("<u4"), "U16": np.dtype("<u2"), "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
FLOATS = ("F64", "F32", "F16", "BF16")

_D, _M, _H = ("d", "<f2"), ("m", "<f2"), ("h", "<u4")
_Q = ("q", "u1", 16)
_K = [_D, _M, ("scales", "u1", 12)]


def _scale(field: npt.NDArray[Any]) -> Floats:
    return field.astype(np.float32)[:, None]


def _nibbles(q: npt.NDArray[np.uint8], out: npt.NDArray[np.uint8]) -> None:
    """(..., g, b) bytes -> (..., g, 2, b) values: the low halves, then the high halves."""
    np.bitwise_and(q, 15, out=out[..., 0, :])
    np.right_shift(q, 4, out=out[..., 1, :])


def _four_bits(blocks: Blocks) -> npt.NDArray[np.uint8]:
    """(n, 32) unsigned 4-bit values."""
    q = np.empty((len(blocks), 2, 16), np.uint8)
    _nibbles(blocks["q"], q)
    return q.reshape(-1, 32)


def _five_bits(blocks: Blocks) -> npt.NDArray[np.uint8]:
    """(n, 32) unsigned 5-bit values: bit i of `h` is the fifth bit of value i."""
    q = _four_bits(blocks)
    high = np.ascontiguousarray(blocks["h"]).view(np.uint8).reshape(-1, 4)
    q |= np.unpackbits(high, axis=1, bitorder="little") << 4
    return q


def _centred(q: npt.NDArray[Any], centre: int) -> npt.NDArray[np.int8]:
    signed = q.view(np.int8)
    signed -= np.int8(centre)
    return signed


def _q4_0(blocks: Blocks, out: Floats) -> None:
    np.multiply(_scale(blocks["d"]), _centred(_four_bits(blocks), 8), out=out)


def _q4_1(blocks: Blocks, out: Floats) -> None:
    np.multiply(_scale(blocks["d"]), _four_bits(blocks), out=out)
    out += _scale(blocks["m"])


def _q5_0(blocks: Blocks, out: Floats) -> None:
    np.multiply(_scale(blocks["d"]), _centred(_five_bits(blocks), 16), out=out)


def _q5_1(blocks: Blocks, out: Floats) -> None:
    np.multiply(_scale(blocks["d"]), _five_bits(blocks), out=out)
    out += _scale(blocks["m"])


def _q8_0(blocks: Blocks, out: Floats) -> None:
    np.multiply(_scale(blocks["d"]), blocks["q"], out=out)


def _k_scales(blocks: Blocks) -> tuple[Floats, Floats]:
    """(n, 8) scales and minima of the sub-blocks, from 12 bytes of packed 6-bit numbers.

    Bytes 0-3 and 4-7: the low 6 bits are scale and minimum of sub-blocks 0-3; their top 2 bits
    are the high bits for sub-blocks 4-7, whose low 4 bits are the halves of bytes 8-11.
    """
    packed = blocks["scales"].reshape(-1, 3, 4)
    first, second, low = packed[:, 0], packed[:, 1], packed[:, 2]
    scales = np.concatenate([first & 63, (low & 15) | (first >> 6 << 4)], axis=1)
    minima = np.concatenate([second & 63, (low >> 4) | (second >> 6 << 4)], axis=1)
    return (_scale(blocks["d"]) * scales.astype(np.float32),
            _scale(blocks["m"]) * minima.astype(np.float32))


def _k_values(blocks: Blocks, q: npt.NDArray[Any], out: Floats) -> None:
    scales, minima = _k_scales(blocks)
    values = out.reshape(-1, 8, 32)
    np.multiply(scales[..., None], q.reshape(-1, 8, 32), out=values)
    values -= minima[..., None]


def _k_nibbles(blocks: Blocks) -> npt.NDArray[np.uint8]:
    q = np.empty((len(blocks), 4, 2, 32), np.uint8)
    _nibbles(blocks["q"].reshape(-1, 4, 32), q)
    return q


def _q4_k(blocks: Blocks, out: Floats) -> None:
    _k_values(blocks, _k_nibbles(blocks), out)


def _q5_k(blocks: Blocks, out: Floats) -> None:
    shifts = np.arange(8, dtype=np.uint8).reshape(8, 1)
    fifth = ((blocks["h"][:, None] >> shifts) & 1) << 4
    _k_values(blocks, _k_nibbles(blocks).reshape(-1, 8, 32) | fifth, out)


def _q6_k(blocks: Blocks, out: Floats) -> None:
    """Two halves of 128 values: 64 bytes of low nibbles, 32 bytes of 2-bit tops, each."""
    q = np.empty((len(blocks), 2, 2, 64), np.uint8)
    _nibbles(blocks["low"].reshape(-1, 2, 64), q)
    shifts = np.array([0, 2, 4, 6], np.uint8).reshape(4, 1)
    top = ((blocks["high"].reshape(-1, 2, 1, 32) >> shifts) & 3) << 4
    signed = _centred(q.reshape(-1, 2, 4, 32) | top, 32)
    scales = _scale(blocks["d"]) * blocks["scales"].astype(np.float32)
    np.multiply(scales[..., None], signed.reshape(-1, 16, 16), out=out.reshape(-1, 16, 16))


@dataclass(frozen=True, slots=True)
class _Format:
    values: int  # per block
    layout: np.dtype[Any]
    decode: Decoder


QUANTISED: dict[str, _Format] = {
    "Q4_0": _Format(32, np.dtype([_D, _Q]), _q4_0),
    "Q4_1": _Format(32, np.dtype([_D, _M, _Q]), _q4_1),
    "Q5_0": _Format(32, np.dtype([_D, _H, _Q]), _q5_0),
    "Q5_1": _Format(32, np.dtype([_D, _M, _H, _Q]), _q5_1),
    "Q8_0": _Format(32, np.dtype([_D, ("q", "i1", 32)]), _q8_0),
    "Q4_K": _Format(256, np.dtype([*_K, ("q", "u1", 128)]), _q4_k),
    "Q5_K": _Format(256, np.dtype([*_K, ("h", "u1", 32), ("q", "u1", 128)]), _q5_k),
    "Q6_K": _Format(256, np.dtype([("low", "u1", 128), ("high", "u1", 64),
                                   ("scales", "i1", 16), _D]), _q6_k),
}


def span(type: str, shape: Sequence[int]) -> int:
    """Bytes that a row-major tensor of this type and shape takes.

    Raises FormatError for an unknown type, or when a row is not a whole number of blocks.
    """
    if type in PLAIN:
        return prod(shape) * PLAIN[type].itemsize
    if type not in QUANTISED:
        known = ", ".join([*FLOATS, *QUANTISED])
        raise FormatError(f"number format {type!r} cannot be read: convert it to one of {known}")
    block = QUANTISED[type]
    row = shape[-1] if shape else 1
    if row % block.values:
        raise FormatError(
            f"{type} rows must be a multiple of {block.values} values, not {row}: "
            "the file is damaged, fetch it again"
        )
    return prod(shape) // block.values * block.layout.itemsize


def dequantise(
    raw: npt.NDArray[np.uint8], type: str, shape: Sequence[int], out: Floats | None = None
) -> Floats:
    """The values of a tensor in float32, of `shape`, written into `out` when it is given.

    `raw`: (bytes,) uint8, as stored. F64 is rounded to float32. Raises FormatError for integer and
    unknown types, and when `raw` or `out` does not fit the shape.
    """
    if len(raw) != span(type, shape):
        raise FormatError(f"{type} of shape {tuple(shape)} takes {span(type, shape)} bytes, "
                          f"not {len(raw)}: the file is damaged, fetch it again")
    if out is None:
        out = np.empty(tuple(shape), np.float32)
    if out.shape != tuple(shape) or out.dtype != np.float32 or not out.flags.c_contiguous:
        raise FormatError(f"out must be contiguous float32 of shape {tuple(shape)}, "
                          f"not {out.dtype} {out.shape}: make it with numpy.empty")
    if type in QUANTISED:
        _decode(raw, QUANTISED[type], out)
    elif type == "BF16":
        np.left_shift(raw.view("<u2").reshape(shape), np.uint32(16), out=out.view(np.uint32))
    elif type in FLOATS:
        np.copyto(out, raw.view(PLAIN[type]).reshape(shape), casting="same_kind")
    else:
        raise FormatError(f"{type} holds no real numbers: read it with numpy()")
    return out


def _decode(raw: npt.NDArray[np.uint8], block: _Format, out: Floats) -> None:
    blocks = raw.view(block.layout)
    values = out.reshape(-1, block.values)
    step = CHUNK // block.values
    with np.errstate(all="ignore"):  # damaged scales may be inf or nan; so are the values then
        for start in range(0, len(blocks), step):
            block.decode(blocks[start : start + step], values[start : start + step])
