"""Safetensors files: real ones as the library reads them, hostile ones refused."""
import json
import os
import pickle
import random
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from unspool.core.errors import FormatError, ModelError
from unspool.files.safetensors import INDEX, read_safetensors, within

library = pytest.importorskip("safetensors", reason="the safetensors library is the oracle here")
ROOT = Path(__file__).parents[2]
F32x2 = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def file(header, data=bytes(8), length=None):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + data


def entry(name="w", data=bytes(8), **changes):
    return file({name: {**F32x2, **changes}}, data)


def other(begin, end):
    return {"dtype": "F32", "shape": [(end - begin) // 4], "data_offsets": [begin, end]}


TWICE = b'{"w":%s,"w":%s}' % ((json.dumps(F32x2).encode(),) * 2)

HOSTILE = {
    "empty": (b"", "empty"),
    "seven bytes": (bytes(7), "header length 0 does not fit a file of 7"),
    "length 0": (file({}, length=0), "header length 0"),
    "length 1": (file({}, length=1), "header length 1"),
    "length past the end": (file({}, b"", length=3), "header length 3 does not fit"),
    "length 2^63": (file({}, length=2**63), "header length 9223372036854775808"),
    "length -1": (file({}, length=2**64 - 1), "header length 18446744073709551615"),
    "a pickle": (pickle.dumps({"w": list(range(99))}), "a pickle.*pickles are never read"),
    "a zip": (b"PK\x03\x04" + bytes(99), "zip archive"),
    "not JSON": (file(b"{hello}"), "header: not valid JSON"),
    "a list": (file(b"[1]"), "does not start with {"),
    "leading space": (file(b" {}", b""), "does not start with {"),
    "not UTF-8": (file(b'{"\xff":1}'), "not valid JSON"),
    "NaN": (file(b'{"w":NaN}'), "NaN"),
    "deep": (file(b'{"w":' + b"[" * 90_000 + b"]" * 90_000 + b"}"), "nested too deeply"),
    "name twice": (file(TWICE), "name 'w' occurs twice"),
    "field twice": (file(b'{"w":{"dtype":"F32","dtype":"F32"}}'), "'dtype' occurs twice"),
    "entry is a number": (file({"w": 3}), "must have dtype, shape and data_offsets"),
    "field missing": (file({"w": {"dtype": "F32", "shape": [2]}}), "must have dtype"),
    "field too many": (entry(strides=[1]), "nothing else"),
    "metadata a list": (file({"__metadata__": [], "w": F32x2}), "__metadata__ must map"),
    "metadata of numbers": (file({"__metadata__": {"a": 1}, "w": F32x2}), "names to strings"),
    "unknown type": (entry(dtype="F12"), "'w' has type 'F12'.*convert it to one of F64"),
    "type not read here": (entry(dtype="F8_E4M3", shape=[8]), "'F8_E4M3'"),
    "type a number": (entry(dtype=1), "has type '1'"),
    "type a list": (entry(dtype=["F32"]), "has type"),
    "shape negative": (entry(shape=[-2]), "has shape"),
    "shape of floats": (entry(shape=[2.0]), "has shape"),
    "shape of bools": (entry(shape=[True, 2]), "has shape"),
    "shape a number": (entry(shape=2), "has shape 2"),
    "shape of 100 dimensions": (entry(shape=[1] * 100), "has shape"),
    "shape wraps": (entry(shape=[2**62, 2**62]), "does not take"),
    "bytes wrap to 8": (entry(shape=[2**62 + 2]), "does not take 8 bytes"),
    "shape of 2^64": (entry(shape=[2**64]), "has shape"),
    "shape too small": (entry(shape=[1]), "does not take 8 bytes"),
    "shape too large": (entry(shape=[3]), "does not take 8 bytes"),
    "type too large": (entry(dtype="F64"), "does not take 8 bytes"),
    "begin after end": (entry(data_offsets=[8, 0]), "has offsets"),
    "begin negative": (entry(data_offsets=[-8, 0]), "has offsets"),
    "past the end": (entry(data_offsets=[0, 16], shape=[4]), "in 8 bytes of data"),
    "end of 2^63": (entry(data_offsets=[0, 2**63]), "has offsets"),
    "three offsets": (entry(data_offsets=[0, 4, 8]), "has offsets"),
    "offsets of text": (entry(data_offsets=["0", "8"]), "has offsets"),
    "truncated": (entry(data=bytes(7)), "in 7 bytes of data"),
    "left over": (entry(data=bytes(9)), "end at byte 8 of 9"),
    "data without tensors": (file({}), "end at byte 0 of 8"),
    "gap before": (entry(data=bytes(16), data_offsets=[8, 16]), "leaves a gap after 0"),
    "gap between": (file({"a": other(0, 4), "b": other(8, 12)}, bytes(12)), "gap after 4"),
    "overlap": (file({"a": other(0, 8), "b": other(4, 12)}, bytes(12)), "'b'.*overlaps"),
    "same place": (file({"a": other(0, 8), "b": other(0, 8)}), "overlaps"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_for_the_right_reason(name, tmp_path):
    content, said = HOSTILE[name]
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    for given in (path, tmp_path):
        with pytest.raises(FormatError, match=said) as caught:
            read_safetensors(given)
        message = str(caught.value)
        assert str(path) in message and "\n" not in message and len(message) < 700


def greedy_headers():
    yield "100 MB", b'{"w":"' + b"a" * 100_000_000 + b'"}'
    yield "objects", b'{"w":[' + b"{}," * 3_000_000 + b"1]}"
    yield "numbers", b'{"w":[' + b"0.5," * 3_000_000 + b"1]}"
    yield "wide text", b'{"w":"' + "a\U0001f600".encode() * 3_000_000 + b'"}'
    yield "escapes", b'{"w":"' + b"\\ud83d\\ude00aaaa" * 900_000 + b'"}'
    yield "names", b"{" + b",".join(b'"%d":0' % i for i in range(1_200_000)) + b"}"
    # within the budget, and then refused for what they say
    yield "many objects", b'{"w":[' + b"{}," * 700_000 + b"1]}"
    yield "many names", b"{" + b",".join(b'"%d":0' % i for i in range(320_000)) + b"}"
    yield "much text", b'{"w":"' + b"a" * 16_000_000 + b'"}'
    yield "much wide text", b'{"w":"' + "a\U0001f600".encode() * 2_000_000 + b'"}'
    yield "a long name", b'{"' + b"\x7f" * 16_000_000 + b'":0}'
    yield "a long shape", b'{"w":{"dtype":"U8","data_offsets":[0,7],"shape":[%s]}}' % (
        b"1," * 1_700_000 + b"1")


def test_greedy_headers_cost_little(read_limited, tmp_path):
    for name, header in greedy_headers():
        path = tmp_path / name
        path.write_bytes(file(header, bytes(7)))
        [(outcome, _)] = read_limited("safetensors", [path], cpu_s=4).values()
        assert outcome.startswith("refused"), (name, outcome)
        path.unlink()


def test_fifty_thousand_tensors_in_a_file_are_within_the_budget(read_limited, tmp_path):
    header = b"{%s}" % b",".join(
        b'"model.layers.%d.weight":{"dtype":"U8","shape":[1],"data_offsets":[%d,%d]}'
        % (i, i, i + 1) for i in range(50_000))
    path = tmp_path / "m.safetensors"
    path.write_bytes(file(header, bytes(50_000)))
    [(outcome, _)] = read_limited("safetensors", [path], cpu_s=4).values()
    assert outcome == "loaded"


def valid_bytes():
    rng = np.random.default_rng(2)
    tensors = {
        "model.embed.weight": rng.integers(0, 99, (1000, 250)).astype(np.float32),
        "model.norm.weight": np.arange(250, dtype=np.float16),
        "ids": np.arange(7, dtype=np.int64), "mask": np.array([True, False]),
        "empty": np.zeros((0, 3), np.float32), "one": np.array(2.5),
    }
    from safetensors.numpy import save
    return save(tensors, metadata={"format": "pt"}), tensors


def mutant(valid, seed):
    """One or two of: a byte of the header changed, a digit changed, a cut, a piece moved."""
    rng = random.Random(seed)
    content = bytearray(valid)
    head = 8 + struct.unpack_from("<Q", valid)[0]
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(head if rng.random() < 0.8 else len(content)) % len(content)
        kind = rng.choice(["flip", "digit", "swap", "cut", "lose", "double"])
        if kind == "flip":
            content[at] ^= 1 << rng.randrange(8)
        elif kind == "digit":
            digits = [i for i in range(8, min(head, len(content))) if chr(content[i]).isdigit()]
            if digits:
                content[rng.choice(digits)] = ord(rng.choice("0123456789"))
        elif kind == "swap":
            content[at : at + 1] = rng.choice([b'"', b"{", b"]", b",", b"-", b"9" * 20, b"\0"])
        elif kind == "cut":
            del content[max(at, 1) :]
        elif kind == "lose":
            del content[at : at + rng.randint(1, 40)]
        else:
            content[at:at] = content[at : at + rng.randint(1, 40)]
    return bytes(content)


def check_mutants(count, read_limited, folder):
    from safetensors.numpy import load
    valid, _ = valid_bytes()
    paths = [folder / f"{seed}.safetensors" for seed in range(count)]
    for seed, path in enumerate(paths):
        path.write_bytes(mutant(valid, seed))
    found = read_limited("safetensors", paths)
    loaded = [path for path in paths if found[path.name][0] == "loaded"]
    assert 0.02 * count < len(loaded) < 0.9 * count  # the mutants reach both ends
    for path in loaded:
        ours, theirs = read_safetensors(path), load(path.read_bytes())
        assert ours.keys() == theirs.keys()
        for name, want in theirs.items():
            got = ours[name].numpy()
            assert (got.dtype, got.shape, got.tobytes()) == (want.dtype, want.shape, want.tobytes())


def test_mutants_are_refused_or_read_rightly(read_limited, tmp_path):
    check_mutants(300, read_limited, tmp_path)


@pytest.mark.slow
def test_two_thousand_mutants(read_limited, tmp_path):
    check_mutants(2_000, read_limited, tmp_path)


def test_files_of_the_library(tmp_path):
    raw, tensors = valid_bytes()
    path = tmp_path / "model.safetensors"
    path.write_bytes(raw)
    found = read_safetensors(path)
    assert found.keys() == tensors.keys()
    for name, want in tensors.items():
        assert found[name].numpy().dtype == want.dtype
        assert np.array_equal(found[name].numpy(), want)
        assert not found[name].raw.flags.owndata
    assert found["one"].shape == () and found["one"].dequantised().dtype == np.float32


def test_bfloat16_equals_torch(tmp_path):
    torch = pytest.importorskip("torch", reason="numpy has no bfloat16 to write")
    from safetensors.torch import save_file
    want = torch.randn(64, 33, generator=torch.Generator().manual_seed(0)).bfloat16()
    save_file({"w": want}, tmp_path / "model.safetensors")
    found = read_safetensors(tmp_path)["w"]
    assert found.type == "BF16"
    assert np.array_equal(found.dequantised(), want.float().numpy())


def write_shards(folder, weight_map=None, shards=(("a", 1), ("b", 2))):
    from safetensors.numpy import save_file
    files = {}
    for i, (name, value) in enumerate(shards):
        files[name] = f"model-{i}.safetensors"
        save_file({name: np.full(3, value, np.float32)}, folder / files[name])
    index = {"metadata": {"total_size": 24}, "weight_map": weight_map or files}
    (folder / INDEX).write_text(json.dumps(index))


def test_shards(tmp_path):
    write_shards(tmp_path)
    for given in (tmp_path, tmp_path / INDEX):
        found = read_safetensors(given)
        assert {name: t.numpy().tolist() for name, t in found.items()} == {"a": [1] * 3,
                                                                           "b": [2] * 3}


@pytest.mark.parametrize(("weight_map", "said"), [
    ({"a": "../x.safetensors"}, "must be a plain name"),
    ({"a": "/etc/x.safetensors"}, "must be a plain name"),
    ({"a": "sub/x.safetensors"}, "must be a plain name"),
    ({"a": "..\\x.safetensors"}, "must be a plain name"),
    ({"a": "x\0.safetensors"}, "must be a plain name"),
    ({"a": "/etc/passwd"}, "must be the name of a .safetensors file"),
    ({"a": "model-0.bin"}, "must be the name of a .safetensors file"),
    ({"a": 3}, "must be the name of a .safetensors file"),
    ({"a": "model-0.safetensors", "c": "model-1.safetensors"},
     "model-1.safetensors holds a tensor that is not mapped to it 'b'"),
    ({"a": "model-0.safetensors", "b": "model-1.safetensors", "c": "model-1.safetensors"},
     "model-1.safetensors lacks tensor 'c'"),
    ([], "no weight_map"), ("x", "no weight_map"),
])
def test_hostile_indexes(weight_map, said, tmp_path):
    write_shards(tmp_path)
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(FormatError, match=said):
        read_safetensors(tmp_path)


def test_a_missing_shard_is_named(tmp_path):
    write_shards(tmp_path, {"a": "model-9.safetensors"})
    with pytest.raises(ModelError, match=r"model-9\.safetensors: cannot be opened"):
        read_safetensors(tmp_path)
    with pytest.raises(ModelError, match="cannot be opened"):
        read_safetensors(tmp_path / "nothing")


def test_links_may_not_leave_the_folder(tmp_path):
    outside = tmp_path / "outside.safetensors"
    outside.write_bytes(entry())
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").symlink_to(outside)
    with pytest.raises(FormatError, match="a link that leaves the model's folder"):
        read_safetensors(folder)
    (folder / "loop.safetensors").symlink_to("loop.safetensors")
    with pytest.raises(FormatError, match="leads nowhere"):
        within(folder, "loop.safetensors")
    (folder / "real.safetensors").write_bytes(entry())
    (folder / "alias.safetensors").symlink_to("real.safetensors")
    assert read_safetensors(within(folder, "alias.safetensors")).keys() == {"w"}
    assert read_safetensors(outside).keys() == {"w"}  # a path the user gives is the user's choice


def test_a_hubs_cache_links_to_its_own_blobs(tmp_path):
    snapshot, blobs = tmp_path / "repo/snapshots/rev", tmp_path / "repo/blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    (blobs / "aa").write_bytes(entry())
    (tmp_path / "bb").write_bytes(entry())
    link = snapshot / "model.safetensors"
    link.symlink_to("../../blobs/aa")
    assert read_safetensors(snapshot).keys() == {"w"}
    link.unlink()
    link.symlink_to("../../../bb")
    with pytest.raises(FormatError, match="leaves the model's folder"):
        read_safetensors(snapshot)


OPENED = """
import sys
from pathlib import Path
import numpy
from unspool.files.safetensors import read_safetensors
opened = []
sys.addaudithook(lambda event, args: event == "open" and opened.append(str(args[0])))
try:
    read_safetensors(Path(sys.argv[1]))
except Exception as error:
    print(type(error).__name__)
print(*opened, sep="\\n")
"""


def test_no_file_outside_the_folder_is_opened(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.safetensors").write_bytes(entry())
    (folder / "link.safetensors").symlink_to("../secret.safetensors")
    targets = ["../secret.safetensors", str(tmp_path / "secret.safetensors"), "link.safetensors"]
    for target in targets:
        write_shards(folder, {"a": "model-0.safetensors", "w": target})
        done = subprocess.run([sys.executable, "-c", OPENED, folder], capture_output=True,
                              text=True, cwd=ROOT, timeout=120, check=True)
        kind, *opened = done.stdout.split()
        assert kind == "FormatError" and str(folder / INDEX) in opened
        assert [os.path.realpath(name) for name in opened] == [str(folder.resolve() / INDEX)]
