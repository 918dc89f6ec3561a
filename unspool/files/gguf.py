"""Reads GGUF files, versions 2 and 3, little-endian: metadata and tensors.

Every count and size is checked against the bytes left and against a memory budget before anything
is made of it, so a damaged or hostile file costs an error and not the machine. Knows nothing of
what the keys mean, beyond the types that the well-known ones must have. The format: ggml's gguf.md.
"""
from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from unspool.core.errors import FormatError
from unspool.files.gguf_header import Header
from unspool.files.mapped import Bytes, foreign, map_file
from unspool.files.quants import PLAIN, QUANTISED, span
from unspool.files.tensor import Tensor

GGUFTensor = Tensor
T = TypeVar("T")
_Info = tuple[str, str, tuple[int, ...], int]

LONGEST_KEY = 65_535  # the format's own limit
LONGEST_NAME = 1_024
LARGEST_ALIGNMENT = 2**16
MOST_DIMS = 4

_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1",
    10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS",
    17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S",
    23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 30: "BF16",
    34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4",
}

# A key that readers index or compare with: another type would surface far from here.
_EXPECTED = {
    "general.alignment": ("u32",),
    "general.architecture": ("string",),
    "tokenizer.chat_template": ("string",),
    "tokenizer.ggml.model": ("string",),
    "tokenizer.ggml.pre": ("string",),
    "tokenizer.ggml.tokens": ("[string]",),
    "tokenizer.ggml.merges": ("[string]",),
    "tokenizer.ggml.scores": ("[f32]",),
    "tokenizer.ggml.token_type": ("[i32]", "[u32]"),
    "tokenizer.ggml.bos_token_id": ("u32",),
    "tokenizer.ggml.eos_token_id": ("u32",),
    "tokenizer.ggml.add_bos_token": ("bool",),
    "tokenizer.ggml.add_space_prefix": ("bool",),
}


@dataclass(frozen=True, slots=True, eq=False)
class GGUF:
    """A GGUF file: `metadata` (arrays are lists) and `tensors` by name, in the file's order."""

    path: Path
    version: int
    metadata: dict[str, Any]
    tensors: dict[str, GGUFTensor]

    def field(self, key: str, kind: type[T], default: T | None = None) -> T:
        """The metadata value of a key, checked to be a `kind` (int, float, bool, str or list).

        Raises FormatError when it is of another kind, or missing without a default.
        """
        value = self.metadata.get(key, default)
        if value is None:
            raise FormatError(f"{self.path}: key {key!r} is missing: the file is incomplete")
        # bool is an int to Python, and whole numbers may stand where a float is meant.
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            raise FormatError(f"{self.path}: key {key!r} must hold {kind.__name__}, "
                              f"not {type(value).__name__}: convert the model again")
        return value


