"""InputSpec: the shape, type and name of one input."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.tensor import Tensor


class InputSpec:
    """What an input looks like. A size of None or -1 may change from call to call."""

    def __init__(
        self,
        shape: Sequence[int | None],
        dtype: object = "float32",
        name: str | None = None,
        stop_gradient: bool = False,
    ) -> None:
        self.shape = tuple(-1 if size is None else int(size) for size in shape)
        self.dtype = types.of_numpy(types.to_numpy("float32" if dtype is None else dtype))
        self.name = name
        self.stop_gradient = stop_gradient

    @classmethod
    def from_tensor(cls, tensor: Tensor, name: str | None = None) -> InputSpec:
        """Shape, type and name of a Tensor."""
        return cls(tensor.shape, tensor.dtype, name or tensor.name)

    @classmethod
    def from_numpy(cls, ndarray: np.ndarray, name: str | None = None) -> InputSpec:
        """Shape and type of an array."""
        return cls(ndarray.shape, ndarray.dtype, name)

    def batch(self, batch_size: int | list[int] | tuple[int, ...]) -> InputSpec:
        """Put a batch axis in front, in place."""
        if isinstance(batch_size, list | tuple):
            if len(batch_size) != 1:
                raise ValueError(f"batch_size should have one element, but received {len(batch_size)}")
            batch_size = batch_size[0]
        if not isinstance(batch_size, int):
            raise TypeError(f"batch_size should be an int, but received {type(batch_size).__name__}")
        self.shape = (batch_size, *self.shape)
        return self

    def unbatch(self) -> InputSpec:
        """Take the first axis away, in place."""
        if not self.shape:
            raise ValueError("an InputSpec of a 0-D Tensor has no batch axis to take away")
        self.shape = self.shape[1:]
        return self

    def __repr__(self) -> str:
        parts = f"shape={self.shape}, dtype={self.dtype!r}, name={self.name}"
        return f"InputSpec({parts}, stop_gradient={self.stop_gradient})"

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype.name, self.name, self.stop_gradient))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InputSpec) and hash(self) == hash(other) and self.shape == other.shape


def _compatible_non_tensor_spec(src_spec: object, desired_spec: object) -> bool:
    """Whether two settings that are no Tensors are one: the same structure with the same values."""
    return _hashed(src_spec) == _hashed(desired_spec)


def _hashed(value: object) -> int | None:
    """A number for a structure and its values; None: it holds what cannot be hashed."""
    leaves, structure = jax.tree_util.tree_flatten(value)
    try:
        return hash((structure, *leaves))
    except TypeError:
        return None
