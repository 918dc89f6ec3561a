"""Packed matrices of every format, products with them, and compiled models from tiny decoders."""
from __future__ import annotations

import numpy as np

from unspool.files.quants import dequantise
from unspool.files.tensor import Tensor
from unspool.kernels.layer import step
from unspool.kernels.machine.jit import kernel
from unspool.kernels.weights import embed, matmul
from unspool.kernels.weights.activations import BYTES, F32, encode
from unspool.kernels.weights.formats import FORMATS
from unspool.models.native import native
from unspool.models.options import Options
from unspool.models.packed import Part, pack, shape_of

QUANTISED = [name for name, format in FORMATS.items() if format.quantised]
FLOATS = [name for name, format in FORMATS.items() if not format.quantised]


def address(array):
    return array.ctypes.data


def raw_matrix(name, rows, columns, seed=0):
    """Random stored bytes [rows, bytes of a row] of a format, with sane scales."""
    format, noise = FORMATS[name], np.random.default_rng(seed)
    if not format.quantised:
        values = noise.standard_normal((rows, columns)).astype(np.float32)
        if name == "BF16":
            return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
        return values.astype(np.float16 if name == "F16" else np.float32).view(np.uint8)
    shape = rows, columns // format.block
    raw = noise.integers(0, 256, (*shape, format.raw)).astype(np.uint8)
    for at in {"Q4_0": [0], "Q8_0": [0], "Q6_K": [208]}.get(name, [0, 2]):
        scale = (noise.random(shape) * 0.02 + 0.001).astype(np.float16)
        raw[..., at:at + 2] = scale[..., None].view(np.uint8)
    return raw.reshape(rows, -1)


def values_of(name, raw, columns):
    """What the stored bytes mean, [rows, columns] float64."""
    return dequantise(raw.reshape(-1), name, (len(raw), columns)).astype(np.float64)


def packed(name, raw, columns, order=None):
    part = Part(FORMATS[name].prepare(), raw, order, columns)
    return pack([part], np.zeros(shape_of([part]), np.uint8))


def rows_of(matrix):
    """Every row of a packed matrix, looked up as an embedding."""
    out = np.full((matrix.rows, matrix.columns + 8), np.nan, np.float32)
    tokens = np.arange(matrix.rows)
    words = np.zeros(step.WORDS, np.int64)
    words[[step.ROWS, step.TOKENS]] = matrix.rows, address(tokens)
    args = np.array([address(matrix.data), matrix.blocks, address(out), out.strides[0]], np.int64)
    look_up = embed.embedding(matrix.format.id)
    look_up(address(args), address(words), 0, matrix.rows, 0)
    return out[:, : matrix.columns]


@kernel("void(int64, int64, int64, int64, int64, int64)")
def encode_row(form, x, size, codes, scales, sums):
    encode(form, x, size, codes, scales, sums)


def encoded(form, x):
    """Rows of activations in a form: codes, scales and sums."""
    rows, columns = x.shape
    codes = np.zeros((rows, columns * BYTES[form] + 64), np.uint8)
    scales = np.zeros((rows, max(columns // 32, 1)), np.float32)
    sums = np.zeros_like(scales)
    for m in range(rows):
        one = np.ascontiguousarray(x[m])
        encode_row(form, address(one), columns - columns % 8 if form == F32 else columns,
                   address(codes[m]), address(scales[m]), address(sums[m]))
        if form == F32:
            codes[m, : 4 * columns] = one.view(np.uint8)
    return codes, scales, sums


def multiply(matrix, form, x, bias=None, onto=None, units=None):
    """x [rows, columns] times the matrix, [rows, its rows], by the kernel of its format."""
    codes, scales, sums = encoded(form, x)
    width = matrix.units * matmul.ROWS
    out = np.full((len(x), width), np.nan, np.float32)
    if onto is not None:
        out[:, : matrix.rows] = onto
    padded = None if bias is None else np.concatenate([bias, np.zeros(width, np.float32)])
    args = np.array([
        address(matrix.data), matrix.blocks, address(codes), codes.strides[0], address(scales),
        address(sums), scales.strides[0], address(out), out.strides[0],
        0 if padded is None else address(padded), int(onto is not None), step.ROWS,
    ], np.int64)  # fmt: skip
    words = np.zeros(step.WORDS, np.int64)
    words[step.ROWS] = len(x)
    product = matmul.product(matrix.format.id, form)
    for first, last in units or [(0, matrix.units)]:
        product(address(args), address(words), first, last, 0)
    return out[:, : matrix.rows]


# ── whole models ─────────────────────────────────────────────────────────────────────────────────
def compiled(decoder, numerics="default", type="F32", **options):
    """A tiny decoder of `models_zoo` on the compiled path, its matrices stored as `type`."""
    stored = {name: tensor_of(name, value.numpy(), type) for name, value in weights_of(decoder)}
    return native(decoder.config, stored, gguf=False, numerics=numerics, notes=(),
                  options=Options(**options))


def weights_of(decoder):
    yield "model.embed_tokens.weight", decoder.embedding
    yield "model.norm.weight", decoder.norm
    if not decoder.config.tied:
        yield "lm_head.weight", decoder.head
    for index, layer in enumerate(decoder.stack):
        prefix = f"model.layers.{index}."
        yield prefix + "input_layernorm.weight", layer.attention_norm
        yield prefix + "post_attention_layernorm.weight", layer.mlp_norm
        linears = {"self_attn.q_proj": layer.q, "self_attn.k_proj": layer.k,
                   "self_attn.v_proj": layer.v, "self_attn.o_proj": layer.out,
                   "mlp.gate_proj": layer.gate, "mlp.up_proj": layer.up,
                   "mlp.down_proj": layer.down}
        for name, linear in linears.items():
            yield f"{prefix}{name}.weight", linear.weight
            if linear.bias is not None:
                yield f"{prefix}{name}.bias", linear.bias
        for name, weight in (("q_norm", layer.q_norm), ("k_norm", layer.k_norm)):
            if weight is not None:
                yield f"{prefix}self_attn.{name}.weight", weight


def tensor_of(name, values, type="F32"):
    values = np.ascontiguousarray(values, np.float32)
    if type == "F32" or values.ndim == 1:
        return Tensor(name, "F32", values.shape, values.reshape(-1).view(np.uint8))
    from gguf import GGMLQuantizationType, quants

    kind = GGMLQuantizationType[type]
    raw = np.ascontiguousarray(quants.quantize(values, kind)).reshape(-1).view(np.uint8)
    return Tensor(name, type, values.shape, raw)
