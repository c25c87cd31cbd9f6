"""What optimizers keep and read: gradients, arrays made under a trace, entries of a saved state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import jax
import numpy as np

from framework.core.rng import array_of
from framework.paddle._kernel.arguments import DecayLike, TensorLike
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.tensor import Parameter, Tensor, as_array
from framework.paddle._kernel.x64 import x64
from framework.paddle.regularizer import L2Decay, WeightDecayRegularizer

Pair = tuple[Parameter, Tensor]


def with_gradients(parameters: Iterable[Parameter]) -> list[Pair]:
    """The parameters that are trained and have a gradient, with it."""
    pairs = []
    for parameter in parameters:
        if not parameter.stop_gradient:
            grad = parameter._grad if parameter._grad is not None else parameter.grad
            if grad is not None:
                pairs.append((parameter, grad))
    return pairs


def concrete(values: np.ndarray) -> jax.Array:
    """A jax array of these values, under a trace too."""
    with jax.ensure_compile_time_eval(), x64():
        return array_of(values)


def regularizer_of(decay: DecayLike) -> WeightDecayRegularizer | None:
    """A regularizer of what `weight_decay` takes: a number is a coefficient of L2."""
    return L2Decay(decay) if isinstance(decay, float | int) else decay


def entry_of(state: Mapping[str, object], name: str) -> str | None:
    """The key of an entry: its name, or the only one with another number at the end, which counts the optimizers that
    the process has made for the parameter."""
    if name in state:
        return name
    base = name.rpartition("_")[0]
    found = [key for key in state if key.rpartition("_")[0] == base and key.rpartition("_")[2].isdecimal()]
    return found[0] if len(found) == 1 else None


def load_into(tensor: Tensor, value: TensorLike) -> None:
    """Set an entry of the state. Raises: ShapeError: the value has another shape or type."""
    array = as_array(value)
    if array.shape != tensor._value.shape or array.dtype != tensor._value.dtype:
        raise ShapeError(
            "an entry of the state does not fit",
            where=tensor.name,
            received=f"{array.dtype}{list(array.shape)}",
            allowed=f"{tensor._value.dtype}{tensor.shape}",
            fix="load the state into an optimizer of a model of the same shapes and types",
        )
    tensor._value = array
