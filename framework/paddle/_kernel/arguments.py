"""What Paddle's arguments may be: the types that many of its functions share. Imports nothing of the room."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import jax
    import numpy as np

    from framework.paddle._kernel.dtypes import dtype
    from framework.paddle._kernel.tensor import Tensor
    from framework.paddle.regularizer import WeightDecayRegularizer

Number: TypeAlias = "int | float | complex"

TensorLike: TypeAlias = "Tensor | jax.Array | np.ndarray | np.generic | Number | Sequence[TensorLike]"
"""What `as_array` makes an array of: Tensors, arrays, numbers, nested lists of them."""

Tensors: TypeAlias = "Tensor | Sequence[Tensor]"
"""One Tensor, or a list or tuple of them."""

Integers: TypeAlias = "int | Tensor | np.ndarray | Sequence[int | Tensor]"
"""Sizes, a shape, positions or axes: integers, a list of them, some or all of them Tensors."""

DTypeLike: TypeAlias = "dtype | np.dtype | type | str"
"""What `to_numpy` takes: paddle.float32, a name, a type of numpy or Python."""

Padding: TypeAlias = "int | str | Tensor | Sequence[int] | Sequence[Sequence[int]]"
"""A number, one or two for each axis, pairs for each axis, SAME or VALID."""

Parameters: TypeAlias = "Sequence[Tensor] | Sequence[Mapping[str, object]]"
"""What optimizers take: parameters, or groups of them, each with settings of its own under `params`."""

DecayLike: TypeAlias = "WeightDecayRegularizer | float | None"
"""A regularizer, or the factor of L2."""

Function: TypeAlias = Callable[..., object]
"""A function of the user's that is called with the user's own values."""
