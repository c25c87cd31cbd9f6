"""weight_norm and spectral_norm: before each call a layer's weight is computed from other parameters."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.rng import next_initializer_rng
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.tensor import Parameter, Tensor, as_array, wrap
from framework.paddle.nn.initializer import Assign
from framework.paddle.nn.layer import Layer


def _norm_except(v: jax.Array, dim: int | None) -> jax.Array:
    """L2 norms over all axes but `dim`, kept as ones; over all for None."""
    axes = tuple(axis for axis in range(v.ndim) if axis != dim)
    return jnp.sqrt(jnp.sum(jnp.square(v), axes, keepdims=True))


@operation(name="weight_norm")
def _weight_norm(v: Array, g: Array, dim: int | None) -> Array:
    norm = _norm_except(v, dim)
    return v * (g.reshape(norm.shape) / norm)


@operation(name="norm_except_dim", differentiable=False)
def _magnitude(v: Array, dim: int | None) -> Array:
    return _norm_except(v, dim).reshape(() if dim is None else (-1,))


class _WeightNorm:
    """The hook that computes `name` from `name_v` and `name_g`."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, dim

    def weight(self, layer: Layer) -> Tensor:
        return _weight_norm(getattr(layer, f"{self.name}_v"), getattr(layer, f"{self.name}_g"), self.dim)

    def __call__(self, layer: Layer, inputs: object) -> None:
        setattr(layer, self.name, self.weight(layer))


def _parameter_of(layer: Layer, name: str, where: str) -> Parameter:
    parameter = layer._parameters.get(name)
    if parameter is None:
        raise ShapeError(
            "the layer has no such parameter",
            where=where,
            received=f"{name} of {type(layer).__name__}",
            allowed=", ".join(layer._parameters) or "none",
        )
    return parameter


def _counted(dim: int, ndim: int, where: str) -> int:
    if not -ndim <= dim < ndim:
        raise ShapeError("there is no such axis", where=where, received=dim, allowed=f"{-ndim} to {ndim - 1}")
    return dim % ndim


def _without_class(hooks: dict[int, Any], kind: type, name: str) -> list[int]:
    return [key for key, hook in hooks.items() if isinstance(hook, kind) and hook.name == name]


def weight_norm(layer: Layer, name: str = "weight", dim: int | None = 0) -> Layer:
    """Make `name` of the layer `name_g * name_v / |name_v|`: direction and magnitude as two parameters.

    Args:
        dim: axis with a magnitude for each index; None: one magnitude for all.

    Raises:
        ShapeError: there is no such parameter or axis.
        RuntimeError: it is normalized already.
    """
    if _without_class(layer._forward_pre_hooks, _WeightNorm, name):
        raise RuntimeError(f"weight_norm is applied to {name!r} already")
    weight = _parameter_of(layer, name, "paddle.nn.utils.weight_norm")
    axis = None if dim in (None, -1) else _counted(dim, weight.ndim, "paddle.nn.utils.weight_norm")
    hook = _WeightNorm(name, axis)
    del layer._parameters[name]
    for part, value in (("v", weight), ("g", _magnitude(weight, axis))):
        layer.add_parameter(f"{name}_{part}", _filled(layer, value))
    hook(layer, None)
    layer.register_forward_pre_hook(hook)
    return layer


def _filled(layer: Layer, value: Tensor) -> Parameter:
    """A new parameter of the layer with these values: its next name, and no settings of the one it replaces.

    As in Paddle, whose optimizer states are keyed by these names (`conv1d_0.w_1`).
    """
    made = layer.create_parameter(value.shape, dtype=value.dtype, default_initializer=Assign(value))
    assert made is not None  # attr was not False
    return made


