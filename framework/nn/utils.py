"""weight_norm and spectral_norm, layers whose weight is computed from other arrays each time it is read; and
parameters as one vector.

The layer gets a class of its own with a property in place of the parameter. There are no hooks: the weight is right
wherever it is read, also by another layer that ties to it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.errors import WeightError
from framework.core.foreign_names import module_error
from framework.core.rng import next_initializer_rng
from framework.core.types import PyTree
from framework.nn import functional as F
from framework.nn import initializer as I
from framework.nn.common import Linear
from framework.nn.conv import _ConvTranspose
from framework.nn.layer import Layer, Parameter

_Axis = int | None


def _take(layer: Layer, name: str) -> Parameter:
    if name not in layer._parameters:
        raise WeightError(
            "unknown parameter to normalise",
            where=type(layer).__name__,
            received=repr(name),
            allowed=", ".join(layer._parameters) or "a layer with parameters",
        )
    return layer._parameters.pop(name)


# -- weight norm --------------------------------------------------------------------------------------------------


def _norm_except(array: jax.Array | np.ndarray, dim: _Axis) -> PyTree:
    """The norm of each slice of `array` along `dim`, [n]; of the whole array when `dim` is None."""
    axes = None if dim is None else tuple(a for a in range(array.ndim) if a != dim)
    return (array * array).sum(axes) ** 0.5


@functools.partial(jax.jit, static_argnames=("dim",))
def _weight_norm(v: jax.Array, g: jax.Array, dim: _Axis) -> jax.Array:
    scale = g / _norm_except(v, dim)
    return v * (scale if dim is None else scale.reshape([-1 if a == dim else 1 for a in range(v.ndim)]))


@functools.cache
def _weight_norm_class(cls: type[Layer], name: str, dim: _Axis) -> type[Layer]:
    """A subclass of `cls` whose `name` is weight_g * weight_v / |weight_v|."""

    def weight(self: Layer) -> jax.Array:
        return _weight_norm(getattr(self, f"{name}_v"), getattr(self, f"{name}_g"), dim)

    members = {
        name: property(weight),
        "__module__": __name__,
        "_plain": (cls, name, dim),
        "float32_parameters": True,  # lengths are taken in float32
    }
    return type(f"WeightNorm{cls.__name__}", (cls,), members)


def weight_norm(layer: Layer, name: str = "weight", dim: int | None = 0) -> Layer:
    """Train the length and the direction of a weight apart: `<name>_g` and `<name>_v`; returns the layer.

    `dim` is the axis whose slices have a length each; None (or -1) gives the whole array one.
    Source: Salimans and Kingma 2016.
    """
    dim = None if dim in (None, -1) else int(dim)
    parameter = _take(layer, name)
    length = np.asarray(_norm_except(np.asarray(parameter.value), dim), np.float32)
    setattr(layer, f"{name}_v", parameter)
    setattr(layer, f"{name}_g", Parameter(length.shape, parameter.dtype, parameter.attr, I.Assign(length)))
    object.__setattr__(layer, "__class__", _weight_norm_class(type(layer), name, dim))
    return layer


def remove_weight_norm(layer: Layer, name: str = "weight") -> Layer:
    """Make the weight a parameter again, with the value that it has now; returns the layer."""
    plain = getattr(type(layer), "_plain", None)
    if plain is None or plain[1] != name:
        raise WeightError(
            f"{name!r} of this layer has no weight_norm",
            where=type(layer).__name__,
            received=repr(name),
            allowed="a layer that weight_norm returned",
        )
    value, attr = np.asarray(getattr(layer, name)), layer._parameters[f"{name}_v"].attr
    for part in ("v", "g"):
        delattr(layer, f"{name}_{part}")
    object.__setattr__(layer, "__class__", plain[0])
    setattr(layer, name, Parameter(value.shape, value.dtype, attr, I.Assign(value)))
    return layer


# -- spectral norm ------------------------------------------------------------------------------------------------


@functools.cache
def _spectral_norm_class(cls: type[Layer], name: str, iterations: int, eps: float, dim: int) -> type[Layer]:
    """A subclass of `cls` whose `name` is divided by its largest singular value; training calls refine the estimate."""

    def weight(self: Layer) -> jax.Array:
        original = getattr(self, f"{name}_orig")
        u, v = getattr(self, f"{name}_u"), getattr(self, f"{name}_v")
        return F.spectral_norm(original, u, v, dim, 0, eps)[0]

    def forward(self: Layer, *args: object, **kwargs: object) -> PyTree:
        if self.training and not self.statistics_frozen:
            original = getattr(self, f"{name}_orig")
            u, v = getattr(self, f"{name}_u"), getattr(self, f"{name}_v")
            _, u, v = F.spectral_norm(jax.lax.stop_gradient(original), u, v, dim, iterations, eps)
            setattr(self, f"{name}_u", u)
            setattr(self, f"{name}_v", v)
        return cls.forward(self, *args, **kwargs)

    members = {
        name: property(weight),
        "forward": forward,
        "__module__": __name__,
        "float32_parameters": True,  # and so are singular values
    }
    return type(f"SpectralNorm{cls.__name__}", (cls,), members)


def spectral_norm(
    layer: Layer,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Layer:
    """Divide a weight by its largest singular value, estimated by power iteration; returns the layer.

    The parameter becomes `<name>_orig`; the vectors are the buffers `<name>_u` and `<name>_v`. `dim` is the axis of
    the outputs: 1 for Linear and transposed convolutions, 0 otherwise. Source: Miyato et al. 2018.
    """
    if dim is None:
        dim = 1 if isinstance(layer, (_ConvTranspose, Linear)) else 0
    parameter = _take(layer, name)
    setattr(layer, f"{name}_orig", parameter)
    rng = next_initializer_rng()
    rows = parameter.shape[dim]
    for part, size in (("u", rows), ("v", parameter.size // rows)):
        vector = rng.standard_normal(size).astype(np.float32)
        layer.register_buffer(f"{name}_{part}", vector / max(np.linalg.norm(vector), eps))
    object.__setattr__(
        layer, "__class__", _spectral_norm_class(type(layer), name, int(n_power_iterations), float(eps), dim)
    )
    return layer


# -- parameters as one vector -------------------------------------------------------------------------------------


def parameters_to_vector(parameters: Iterable[Parameter]) -> jax.Array:
    """The values of all parameters behind one another, [n]."""
    return jnp.concatenate([parameter.value.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: jax.Array, parameters: Iterable[Parameter]) -> None:
    """Give each parameter its values of `vec` [n], in the order of `parameters_to_vector`.

    Raises:
        WeightError: the vector has fewer or more values than the parameters.
    """
    listed = list(parameters)
    sizes = [parameter.size for parameter in listed]
    if vec.ndim != 1 or vec.shape[0] != sum(sizes):
        raise WeightError(
            "the vector does not fit the parameters", received=vec.shape, allowed=f"({sum(sizes)},)"
        )
    for parameter, values in zip(listed, jnp.split(vec, np.cumsum(sizes)[:-1])):
        parameter.set_value(values.reshape(parameter.shape))


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise module_error("framework.nn.utils", name, globals())
