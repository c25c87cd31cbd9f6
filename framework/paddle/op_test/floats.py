"""bfloat16 as Paddle's tests have it in numpy: the upper half of a float32, in uint16."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def convert_float_to_uint16(float_list: ArrayLike, data_format: str = "NCHW") -> np.ndarray:
    """The upper 16 bits of each float32, without rounding, as Paddle's tests cut them."""
    values = np.asarray(float_list, np.float32)
    return (values.view(np.uint32) >> 16).astype(np.uint16) if values.ndim else _scalar_bits(values)


def _scalar_bits(value: np.ndarray) -> np.ndarray:
    return (value.reshape(1).view(np.uint32) >> 16).astype(np.uint16).reshape(())


def convert_uint16_to_float(in_list: ArrayLike) -> np.ndarray:
    """The float32 whose upper half each number is."""
    bits = np.asarray(in_list).astype(np.uint32) << 16
    return bits.reshape(-1).view(np.float32).reshape(bits.shape)


def copy_bits_from_float_to_uint16(f: float) -> int:
    """The upper 16 bits of one float32."""
    return int(convert_float_to_uint16(np.float32(f)))