def remove_weight_norm(layer: Layer, name: str = "weight") -> Layer:
    """Make `name` one parameter again, with its present values.

    Raises:
        ShapeError: weight_norm was not applied to it.
    """
    keys = _without_class(layer._forward_pre_hooks, _WeightNorm, name)
    if not keys:
        raise ShapeError(
            "weight_norm was not applied",
            where="paddle.nn.utils.remove_weight_norm",
            received=f"{name} of {type(layer).__name__}",
        )
    hook = layer._forward_pre_hooks.pop(keys[0])
    value = hook.weight(layer)
    for part in ("g", "v"):
        del layer._parameters[f"{name}_{part}"]
    layer._parameters[name] = _filled(layer, value)  # the name is that of the computed weight until now
    return layer


def spectral(
    weight: jax.Array, u: jax.Array, v: jax.Array, dim: int, iterations: int, eps: float
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(weight / its largest singular value, u, v) after so many power iterations from u and v; `dim` are the rows."""

    def unit(x: jax.Array) -> jax.Array:
        return x / (jnp.linalg.norm(x) + eps)

    matrix = jnp.moveaxis(weight, dim, 0).reshape(weight.shape[dim], -1)
    fixed = jax.lax.stop_gradient(matrix)
    for _ in range(iterations):
        v = unit(fixed.T @ u)
        u = unit(fixed @ v)
    u, v = jax.lax.stop_gradient((u, v))
    return weight / (u @ matrix @ v), u, v


@operation(name="spectral_norm")
def spectral_norm_step(
    weight: Array, u: Array, v: Array, dim: int, iterations: int, eps: float
) -> tuple[Array, Array, Array]:
    """`spectral` as an operation: (weight, u, v)."""
    return spectral(weight, u, v, dim, iterations, eps)


class _SpectralNorm:
    """The hook that computes `name` from `name_orig` and refines `name_u` and `name_v` while training."""

    def __init__(self, name: str, iterations: int, eps: float, dim: int) -> None:
        self.name, self.iterations, self.eps, self.dim = name, iterations, eps, dim

    def weight(self, layer: Layer, iterations: int) -> Tensor:
        parts = [getattr(layer, f"{self.name}_{part}") for part in ("orig", "u", "v")]
        weight, u, v = spectral_norm_step(*parts, self.dim, iterations, self.eps)
        parts[1]._value, parts[2]._value = u._value, v._value
        return weight

    def __call__(self, layer: Layer, inputs: object) -> None:
        setattr(layer, self.name, self.weight(layer, self.iterations if layer.training else 0))


def spectral_norm(
    layer: Layer,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Layer:
    """Divide `name` of the layer by its largest singular value, estimated by power iteration while training.

    Args:
        dim: axis of the rows of the matrix; by default 1 for Linear and transposed convolutions, else 0.

    Raises:
        ShapeError: there is no such parameter or axis.
        RuntimeError: it is normalized already.
    """
    where = "paddle.nn.utils.spectral_norm"
    if _without_class(layer._forward_pre_hooks, _SpectralNorm, name):
        raise RuntimeError(f"spectral_norm is applied to {name!r} already")
    weight = _parameter_of(layer, name, where)
    if n_power_iterations <= 0:
        raise ShapeError("the number of iterations is positive", where=where, received=n_power_iterations)
    if dim is None:
        kinds = {kind.__name__ for kind in type(layer).__mro__}
        dim = int(bool(kinds & {"Linear", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"}))
    axis = _counted(dim, weight.ndim, where)
    rows = weight.shape[axis]
    hook = _SpectralNorm(name, n_power_iterations, eps, axis)
    del layer._parameters[name]
    layer.add_parameter(f"{name}_orig", weight)
    setattr(layer, name, wrap(weight._value))  # what it was, until the first call
    layer.register_buffer(f"{name}_u", unit_vector(rows, weight, eps))
    layer.register_buffer(f"{name}_v", unit_vector(weight.size // rows, weight, eps))
    layer.register_forward_pre_hook(hook)
    return layer


def unit_vector(size: int, like: Tensor, eps: float) -> Tensor:
    """A random direction."""
    values = next_initializer_rng().standard_normal(size)
    return Tensor(as_array(values / (np.linalg.norm(values) + eps), like.dtype))
