"""paddle.utils.dlpack: Tensors to other libraries and back without a copy where both can."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from framework.paddle._kernel.tensor import Tensor, as_array, wrap
from framework.paddle._kernel.x64 import x64


def to_dlpack(x: Tensor) -> Any:
    """A DLPack capsule, to be read once.

    Raises:
        TypeError: x is no Tensor.
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"to_dlpack takes a Tensor, received {type(x).__name__}")
    return x._value.__dlpack__()


class _Capsule:
    """A bare capsule as the protocol of today wants it: an object that gives it and names its device (the CPU)."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: object) -> object:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def from_dlpack(dlpack: object) -> Tensor:
    """A Tensor of a DLPack capsule, or of an array of any library that has `__dlpack__`."""
    if type(dlpack).__name__ == "PyCapsule":
        capsule: Any = _Capsule(dlpack)
        return wrap(as_array(np.from_dlpack(capsule)))
    with x64():
        return wrap(jax.dlpack.from_dlpack(dlpack))