def _metadata(header: Header, count: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    header.need(13 * count, f"a count of {count} keys")
    for _ in range(count):
        key = header.string(LONGEST_KEY, "a key")
        if not key:
            raise header.bad("a key is empty")
        if key in metadata:
            raise header.bad(f"key {key!r} occurs twice")
        header.claim(1024, "metadata")
        value, kind = header.value(key)
        if kind not in _EXPECTED.get(key, (kind,)):
            raise header.bad(f"key {key!r} is {kind}, it must be {' or '.join(_EXPECTED[key])}")
        metadata[key] = value
    return metadata


def _tensor_info(header: Header) -> _Info:
    """Name, type, row-major shape and offset."""
    name = header.string(LONGEST_NAME, "a tensor name")
    if not name:
        raise header.bad("a tensor name is empty")
    dims = header.number("<I", f"rank of tensor {name!r}")
    if dims > MOST_DIMS:
        raise header.bad(f"tensor {name!r} has {dims} dimensions, at most {MOST_DIMS} are allowed")
    shape = tuple(header.number("<Q", f"shape of tensor {name!r}") for _ in range(dims))[::-1]
    if 0 in shape:
        raise header.bad(f"tensor {name!r} has an empty dimension in shape {shape}")
    kind = header.number("<I", f"type of tensor {name!r}")
    if kind not in _TYPES:
        raise header.bad(f"tensor {name!r} has type {kind}, which the format does not have")
    if _TYPES[kind] not in PLAIN and _TYPES[kind] not in QUANTISED:
        known = ", ".join(t for t in _TYPES.values() if t in PLAIN or t in QUANTISED)
        raise FormatError(f"{header.path}: tensor {name[:120]!r} is stored as {_TYPES[kind]}, "
                          f"which is not read here: get a file in one of {known}")
    return name, _TYPES[kind], shape, header.number("<Q", f"offset of tensor {name!r}")


def _tensors(header: Header, data: Bytes, count: int, alignment: int) -> dict[str, GGUFTensor]:
    header.need(24 * count, f"a count of {count} tensors")
    infos: dict[str, _Info] = {}
    for _ in range(count):
        header.claim(2048, "tensors")
        info = _tensor_info(header)
        if info[0] in infos:
            raise header.bad(f"tensor {info[0]!r} occurs twice")
        infos[info[0]] = info
    base = -(-header.at // alignment) * alignment
    tensors, end, previous = {}, 0, ""
    for name, kind, shape, offset in sorted(infos.values(), key=itemgetter(3)):
        try:
            amount = span(kind, shape)
        except FormatError as error:
            raise header.bad(f"tensor {name!r}: {error}") from None
        if offset % alignment:
            raise header.bad(f"tensor {name!r} starts at {offset}, no multiple of {alignment}")
        if offset < end:
            raise header.bad(f"tensors {previous!r} and {name!r} overlap")
        end, previous = offset + amount, name
        if base + end > header.size:
            raise header.bad(f"tensor {name!r} of shape {shape} ends at byte {base + end}, "
                             f"the file at {header.size}")
        tensors[name] = Tensor(name, kind, shape, data[base + offset : base + end])
    return {name: tensors[name] for name in infos}


def _opening(header: Header) -> tuple[int, int, int]:
    """Version, tensor count and key count."""
    start = bytes(header.bytes[:24])
    if start[:4] != b"GGUF":
        what = foreign(start) or f"it starts with {start[:4]!r}"
        raise FormatError(f"{header.path}: not a GGUF file, but {what}: give a GGUF file")
    header.at = 4
    version = header.number("<I", "the version")
    if version & 0xFFFF == 0:
        raise FormatError(f"{header.path}: a big-endian GGUF: convert it to little-endian")
    if version not in (2, 3):
        raise FormatError(f"{header.path}: GGUF version {version}, only 2 and 3 are read: "
                          "convert the model again")
    return version, header.number("<Q", "tensor count"), header.number("<Q", "key count")


def read_gguf(path: str | Path) -> GGUF:
    """The metadata and tensors of a GGUF file; tensor data stays on disk until it is asked for.

    Raises ModelError when the file cannot be opened, FormatError when it is damaged, hostile, of
    another version or byte order, holds number formats that are not read here, or is no whole
    model (one part of a split file, an adapter).
    """
    path = Path(path)
    data = map_file(path)
    header = Header(data, path)
    version, tensor_count, key_count = _opening(header)
    metadata = _metadata(header, key_count)
    alignment = metadata.get("general.alignment", 32)
    if not 8 <= alignment <= LARGEST_ALIGNMENT or alignment & (alignment - 1):
        raise header.bad(f"alignment {alignment} is no power of two in 8..{LARGEST_ALIGNMENT}")
    if metadata.get("split.count", 1) not in (0, 1):
        raise FormatError(f"{path}: one of {metadata['split.count']} parts of a model: "
                          "merge them with gguf-split --merge and give the whole file")
    if metadata.get("general.type", "model") == "adapter":
        raise FormatError(f"{path}: an adapter, not a model: merge it into its base model")
    return GGUF(path, version, metadata, _tensors(header, data, tensor_count, alignment))
