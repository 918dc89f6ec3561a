"""A bounded cursor over a GGUF header: numbers, strings and arrays.

Every length is checked against the bytes left and against a memory budget before anything is made
of it. Knows the format's value types and no keys.
"""
from __future__ import annotations

import struct
from pathlib import Path
from sys import getsizeof
from typing import Any

import numpy as np

from unspool.core.errors import FormatError
from unspool.files.mapped import Bytes

# Header and what Python makes of it. A vocabulary of 262,144 with 514,906 merges takes about 80 MB.
BUDGET = 90 * 2**20
LONGEST_STRING = 2**20  # chat templates stay under 100 kB

_SCALARS = {
    0: ("u8", "<B"), 1: ("i8", "<b"), 2: ("u16", "<H"), 3: ("i16", "<h"), 4: ("u32", "<I"),
    5: ("i32", "<i"), 6: ("f32", "<f"), 7: ("bool", "<B"), 10: ("u64", "<Q"), 11: ("i64", "<q"),
    12: ("f64", "<d"),
}
_STRING, _ARRAY = 8, 9


class Header:
    """A cursor over the file that checks room and budget before it takes anything."""

    def __init__(self, data: Bytes, path: Path) -> None:
        self.bytes = data.data
        self.path, self.size, self.at, self.left = path, len(data), 0, BUDGET

    def bad(self, what: str) -> FormatError:
        """The error to raise; what the file itself says is cut to a readable length."""
        return FormatError(f"{self.path}: {what[:300]} (at byte {self.at}): "
                           "the file is damaged, fetch or convert it again")

    def claim(self, memory: int, what: str) -> None:
        """Book memory, in bytes; refuses what the budget does not hold."""
        self.left -= memory
        if self.left < 0:
            raise self.bad(f"{what}: the header needs more than the {BUDGET >> 20} MiB allowed")

    def need(self, amount: int, what: str) -> None:
        if amount > self.size - self.at:
            raise self.bad(f"{what} takes {amount} bytes, {self.size - self.at} are left")

    def number(self, code: str, what: str) -> Any:
        self.need(struct.calcsize(code), what)
        (value,) = struct.unpack_from(code, self.bytes, self.at)
        self.at += struct.calcsize(code)
        return value

    def string(self, longest: int, what: str) -> str:
        length: int = self.number("<Q", f"length of {what}")
        self.need(length, what)
        if length > longest:
            raise self.bad(f"{what} is {length} bytes long, at most {longest} are allowed")
        self.claim(5 * length, what)
        try:
            # The format says UTF-8, and a vocabulary with broken text would fail in the tokenizer.
            text = str(self.bytes[self.at : self.at + length], "utf-8")
        except UnicodeDecodeError as error:
            raise self.bad(f"{what} is not UTF-8 ({error.reason})") from None
        self.at += length
        return text

    def value(self, key: str) -> tuple[Any, str]:
        """A value and the name of its type, such as "u32" or "[string]"."""
        kind = self.number("<I", f"type of key {key!r}")
        if kind == _STRING:
            return self.string(LONGEST_STRING, f"key {key!r}"), "string"
        if kind == _ARRAY:
            return self._array(key)
        if kind not in _SCALARS:
            raise self.bad(f"key {key!r} has type {kind}, which the format does not have")
        name, code = _SCALARS[kind]
        value = self.number(code, f"key {key!r}")
        if name == "bool" and value > 1:
            raise self.bad(f"key {key!r} is a bool of value {value}, it must be 0 or 1")
        return bool(value) if name == "bool" else value, name

    def _array(self, key: str) -> tuple[list[Any], str]:
        kind = self.number("<I", f"element type of key {key!r}")
        count: int = self.number("<Q", f"length of key {key!r}")
        if kind == _STRING:
            return self._strings(count, key), "[string]"
        if kind not in _SCALARS:
            raise self.bad(f"key {key!r} is an array of type {kind}, which is not supported")
        name, code = _SCALARS[kind]
        dtype = np.dtype(code)
        amount = count * dtype.itemsize
        self.need(amount, f"array {key!r} of {count} elements")
        values = np.frombuffer(self.bytes, dtype, count, self.at)
        self.claim(amount + count * 8, f"array {key!r}")
        # Small whole numbers are shared objects: a list of them costs its pointers.
        if dtype.kind == "f" or (count and not -6 < values.min() <= values.max() < 257):
            self.claim(count * 32, f"array {key!r}")
        if name == "bool" and count and values.max() > 1:
            raise self.bad(f"array {key!r} of bools must hold 0 or 1")
        self.at += amount
        return (values.astype(bool) if name == "bool" else values).tolist(), f"[{name}]"

    def _strings(self, count: int, key: str) -> list[str]:
        what = f"array {key!r} of {count} strings"
        self.need(8 * count, what)
        self.claim(16 * count, what)
        length_at, data, at = struct.Struct("<Q").unpack_from, self.bytes, self.at
        texts: list[str] = []
        booked, fence = 0, self._fence(at)
        try:
            for _ in range(count):
                start = at + 8
                at = start + length_at(data, at)[0]
                if at > fence:
                    self.claim(sum(map(getsizeof, texts[booked:])) + start - self.at, what)
                    booked, self.at = len(texts), start
                    self.need(at - start, f"string in array {key!r}")
                    if at - start > LONGEST_STRING:
                        raise self.bad(f"array {key!r} holds a string of {at - start} bytes, "
                                       f"at most {LONGEST_STRING} are allowed")
                    fence = max(at, self._fence(start))
                texts.append(str(data[start:at], "utf-8"))
        except UnicodeDecodeError as error:
            raise self.bad(f"array {key!r} holds text that is not UTF-8 ({error.reason})") from None
        except struct.error:
            raise self.bad(f"{what} ends too early") from None
        self.claim(sum(map(getsizeof, texts[booked:])) + at - self.at, what)
        self.at = at
        return texts

    def _fence(self, at: int) -> int:
        """Up to where strings may be read before the memory they took is booked."""
        return min(self.size, at + 2**18)
