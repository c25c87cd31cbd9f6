"""bfloat16 as Paddle's tests have it in numpy: the upper half of a float32, in uint16."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from framework.paddle._kernel.tensor import Tensor
from framework.paddle.ops.creation import to_tensor


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


def to_operand(array: np.ndarray, cast: str | None = None) -> Tensor:
    """An array as a Tensor; uint16 holds bfloat16. `cast` is the type of floating numbers."""
    if array.dtype == np.uint16:
        return to_tensor(convert_uint16_to_float(array)).astype(cast or "bfloat16")
    tensor = to_tensor(array)
    return tensor.astype(cast) if cast and array.dtype in (np.float16, np.float32) else tensor
