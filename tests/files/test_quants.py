"""Every number format equals the gguf package's decoder, bit for bit."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool.core.errors import FormatError
from unspool.files.quants import CHUNK, PLAIN, QUANTISED, dequantise, span

gguf = pytest.importorskip("gguf", reason="the gguf package, a test extra, is the oracle here")
TYPES = ["F32", "F16", "BF16", *QUANTISED]


def block_bytes(type):
    return QUANTISED[type].layout.itemsize if type in QUANTISED else PLAIN[type].itemsize


def finite(raw, type):
    """Random bytes with every float16 scale made finite (exponent 31 is inf and nan)."""
    if type in QUANTISED:
        blocks = raw.reshape(-1).view(QUANTISED[type].layout)
        for name in {"d", "m"} & set(blocks.dtype.names):
            bits = blocks[name].copy().view(np.uint16)
            blocks[name] = np.where(bits & 0x7C00 == 0x7C00, bits & 0x83FF, bits).view(np.float16)
    return raw


def oracle(raw, type):
    if type == "F16":
        return raw.view(np.float16).astype(np.float32)
    if type == "F32":
        return raw.view(np.float32)
    with np.errstate(all="ignore"):
        return gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[type])


def same_bits(got, want):
    return got.shape == want.shape and np.array_equal(got.view(np.uint32), want.view(np.uint32))


@pytest.mark.parametrize("type", TYPES)
def test_random_blocks_decode_as_the_reference_does(type):
    rng = np.random.default_rng(7)
    rows = 3
    per_row = 2 * CHUNK // 3 // (QUANTISED[type].values if type in QUANTISED else 1) + 5
    raw = rng.integers(0, 256, (rows, per_row * block_bytes(type)), dtype=np.uint8)
    raw = finite(raw, type)
    if type in ("F32", "F16", "BF16"):  # finite: clear one exponent bit
        raw[:, block_bytes(type) - 1 :: block_bytes(type)] &= 0xBF
    want = oracle(raw, type)
    assert want.size > 2 * CHUNK - 1000  # crosses the borders of the pieces decoded at a time
    assert np.isfinite(want).all()
    assert same_bits(dequantise(raw.reshape(-1), type, want.shape), want)


@pytest.mark.parametrize("type", list(QUANTISED))
@pytest.mark.parametrize("scale", [0.0, -0.0, 6e-8, -6e-8, 6.1e-5, 65504.0, -65504.0, 1.0])
def test_extreme_scales(type, scale):
    raw = np.random.default_rng(1).integers(0, 256, (4, block_bytes(type)), dtype=np.uint8)
    blocks = raw.reshape(-1).view(QUANTISED[type].layout)
    for name in {"d", "m"} & set(blocks.dtype.names):
        blocks[name] = np.float16(scale)
    want = oracle(raw, type)
    assert same_bits(dequantise(raw.reshape(-1), type, want.shape), want)


@pytest.mark.parametrize("type", list(QUANTISED))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_bytes_decode_as_the_reference_does(type, data):
    size = block_bytes(type)
    text = data.draw(st.binary(min_size=size, max_size=size))
    raw = finite(np.frombuffer(text, np.uint8).reshape(1, -1).copy(), type)
    want = oracle(raw, type)
    assert same_bits(dequantise(raw.reshape(-1), type, want.shape), want)


def test_values_worked_by_hand():
    nibbles = bytes(range(16))  # byte i: low nibble i, high nibble 0
    half, two = np.float16(0.5).tobytes(), np.float16(-2.0).tobytes()
    q4_1 = np.frombuffer(half + two + nibbles, np.uint8)
    assert dequantise(q4_1, "Q4_1", (32,)).tolist() == [
        0.5 * q - 2 for q in [*range(16), *([0] * 16)]
    ]
    q8_0 = np.frombuffer(two + bytes([255, 127, 128]) + bytes(29), np.uint8)
    assert dequantise(q8_0, "Q8_0", (32,)).tolist()[:4] == [2.0, -254.0, 256.0, -0.0]
    bf16 = np.frombuffer(b"\x80\x3f\x00\xc0", np.uint8)
    assert dequantise(bf16, "BF16", (2, 1)).tolist() == [[1.0], [-2.0]]


def test_infinite_scales_give_infinite_values_and_no_warning():
    raw = np.frombuffer(np.float16(np.inf).tobytes() + bytes([0, 1]) + bytes(30), np.uint8)
    values = dequantise(raw, "Q8_0", (32,))
    assert np.isnan(values[0]) and values[1] == np.inf


def test_out_is_filled_and_returned():
    raw = np.arange(8, dtype=np.float16).view(np.uint8)
    out = np.full((2, 4), 9, np.float32)
    assert dequantise(raw, "F16", (2, 4), out) is out
    assert out.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize("out", [
    np.empty((4, 2), np.float32), np.empty((2, 4), np.float64), np.empty((4, 2), np.float32).T,
])
def test_an_out_that_does_not_fit_is_refused(out):
    with pytest.raises(FormatError, match="out must be contiguous float32 of shape"):
        dequantise(np.zeros(16, np.uint8), "F16", (2, 4), out)


@pytest.mark.parametrize(("raw", "type", "shape", "said"), [
    (34, "Q2_K", (32,), "'Q2_K' cannot be read.*Q4_0.*Q6_K"),
    (34, "Q8_0", (33,), "multiple of 32 values, not 33"),
    (34, "Q8_0", (), "multiple of 32 values, not 1"),
    (33, "Q8_0", (32,), "takes 34 bytes, not 33"),
    (8, "F32", (3,), "takes 12 bytes, not 8"),
    (8, "I64", (1,), "no real numbers.*numpy"),
    (1, "BOOL", (1,), "no real numbers"),
])
def test_what_does_not_fit_is_refused(raw, type, shape, said):
    with pytest.raises(FormatError, match=said):
        dequantise(np.zeros(raw, np.uint8), type, shape)


def test_spans():
    assert span("Q4_K", (3, 512)) == 6 * 144
    assert span("F32", ()) == 4
    assert span("BF16", (2, 0, 5)) == 0
    assert span("F32", (2**62, 2**62)) == 2**126  # no wrap
