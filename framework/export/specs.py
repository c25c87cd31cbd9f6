"""What a program is lowered for: the platforms, and the shapes and dtypes of its inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from framework.core.errors import ShapeError
from framework.core.lazy import LazyModule

if TYPE_CHECKING:
    from jax import export
else:
    export = LazyModule("jax.export")

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


@dataclass(frozen=True)
class TensorSpec:
    """Shape and dtype of one input; a string is a symbolic size such as "n" or "32*h". 0 is the size of an input that a
    model takes and has nothing of, such as numbers of rows that have none."""

    shape: tuple[int | str, ...]
    dtype: str = "float32"

    def __post_init__(self) -> None:
        try:
            np.dtype(self.dtype)
        except TypeError:
            raise ShapeError(
                "unknown dtype of an input",
                received=repr(self.dtype),
                allowed="float32, int32, uint8, bool, …",
            ) from None
        try:
            if not all(isinstance(n, str) or (isinstance(n, int) and n >= 0) for n in self.shape):
                raise ValueError("a size is neither a number from 0 nor a name")
            export.symbolic_shape(",".join(map(str, self.shape)))
        except ValueError as error:
            raise ShapeError(
                "an input size is a number or symbolic",
                received=f"{self.shape}: {str(error).splitlines()[0]}",
                allowed='1, "n", "32*h"',
            ) from None
