"""The blocks of GGUF files as float32: Q4_0 to Q8_0, IQ4_NL and MXFP4 in blocks of 32 numbers, NVFP4 of 64, Q1_0 of
128; the K kinds, TQ1_0, TQ2_0 and the other IQ kinds of 256.

Each function takes the blocks of a tensor as bytes, [blocks, bytes of a block], and gives [blocks, numbers of a block].

Source: the structures block_* of https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import ml_dtypes
import numpy as np

from framework.interop.weights import gguf_tables as tables


class Block(NamedTuple):
    """How a kind of tensor is stored.

    Attributes:
        code: ggml's number of the kind.
        length: Numbers of a block.
        size: Bytes of a block.
        decode: [blocks, size] uint8 -> [blocks, length] float32; None: a block is one number of `dtype`.
        dtype: Of that number.
    """

    code: int
    length: int
    size: int
    decode: Callable[[np.ndarray], np.ndarray] | None
    dtype: np.dtype | None = None


def _half(blocks: np.ndarray, at: int) -> np.ndarray:
    """The float16 at these bytes of each block, [blocks, 1] float32."""
    return np.ascontiguousarray(blocks[:, at : at + 2]).view("<f2").astype(np.float32)


def _nibbles(packed: np.ndarray) -> np.ndarray:
    """[..., n] bytes -> [..., 2, n]: the low halves, then the high halves."""
    return np.stack([packed & 15, packed >> 4], -2)


def _bits(packed: np.ndarray, width: int) -> np.ndarray:
    """[..., n] bytes -> [..., 8 / width, n]: the lowest `width` bits of each byte first."""
    shifts = np.arange(0, 8, width, dtype=np.uint8)[:, None]
    return packed[..., None, :] >> shifts & np.uint8((1 << width) - 1)


def _fifth_bits(blocks: np.ndarray, at: int) -> np.ndarray:
    """Bit i of the 32 at these bytes is that of number i: [blocks, 32], 0 or 16."""
    return np.unpackbits(blocks[:, at : at + 4], axis=1, bitorder="little") << 4


def _q4_0(blocks: np.ndarray) -> np.ndarray:
    return _half(blocks, 0) * (_nibbles(blocks[:, 2:]).reshape(-1, 32).astype(np.float32) - 8)


def _q4_1(blocks: np.ndarray) -> np.ndarray:
    levels = _nibbles(blocks[:, 4:]).reshape(-1, 32).astype(np.float32)
    return _half(blocks, 0) * levels + _half(blocks, 2)


def _q5_0(blocks: np.ndarray) -> np.ndarray:
    levels = _nibbles(blocks[:, 6:]).reshape(-1, 32) | _fifth_bits(blocks, 2)
    return _half(blocks, 0) * (levels.astype(np.float32) - 16)


def _q5_1(blocks: np.ndarray) -> np.ndarray:
    levels = _nibbles(blocks[:, 8:]).reshape(-1, 32) | _fifth_bits(blocks, 4)
    return _half(blocks, 0) * levels.astype(np.float32) + _half(blocks, 2)


def _q8_0(blocks: np.ndarray) -> np.ndarray:
    return _half(blocks, 0) * blocks[:, 2:].view(np.int8).astype(np.float32)


def _q2_k(blocks: np.ndarray) -> np.ndarray:
    """16 groups of 16: a scale and a minimum of 4 bits each, levels of 2 bits in two halves of 128."""
    scales = blocks[:, :16, None]
    levels = _bits(blocks[:, 16:80].reshape(-1, 2, 32), 2).reshape(-1, 16, 16).astype(np.float32)
    step = _half(blocks, 80)[..., None] * (scales & 15).astype(np.float32)
    least = _half(blocks, 82)[..., None] * (scales >> 4).astype(np.float32)
    return (step * levels - least).reshape(-1, 256)


def _q3_k(blocks: np.ndarray) -> np.ndarray:
    """16 groups of 16: scales of 6 bits less 32, levels of 2 bits and a third bit that, where it is 0, takes 4 off."""
    third = _bits(blocks[:, :32], 1).reshape(-1, 256)
    low = _bits(blocks[:, 32:96].reshape(-1, 2, 32), 2).reshape(-1, 256)
    packed = blocks[:, 96:108]
    four = _nibbles(packed[:, :8]).reshape(-1, 16)
    two = _bits(packed[:, 8:], 2).reshape(-1, 16)
    scales = (four | two << 4).astype(np.float32) - 32
    levels = low.astype(np.float32) - 4 * (1 - third.astype(np.float32))
    step = _half(blocks, 108) * scales
    return (step[..., None] * levels.reshape(-1, 16, 16)).reshape(-1, 256)


def _k_scales(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The 8 scales and 8 minima of 6 bits each in 12 bytes: those of the last four have their two high bits in the
    bytes of the first four. [blocks, 8] float32 each."""
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([first & 63, third & 15 | first >> 6 << 4], 1)
    minima = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], 1)
    return scales.astype(np.float32), minima.astype(np.float32)


