"""The element types of ONNX tensors by their number in the file."""

from __future__ import annotations

import numpy as np

from framework.io.interop import source as src

# TensorProto.DataType; 8 is text, 21 and above are packed 4-bit types
DTYPES: dict[int, np.dtype] = {
    **{1: np.dtype("f4"), 2: np.dtype("u1"), 3: np.dtype("i1"), 4: np.dtype("u2"), 5: np.dtype("i2")},
    **{6: np.dtype("i4"), 7: np.dtype("i8"), 9: np.dtype("?"), 10: np.dtype("f2"), 11: np.dtype("f8")},
    **{12: np.dtype("u4"), 13: np.dtype("u8"), 14: np.dtype("c8"), 15: np.dtype("c16"), 16: src.bfloat16},
    **{17: src.float8_e4m3fn, 18: src.float8_e4m3fnuz, 19: src.float8_e5m2, 20: src.float8_e5m2fnuz},
}
