"""Matrices of 8-bit floats with scales, and bitsandbytes' matrices of 4 and 8 bits.

Reference: `weight_scale` of compressed-tensors and FBGEMM, `weight_scale_inv` of DeepSeek-V3's weight_dequant;
    `dequantize_blockwise` and `QuantState.as_dict` of bitsandbytes
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from framework.core.bounded import SETTINGS, check_mapping, parse_json
from framework.core.errors import FormatError
from framework.interop import source as src

FLOAT8 = frozenset((src.float8_e4m3fn, src.float8_e4m3fnuz, src.float8_e5m2, src.float8_e5m2fnuz))
QUANT_STATE = "weight.quant_state.bitsandbytes__"
_KINDS = ("nf4", "fp4")


def dequantize_float8(
    weight: np.ndarray, scale: np.ndarray, where: str, block: Sequence[int] | None = None
) -> np.ndarray:
    """float32 of a matrix [..., out, in] in 8-bit floats, times its scales.

    Args:
        scale: One number; [out] or [out, 1], one a row; or [..., rows of blocks, columns of blocks].
        block: (rows, columns) of a block; the last ones may be cut off. None: the smallest power of two that makes as
            many blocks as there are scales, at least 16.

    Raises:
        FormatError: no scales of this matrix.
    """
    scale = scale.astype(np.float32)
    if scale.size == 1:
        return weight.astype(np.float32) * scale.reshape(())
    if scale.ndim < weight.ndim and scale.shape == weight.shape[: scale.ndim]:
        scale = scale.reshape(*scale.shape, *(1,) * (weight.ndim - scale.ndim))
    if scale.shape == (*weight.shape[:-1], 1) or scale.shape == (*weight.shape[:-2], 1, 1):
        return weight.astype(np.float32) * scale
    sizes = tuple(block) if block is not None else _block_of(weight.shape, scale.shape)
    counts = (
        tuple(-(-size // step) for size, step in zip(weight.shape[-2:], sizes)) if len(sizes) == 2 else ()
    )
    if scale.shape != (*weight.shape[:-2], *counts):
        raise FormatError(
            "the scales are not those of the matrix",
            where=where,
            received=f"a matrix {list(weight.shape)} with scales {list(scale.shape)}",
            allowed=f"one scale, one a row, or one for each block of {' x '.join(map(str, sizes)) or 'rows x columns'}",
        )
    for axis, step in zip((-2, -1), sizes):
        scale = np.repeat(scale, step, axis)
    return weight.astype(np.float32) * scale[..., : weight.shape[-2], : weight.shape[-1]]


def _block_of(shape: Sequence[int], scales: Sequence[int]) -> tuple[int, ...]:
    """Sizes of blocks where nothing says them: a quotient would be wrong where the last block is cut off."""
    if len(scales) != len(shape) or len(shape) < 2:
        return ()
    sizes = [1 << n for n in range(4, 13)]
    block = [
        next((step for step in sizes if -(-size // step) == count), 0)
        for size, count in zip(shape[-2:], scales[-2:])
    ]
    return tuple(block) if all(block) else ()


def dequantize_bitsandbytes(arrays: Mapping[str, np.ndarray], where: str) -> np.ndarray:
    """float32 [out, in] of a Linear4bit: `weight` uint8, the first of two numbers in the high half of a byte;
    `weight.absmax` one scale a block, itself in 8 bits where `weight.nested_absmax` is there; `weight.quant_map` the 16
    values; and a JSON text with shape and block sizes.

    Raises:
        FormatError: an array is missing, or they do not belong together.
    """
    state = _state(arrays, where)
    shape, length = bitsandbytes_shape(arrays, where), state.get("blocksize")
    if state.get("quant_type") not in _KINDS or not isinstance(length, int) or length < 1:
        raise _bad_state(where, f"{state.get('quant_type')!r}, blocksize {length!r}"[:120])
    count = math.prod(shape)
    values, packed = _array(arrays, "weight.quant_map", where), _array(arrays, "weight", where).reshape(-1)
    scales = _absmax(arrays, state, where)
    blocks = -(-count // length)
    if (
        packed.dtype != np.uint8
        or packed.size != -(-count // 2)
        or scales.size != blocks
        or values.size != 16
    ):
        raise _bad_state(where, f"{packed.size} bytes, {scales.size} scales for {shape}")
    levels = np.stack([packed >> 4, packed & 15], 1).reshape(-1)
    numbers = np.zeros(blocks * length, np.float32)
    numbers[:count] = values.astype(np.float32).reshape(-1)[levels[:count]]
    return (numbers.reshape(blocks, length) * scales[:, None]).reshape(-1)[:count].reshape(shape)


def bitsandbytes_shape(arrays: Mapping[str, np.ndarray], where: str) -> tuple[int, ...]:
    """(out, in) of a Linear4bit. Raises: FormatError."""
    shape = _state(arrays, where).get("shape")
    if (
        not isinstance(shape, list)
        or not all(isinstance(n, int) and 0 < n < 1 << 32 for n in shape)
        or len(shape) > 4
    ):
        raise _bad_state(where, f"shape {shape!r}"[:120])
    return tuple(shape)


def _state(arrays: Mapping[str, np.ndarray], where: str) -> dict:
    """What the JSON text beside a matrix says."""
    name = next((name for name in arrays if name.startswith(QUANT_STATE)), None)
    if name is None or arrays[name].size > SETTINGS:
        raise _bad_state(where, "no quant_state")
    text = arrays[name].astype(np.uint8).tobytes()
    return check_mapping(parse_json(text, where, "quantisation state"), where, "quantisation state")


def _absmax(arrays: Mapping[str, np.ndarray], state: Mapping[str, object], where: str) -> np.ndarray:
    """The scales of the blocks, float32."""
    absmax = _array(arrays, "weight.absmax", where).reshape(-1)
    if "weight.nested_absmax" not in arrays:
        return absmax.astype(np.float32)
    nested, offset = state.get("nested_blocksize"), state.get("nested_offset")
    outer = _array(arrays, "weight.nested_absmax", where).astype(np.float32).reshape(-1)
    values = _array(arrays, "weight.nested_quant_map", where).astype(np.float32).reshape(-1)
    if (
        not isinstance(nested, int)
        or nested < 1
        or not isinstance(offset, int | float)
        or values.size != 256
        or absmax.dtype != np.uint8
        or outer.size != -(-absmax.size // nested)
    ):
        raise _bad_state(
            where, f"nested_blocksize {nested!r}, nested_offset {offset!r}, {outer.size} scales of scales"
        )
    return values[absmax] * np.repeat(outer, nested)[: absmax.size] + np.float32(offset)


def dequantize_rows(weight: np.ndarray, scale: np.ndarray, where: str) -> np.ndarray:
    """float32 [out, in] of a Linear8bitLt: `weight` int8, `SCB` [out], the largest magnitude of each row.

    Raises:
        FormatError: they do not belong together.
    """
    if weight.ndim != 2 or weight.dtype != np.int8 or scale.shape != weight.shape[:1]:
        raise _bad_state(where, f"weight {weight.dtype} {list(weight.shape)}, SCB {list(scale.shape)}")
    return weight.astype(np.float32) * (scale.astype(np.float32)[:, None] / np.float32(127))


def _array(arrays: Mapping[str, np.ndarray], name: str, where: str) -> np.ndarray:
    if name not in arrays:
        raise _bad_state(where, f"no {name}")
    return arrays[name]


def _bad_state(where: str, received: str) -> FormatError:
    return FormatError(
        "the arrays of a matrix of bitsandbytes do not belong together",
        where=where,
        received=received,
        allowed="what save_pretrained of a model in load_in_4bit or load_in_8bit writes",
        fix="copy or download the files of weights again",
    )
