"""The element types of ONNX tensors by their number in the file; those of 2 and 4 bits are packed there."""

from __future__ import annotations

import numpy as np

from framework.interop import source as src

TEXT = 8
# TensorProto.DataType but for text
DTYPES: dict[int, np.dtype] = {
    **{1: np.dtype("f4"), 2: np.dtype("u1"), 3: np.dtype("i1"), 4: np.dtype("u2"), 5: np.dtype("i2")},
    **{6: np.dtype("i4"), 7: np.dtype("i8"), 9: np.dtype("?"), 10: np.dtype("f2"), 11: np.dtype("f8")},
    **{12: np.dtype("u4"), 13: np.dtype("u8"), 14: np.dtype("c8"), 15: np.dtype("c16"), 16: src.bfloat16},
    **{17: src.float8_e4m3fn, 18: src.float8_e4m3fnuz, 19: src.float8_e5m2, 20: src.float8_e5m2fnuz},
    **{
        21: src.uint4,
        22: src.int4,
        23: src.float4_e2m1fn,
        24: src.float8_e8m0fnu,
        25: src.uint2,
        26: src.int2,
    },
}
BITS: dict[np.dtype, int] = {src.uint4: 4, src.int4: 4, src.float4_e2m1fn: 4, src.uint2: 2, src.int2: 2}


def unpack(packed: np.ndarray, dtype: np.dtype, count: int) -> np.ndarray:
    """The first `count` values of 2 or 4 bits in bytes, the lowest bits of a byte first; each takes a byte after."""
    bits = BITS[dtype]
    codes = (packed[:, None] >> np.arange(0, 8, bits, dtype=np.uint8)) & np.uint8((1 << bits) - 1)
    codes = codes.reshape(-1)[:count]
    if dtype == src.float4_e2m1fn:
        return codes.view(dtype)
    signed = dtype in (src.int4, src.int2)
    return (codes.astype(np.int8) - (codes >> (bits - 1) << bits).astype(np.int8) * signed).astype(dtype)
