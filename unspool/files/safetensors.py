"""Reads safetensors weights, one file or several named by an index; bounded and memory-mapped.

A file is a u64 header length, a JSON header and the data, which the tensors must fill exactly:
no gap, no overlap, nothing left over. Knows nothing of configs or models. The format:
huggingface/safetensors, README.
"""
from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

from unspool.core.errors import FormatError
from unspool.files.mapped import Bytes, foreign, map_file
from unspool.files.quants import PLAIN
from unspool.files.strict_json import LARGEST, parse_object, read_object
from unspool.files.tensor import Tensor

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
MOST_DIMS = 64  # numpy's limit


def read_safetensors(path: str | Path) -> Mapping[str, Tensor]:
    """Tensors by name from a .safetensors file, an index file, or a folder that holds either.

    Tensor data stays on disk until it is asked for. Raises ModelError when a file is missing,
    FormatError when one is damaged, hostile, or lies outside the folder of its index.
    """
    path = Path(path)
    if path.is_dir():
        path = within(path, SINGLE if (path / SINGLE).exists() else INDEX)
    if path.name.endswith(".json"):
        return _read_shards(path)
    return _read_file(path)


def within(folder: Path, name: str) -> Path:
    """The path of a file named by a model folder, when it is a plain name and truly lies inside.

    A hub's cache is the one case in which links may leave the folder: there `snapshots/REVISION`
    links to `blobs` beside `snapshots`. Raises FormatError otherwise.
    """
    plain = name == Path(name).name and "\\" not in name and "\0" not in name
    if not plain or name in ("", ".", ".."):
        raise FormatError(f"{folder}: file name {_cut(name)} must be a plain name in the folder: "
                          "fetch the model again")
    path = folder / name
    root = folder.resolve()
    home = root.parent.parent / "blobs" if root.parent.name == "snapshots" else root
    try:
        real = path.resolve(strict=path.is_symlink())
    except (OSError, RuntimeError) as error:
        raise FormatError(f"{path}: the link leads nowhere ({error}): fetch the file") from None
    if not (real.is_relative_to(root) or real.is_relative_to(home)):
        raise FormatError(f"{path}: a link that leaves the model's folder: copy the file into it")
    return path


def _read_shards(index: Path) -> dict[str, Tensor]:
    weight_map = read_object(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise FormatError(f"{index}: no weight_map: fetch the file again")
    by_file: dict[str, set[str]] = {}
    for tensor, file in weight_map.items():
        if not isinstance(file, str) or not file.endswith(".safetensors"):
            raise FormatError(f"{index}: tensor {_cut(tensor)} is mapped to {_cut(str(file))}, "
                              "it must be the name of a .safetensors file: fetch the file again")
        by_file.setdefault(file, set()).add(tensor)
    paths = {file: within(index.parent, file) for file in by_file}  # all, before any is opened
    tensors: dict[str, Tensor] = {}
    for file, names in sorted(by_file.items()):
        found = _read_file(paths[file])
        if found.keys() != names:
            name = min(found.keys() ^ names)
            where = "holds a tensor that is not mapped to it" if name in found else "lacks tensor"
            raise FormatError(f"{index}: {file} {where} {_cut(name)}: fetch the model again")
        tensors.update(found)
    return tensors


def _read_file(path: Path) -> dict[str, Tensor]:
    data = map_file(path)
    header, base = _header(data, path)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise _bad(path, "__metadata__ must map names to strings")
    size = len(data) - base
    spans = sorted((*_checked(path, name, entry, size), name) for name, entry in header.items())
    place = 0
    for begin, end, _, _, name in spans:
        if begin != place:
            what = "overlaps the one before" if begin < place else f"leaves a gap after {place}"
            raise _bad(path, f"tensor {_cut(name)} starts at {begin} and {what}")
        place = end
    if place != size:
        raise _bad(path, f"the tensors end at byte {place} of {size} bytes of data")
    found = {name: Tensor(name, type, shape, data[base + begin : base + end])
             for begin, end, type, shape, name in spans}
    return {name: found[name] for name in header}


def _header(data: Bytes, path: Path) -> tuple[dict[str, Any], int]:
    """The parsed header and where the data begins."""
    start = data[:64].tobytes()
    length = int.from_bytes(start[:8], "little")
    fits = 2 <= length <= len(data) - 8 and start[8:9] == b"{"
    # A good header's length may begin with another format's magic, so that is asked second.
    if not fits and (what := foreign(start)):
        raise FormatError(f"{path}: not a safetensors file, but {what}: "
                          "convert the weights to safetensors, pickles are never read")
    if len(data) < 10 or not 2 <= length <= len(data) - 8:
        raise _bad(path, f"header length {length} does not fit a file of {len(data)} bytes")
    if length > LARGEST:
        raise _bad(path, f"header length {length}, at most {LARGEST} are read")
    if data[8] != ord("{"):
        raise _bad(path, "the header does not start with {")
    return parse_object(data[8 : 8 + length].tobytes(), f"{path}, header"), 8 + length


def _checked(
    path: Path, name: str, entry: object, size: int
) -> tuple[int, int, str, tuple[int, ...]]:
    """Begin, end, type and shape of one header entry."""
    what = f"tensor {_cut(name)}"
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise _bad(path, f"{what} must have dtype, shape and data_offsets, nothing else")
    type, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(type, str) or type not in PLAIN:
        raise FormatError(f"{path}: {what} has type {_cut(str(type))}, which is not read here: "
                          f"convert it to one of {', '.join(PLAIN)}")
    if not _counts(shape) or len(shape) > MOST_DIMS:
        raise _bad(path, f"{what} has shape {str(shape)[:80]}")
    if not _counts(offsets) or len(offsets) != 2 or not offsets[0] <= offsets[1] <= size:
        raise _bad(path, f"{what} has offsets {str(offsets)[:80]} in {size} bytes of data")
    begin, end = offsets
    if prod(shape) * PLAIN[type].itemsize != end - begin:
        raise _bad(path, f"{what}: {type} of shape {str(shape)[:80]} does not take "
                         f"{end - begin} bytes")
    return begin, end, type, tuple(shape)


def _counts(value: object) -> bool:
    """Whether a JSON value is a list of whole numbers that fit 63 bits."""
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 2**63 for n in value)


def _bad(path: Path, what: str) -> FormatError:
    return FormatError(f"{path}: {what}: the file is damaged, fetch or convert it again")


def _cut(text: str) -> str:
    """A text out of the file, quoted, at a length that a message can hold."""
    return repr(text[:120])
