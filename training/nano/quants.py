"""Tensor encodings: GGUF blocks to float rows, vectorised over blocks, and float types both ways.

Files are written in floats here, small encoders in Q8_0; `chimere quantize` makes the others small.
"""

import numpy as np

from nano.gguf import TENSOR_TYPES

CODEBOOK = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
DECODE_CHUNK_BLOCKS = 1 << 14


# ------------------------------------------------------------------------------------------------------- bit packing


def half_at(raw, offset):
    """Shape (n, 1): the half at a byte offset of each block, as float32."""
    return np.ascontiguousarray(raw[:, offset:offset + 2]).view("<f2").astype(np.float32)


def split_halves(raw):
    return np.concatenate([raw & 15, raw >> 4], -1)


def split_bits(raw, axis):
    return np.unpackbits(raw, axis=axis, bitorder="little")


def split_pairs(raw):
    raw = raw.reshape(-1, 2, 1, 32)
    return raw >> np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1) & 3


def split_pair_scales(raw):
    first, second, third = raw[:, :4], raw[:, 4:8], raw[:, 8:12]
    scales = np.concatenate([first & 63, third & 15 | first >> 6 << 4], 1)
    offsets = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], 1)
    return scales, offsets


def split_16_scales(raw):
    low = np.concatenate([raw[:, :8] & 15, raw[:, :8] >> 4], 1)
    high = np.concatenate([raw[:, 8:12] >> shift & 3 for shift in (0, 2, 4, 6)], 1)
    return (low | high << 4).astype(np.int16) - 32


# ------------------------------------------------------------------------------------------------------- the formats


def decode_q8_0(raw):
    return half_at(raw, 0) * raw[:, 2:].view(np.int8)


def decode_q4_0(raw):
    return half_at(raw, 0) * (split_halves(raw[:, 2:]).astype(np.float32) - 8)


def decode_q5_0(raw):
    codes = split_halves(raw[:, 6:]) | split_bits(raw[:, 2:6], 1) << 4
    return half_at(raw, 0) * (codes.astype(np.float32) - 16)


def decode_q5_1(raw):
    codes = split_halves(raw[:, 8:]) | split_bits(raw[:, 4:8], 1) << 4
    return half_at(raw, 0) * codes + half_at(raw, 2)


def decode_iq4_nl(raw):
    return half_at(raw, 0) * CODEBOOK[split_halves(raw[:, 2:])]


def decode_iq4_xs(raw):
    high = np.ascontiguousarray(raw[:, 2:4]).view("<u2") >> (2 * np.arange(8, dtype=np.uint16)) & 3
    low = np.stack([raw[:, 4:8] & 15, raw[:, 4:8] >> 4], -1).reshape(-1, 8)
    scales = half_at(raw, 0) * ((low | high << 4).astype(np.float32) - 32)
    return scales[:, :, None] * CODEBOOK[split_halves(raw[:, 8:].reshape(-1, 8, 16))]


def decode_q3_k(raw):
    low = split_pairs(raw[:, 32:96]).reshape(-1, 8, 32)
    codes = low | split_bits(raw[:, None, :32], 1) << 2
    scales = half_at(raw, 108) * split_16_scales(raw[:, 96:108])
    return scales[:, :, None] * (codes.reshape(-1, 16, 16).astype(np.float32) - 4)


def affine_values(raw, codes):
    """Q4_K and Q5_K: codes (n, 8, 32) under the scales at the head of the block."""
    scales, offsets = split_pair_scales(raw[:, 4:16])
    return (half_at(raw, 0) * scales)[:, :, None] * codes - (half_at(raw, 2) * offsets)[:, :, None]


def decode_q4_k(raw):
    return affine_values(raw, split_halves(raw[:, 16:].reshape(-1, 4, 32)).reshape(-1, 8, 32))


def decode_q5_k(raw):
    low = split_halves(raw[:, 48:].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    return affine_values(raw, low | split_bits(raw[:, None, 16:48], 1) << 4)


def decode_q6_k(raw):
    low = split_halves(raw[:, :128].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
    codes = (low | split_pairs(raw[:, 128:192]) << 4).reshape(-1, 16, 16)
    scales = half_at(raw, 208) * np.ascontiguousarray(raw[:, 192:208]).view(np.int8)
    return scales[:, :, None] * (codes.astype(np.float32) - 32)


DECODERS = {
    "Q8_0": decode_q8_0,
    "Q4_0": decode_q4_0,
    "Q5_0": decode_q5_0,
    "Q5_1": decode_q5_1,
    "IQ4_NL": decode_iq4_nl,
    "IQ4_XS": decode_iq4_xs,
    "Q3_K": decode_q3_k,
    "Q4_K": decode_q4_k,
    "Q5_K": decode_q5_k,
    "Q6_K": decode_q6_k,
}
FORMATS = ("F32", "F16", "BF16", *DECODERS)


# -------------------------------------------------------------------------------------------------------- public calls


def encode_bf16(array):
    """Rounds to nearest even in the upper half of the bits; NaN stays NaN."""
    bits = array.view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(array), bits >> 16 | 0x40, rounded).astype("<u2").tobytes()


def encode_q8_0(array):
    """Blocks of 32: their largest value at 127, the others to the nearest step."""
    blocks = array.reshape(-1, 32)
    scale = np.abs(blocks).max(1, keepdims=True) / 127
    steps = np.divide(blocks, scale, out=np.zeros_like(blocks), where=scale > 0)
    codes = np.clip(np.rint(steps), -127, 127).astype(np.int8)
    return np.concatenate([scale.astype("<f2").view(np.uint8), codes.view(np.uint8)], 1).tobytes()


def encode(type_name, array):
    """The bytes of a GGUF tensor in a float type, or in Q8_0."""
    values = np.ascontiguousarray(array, np.float32)
    if type_name in ("F32", "F16"):
        return values.astype("<f4" if type_name == "F32" else "<f2").tobytes()
    if type_name == "BF16":
        return encode_bf16(values)
    if type_name == "Q8_0":
        return encode_q8_0(values)
    raise ValueError(f"no encoder for {type_name!r}: write floats, and quantise them with `chimere quantize`")


def decode(type_name, data, shape):
    """The float32 array of a numpy shape (row length last) that the bytes of a tensor stand for."""
    _, block_elems, block_bytes = TENSOR_TYPES[type_name]
    count = int(np.prod(shape))
    raw = np.frombuffer(data, np.uint8)
    if shape[-1] % block_elems or raw.size != count // block_elems * block_bytes:
        raise ValueError(f"{raw.size} bytes of {type_name} do not make an array of shape {tuple(shape)}")
    if type_name in ("F32", "F16"):
        return raw.view("<f4" if type_name == "F32" else "<f2").astype(np.float32).reshape(shape)
    if type_name == "BF16":
        return (raw.view("<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)
    if type_name not in DECODERS:
        raise ValueError(f"no decoder for {type_name!r}")
    raw = raw.reshape(-1, block_bytes)
    values = np.empty((len(raw), block_elems), np.float32)
    for begin in range(0, len(raw), DECODE_CHUNK_BLOCKS):
        part = raw[begin:begin + DECODE_CHUNK_BLOCKS]
        values[begin:begin + len(part)] = DECODERS[type_name](part).reshape(len(part), block_elems)
    return values.reshape(shape)
