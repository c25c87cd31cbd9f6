"""One tensor as Paddle's C++ side writes it, the record that `read_tensor` reads.

Source: paddle/fluid/framework/lod_tensor.cc and tensor_util.cc
"""

from __future__ import annotations

import numpy as np

from framework.core.errors import WeightError
from framework.interop.weights.pdparams import DTYPES
from framework.interop.wire_writer import integer_field

_CODES = {dtype: code for code, dtype in DTYPES.items()}


def tensor_record(array: np.ndarray) -> bytes:
    """The record of an array: versions and sequence levels of zero, the description, the values in C order.

    Raises:
        WeightError: Paddle has no such type.
    """
    native = np.ascontiguousarray(array).reshape(array.shape)
    code = _CODES.get(native.dtype.newbyteorder("=") if not native.dtype.isnative else native.dtype)
    if code is None:
        raise WeightError("Paddle has no tensors of this type", received=array.dtype)
    description = integer_field(1, code) + b"".join(integer_field(2, size) for size in array.shape)
    head = bytes(4) + bytes(8) + bytes(4) + len(description).to_bytes(4, "little")
    values = native.astype(native.dtype.newbyteorder("<"), copy=False)
    return head + description + values.reshape(-1).view(np.uint8).tobytes()
