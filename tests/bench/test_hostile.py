"""The cost of hostile files is measured, and a file that is read or costly is noticed."""

import struct
from pathlib import Path

import pytest

from bench import hostile

VALID = b"GGUF" + struct.pack("<IQQ", 3, 0, 0)
GREEDY = VALID[:16] + struct.pack("<Q", 1) + struct.pack("<Q", 1) + b"k" + struct.pack(
    "<IIQ", 9, 0, 20_000_000) + bytes(20_000_000)
linux = pytest.mark.skipif(not hostile.REFS.exists(), reason="memory is read from Linux's /proc")


@linux
def test_outcome_time_and_memory_are_those_of_each_file(tmp_path):
    found = hostile.read("gguf", tmp_path, [("lie", b"GGUB"), ("large", GREEDY), ("true", VALID)])
    assert [(name, outcome) for name, outcome, _, _ in found] == [
        ("lie", "refused"), ("large", "refused"), ("true", "read")]
    assert all(seconds > 0 for _, _, seconds, _ in found)
    assert 0 <= found[0][3] < 5


@linux
def test_memory_beyond_the_start_is_seen(tmp_path):
    def reader(path: Path):
        held = bytearray(60 * 2**20)
        held[::4096] = b"x" * len(held[::4096])
        return {}

    outcome, _, grown = hostile.cost(reader, tmp_path)
    assert outcome == "read" and 55 < grown < 90


@linux
def test_a_file_that_is_read_or_costly_misses_a_bound(monkeypatch):
    monkeypatch.setattr(hostile, "read", lambda kind, folder, files: [
        (name, content.decode(), 2.5, 120.0) for name, content in files])
    kept = list(hostile.costs("gguf", [("a", b"refused")], [("b", b"read")]))
    assert [figure.ok for figure in kept] == [False, False, False]
    assert kept[0].measured == 1 and kept[0].bound == 2


def test_what_a_reader_raises_is_an_outcome_of_its_own(monkeypatch, tmp_path):
    def reader(path: Path):
        raise RecursionError("deep")

    monkeypatch.setattr(hostile, "resident", lambda: (0.0, 0.0))
    assert hostile.cost(reader, tmp_path)[0] == "RecursionError('deep')"
