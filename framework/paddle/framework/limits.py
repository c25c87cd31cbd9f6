"""`paddle.iinfo` and `paddle.finfo`: the limits of a type."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.errors import ShapeError


class iinfo:
    """Limits of an integer type: min, max, bits, dtype."""

    def __init__(self, dtype: object) -> None:
        kind = types.to_numpy(dtype)
        if kind.kind not in "iu":
            raise ShapeError("iinfo takes an integer type", where="paddle.iinfo", received=str(kind))
        found = np.iinfo(kind)
        self.min, self.max, self.bits, self.dtype = int(found.min), int(found.max), found.bits, kind.name

    def __repr__(self) -> str:
        return f"paddle.iinfo(min={self.min}, max={self.max}, bits={self.bits}, dtype={self.dtype})"


class finfo:
    """Limits of a floating-point or complex type: min, max, eps, resolution, smallest_normal, tiny, bits, dtype."""

    def __init__(self, dtype: object) -> None:
        kind = types.to_numpy(dtype)
        if kind not in types.INEXACT:
            raise ShapeError("finfo takes a floating-point type", where="paddle.finfo", received=str(kind))
        found = jnp.finfo(kind)
        self.min, self.max, self.eps = float(found.min), float(found.max), float(found.eps)
        self.smallest_normal = self.tiny = float(found.tiny)
        self.resolution = 10.0**-found.precision
        self.bits, self.dtype = found.bits, found.dtype.name

    def __repr__(self) -> str:
        numbers = ", ".join(
            f"{name}={getattr(self, name):g}"
            for name in ("min", "max", "eps", "resolution", "smallest_normal", "tiny")
        )
        return f"paddle.finfo({numbers}, bits={self.bits}, dtype={self.dtype})"