def _k_levels(blocks: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Levels [blocks, 8, 32] of Q4_K and Q5_K as numbers."""
    scales, minima = _k_scales(blocks[:, 4:16])
    step, least = _half(blocks, 0) * scales, _half(blocks, 2) * minima
    return (step[..., None] * levels.astype(np.float32) - least[..., None]).reshape(-1, 256)


def _q4_k(blocks: np.ndarray) -> np.ndarray:
    return _k_levels(blocks, _nibbles(blocks[:, 16:].reshape(-1, 4, 32)).reshape(-1, 8, 32))


def _q5_k(blocks: np.ndarray) -> np.ndarray:
    four = _nibbles(blocks[:, 48:].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    return _k_levels(blocks, four | _bits(blocks[:, 16:48], 1) << 4)


def _q6_k(blocks: np.ndarray) -> np.ndarray:
    """16 groups of 16 with scales of 8 bits; levels of 4 and 2 bits, less 32."""
    four = _nibbles(blocks[:, :128].reshape(-1, 2, 64)).reshape(-1, 256)
    two = _bits(blocks[:, 128:192].reshape(-1, 2, 32), 2).reshape(-1, 256)
    levels = (four | two << 4).astype(np.float32) - 32
    step = _half(blocks, 208) * blocks[:, 192:208].view(np.int8).astype(np.float32)
    return (step[..., None] * levels.reshape(-1, 16, 16)).reshape(-1, 256)


_UNEVEN = np.array(
    (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113), np.float32
)  # the levels of IQ4: closer to one another near 0


def _iq4_nl(blocks: np.ndarray) -> np.ndarray:
    return _half(blocks, 0) * _UNEVEN[_nibbles(blocks[:, 2:]).reshape(-1, 32)]


def _iq4_xs(blocks: np.ndarray) -> np.ndarray:
    """8 groups of 32 with scales of 6 bits, less 32: their two high bits stand before all of the four low ones."""
    high = _bits(blocks[:, 2:4], 2).swapaxes(-1, -2).reshape(-1, 8)
    low = _bits(blocks[:, 4:8], 4).swapaxes(-1, -2).reshape(-1, 8)
    step = _half(blocks, 0) * ((low | high << 4).astype(np.float32) - 32)
    levels = _UNEVEN[_nibbles(blocks[:, 8:].reshape(-1, 8, 16)).reshape(-1, 8, 32)]
    return (step[..., None] * levels).reshape(-1, 256)


# Twice E2M1's numbers.
_HALF_E2M1 = np.array((0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12), np.float32)


def _mxfp4(blocks: np.ndarray) -> np.ndarray:
    """A power of two, E8M0, and 32 E2M1: the halves of a byte are 16 apart."""
    step = np.ldexp(np.float32(1), blocks[:, :1].astype(np.int32) - 128)
    return step * _HALF_E2M1[_nibbles(blocks[:, 1:]).reshape(-1, 32)]


def _nvfp4(blocks: np.ndarray) -> np.ndarray:
    """4 groups of 16 E2M1 with a scale of E4M3 each."""
    scales = blocks[:, :4]
    step = (scales & 127).view(ml_dtypes.float8_e4m3fn).astype(np.float32) * np.float32(0.5)
    step = np.where(scales & 127 == 127, np.float32(0), step)
    levels = _HALF_E2M1[_nibbles(blocks[:, 4:].reshape(-1, 4, 8)).reshape(-1, 4, 16)]
    return (step[..., None] * levels).reshape(-1, 64)


def _q1_0(blocks: np.ndarray) -> np.ndarray:
    """A bit for each number: the scale, or less the scale where it is 0."""
    bits = np.unpackbits(blocks[:, 2:], axis=1, bitorder="little")
    return _half(blocks, 0) * (2 * bits.astype(np.float32) - 1)


def _tq1_0(blocks: np.ndarray) -> np.ndarray:
    """-1, 0 and 1, five in a byte (four in the last 4), as a fraction of 256 in base 3, the highest digit first."""
    products = []
    for start, stop, count in ((0, 32, 5), (32, 48, 5), (48, 52, 4)):
        powers = np.array([1, 3, 9, 27, 81][:count], np.uint8)[:, None]
        products.append((blocks[:, None, start:stop] * powers).reshape(len(blocks), -1))
    digits = np.concatenate(products, 1).astype(np.uint16) * 3 >> 8
    return _half(blocks, 52) * (digits.astype(np.float32) - 1)


def _tq2_0(blocks: np.ndarray) -> np.ndarray:
    """-1, 0 and 1, of 2 bits, in two halves of 128."""
    levels = _bits(blocks[:, :64].reshape(-1, 2, 32), 2).reshape(-1, 256)
    return _half(blocks, 64) * (levels.astype(np.float32) - 1)


BLOCKS = {
    "F32": Block(0, 1, 4, None, np.dtype("<f4")),
    "F16": Block(1, 1, 2, None, np.dtype("<f2")),
    "Q4_0": Block(2, 32, 18, _q4_0),
    "Q4_1": Block(3, 32, 20, _q4_1),
    "Q5_0": Block(6, 32, 22, _q5_0),
    "Q5_1": Block(7, 32, 24, _q5_1),
    "Q8_0": Block(8, 32, 34, _q8_0),
    "Q2_K": Block(10, 256, 84, _q2_k),
    "Q3_K": Block(11, 256, 110, _q3_k),
    "Q4_K": Block(12, 256, 144, _q4_k),
    "Q5_K": Block(13, 256, 176, _q5_k),
    "Q6_K": Block(14, 256, 210, _q6_k),
    "IQ2_XXS": Block(16, 256, 66, tables.iq2_xxs),
    "IQ2_XS": Block(17, 256, 74, tables.iq2_xs),
    "IQ3_XXS": Block(18, 256, 98, tables.iq3_xxs),
    "IQ1_S": Block(19, 256, 50, tables.iq1_s),
    "IQ4_NL": Block(20, 32, 18, _iq4_nl),
    "IQ3_S": Block(21, 256, 110, tables.iq3_s),
    "IQ2_S": Block(22, 256, 82, tables.iq2_s),
    "IQ4_XS": Block(23, 256, 136, _iq4_xs),
    "I8": Block(24, 1, 1, None, np.dtype("i1")),
    "I16": Block(25, 1, 2, None, np.dtype("<i2")),
    "I32": Block(26, 1, 4, None, np.dtype("<i4")),
    "F64": Block(28, 1, 8, None, np.dtype("<f8")),
    "IQ1_M": Block(29, 256, 56, tables.iq1_m),
    "BF16": Block(30, 1, 2, None, np.dtype(ml_dtypes.bfloat16)),
    "TQ1_0": Block(34, 256, 54, _tq1_0),
    "TQ2_0": Block(35, 256, 66, _tq2_0),
    "MXFP4": Block(39, 32, 17, _mxfp4),
    "NVFP4": Block(40, 64, 36, _nvfp4),
    "Q1_0": Block(41, 128, 18, _q1_0),
}
"""The kinds that are read, by their names in llama.cpp."""
OTHER_KINDS = {9: "Q8_1", 15: "Q8_K", 27: "I64"}
"""Those that are not, by ggml's number."""
_CHUNK = 1 << 14  # blocks that are decoded together: their numbers stay in the cache of the processor


def dequantize_blocks(data: memoryview, kind: str, shape: Sequence[int]) -> np.ndarray:
    """The numbers of a tensor, float32; those of a kind of whole numbers as they are, without a copy where possible."""
    block = BLOCKS[kind]
    if block.decode is None:
        array = np.frombuffer(data, block.dtype).reshape(shape)
        return array.astype(np.float32) if kind in ("F16", "BF16", "F64") else array
    blocks = np.frombuffer(data, np.uint8).reshape(-1, block.size)
    out = np.empty((len(blocks), block.length), np.float32)
    for start in range(0, len(blocks), _CHUNK):
        out[start : start + _CHUNK] = block.decode(blocks[start : start + _CHUNK])
    return out.reshape(shape)
