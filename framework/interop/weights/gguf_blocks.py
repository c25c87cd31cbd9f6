"""The blocks of GGUF files as float32: Q4_0 to Q8_0 and IQ4_NL in blocks of 32 numbers, the K kinds and IQ4_XS in
blocks of 256.

Each function takes the blocks of a tensor as bytes, [blocks, bytes of a block], and gives [blocks, numbers of a block].

Source: the structures block_* of https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import ml_dtypes
import numpy as np


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
    "IQ4_NL": Block(20, 32, 18, _iq4_nl),
    "IQ4_XS": Block(23, 256, 136, _iq4_xs),
    "I8": Block(24, 1, 1, None, np.dtype("i1")),
    "I16": Block(25, 1, 2, None, np.dtype("<i2")),
    "I32": Block(26, 1, 4, None, np.dtype("<i4")),
    "F64": Block(28, 1, 8, None, np.dtype("<f8")),
    "BF16": Block(30, 1, 2, None, np.dtype(ml_dtypes.bfloat16)),
}
"""The kinds that are read, by their names in llama.cpp."""
OTHER_KINDS = {
    **{
        9: "Q8_1",
        15: "Q8_K",
        16: "IQ2_XXS",
        17: "IQ2_XS",
        18: "IQ3_XXS",
        19: "IQ1_S",
        21: "IQ3_S",
        22: "IQ2_S",
    },
    **{27: "I64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4"},
}
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
