"""Normalisation."""

from __future__ import annotations

from collections.abc import Callable

import jax

from framework.nn import functional as core
from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn.functional.face import channels_first, face
from framework.paddle.nn.functional.layout import is_last


@operation(name="batch_norm", residual="cpu")
def _batch_norm(
    x: Array,
    running_mean: Array,
    running_var: Array,
    weight: Array | None,
    bias: Array | None,
    momentum: float,
    epsilon: float,
    data_format: str,
) -> tuple[Array, Array, Array]:
    statistics, settings = (running_mean, running_var), (True, momentum, epsilon, None)
    if x.size == x.shape[-1 if is_last(data_format) else 1]:
        return x, *statistics  # Paddle leaves alone what has one value a channel: its variance would be 0
    return core.batch_norm(x, *statistics, weight, bias, *settings, not is_last(data_format))


@operation(name="batch_norm")
def _batch_norm_inference(
    x: Array,
    running_mean: Array,
    running_var: Array,
    weight: Array | None,
    bias: Array | None,
    epsilon: float,
    data_format: str,
) -> Array:
    statistics, settings = (running_mean, running_var), (False, 0.9, epsilon, None)
    return core.batch_norm(x, *statistics, weight, bias, *settings, not is_last(data_format))[0]


@checked
def batch_norm(
    x: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-05,
    data_format: str = "NCHW",
    use_global_stats: bool | None = None,
    name: str | None = None,
) -> Tensor:
    """Normalise each channel over the batch, and move the running statistics in place; `momentum` weighs the old ones.

    Without `training` the running statistics are used and stay; `use_global_stats` says so itself, either way. A batch
    with one value for each channel comes back as it is, and the statistics stay.
    """
    of_batch = training if use_global_stats is None else not use_global_stats
    if not of_batch:
        return _batch_norm_inference(x, running_mean, running_var, weight, bias, float(epsilon), data_format)
    y, mean, variance = _batch_norm(
        x, running_mean, running_var, weight, bias, float(momentum), float(epsilon), data_format
    )
    running_mean._value, running_var._value = mean._value, variance._value
    return y


def _own_statistics(
    function: Callable[..., jax.Array],
    x: jax.Array,
    weight: jax.Array | None,
    bias: jax.Array | None,
    eps: float,
    data_format: str,
    **unused: object,
) -> jax.Array:
    """Running statistics change nothing, as in Paddle."""
    return channels_first(function, x, data_format, weight=weight, bias=bias, eps=eps)


def _of_images(
    function: Callable[..., jax.Array], x: jax.Array, data_format: str, **settings: object
) -> jax.Array:
    if x.ndim < 3:
        raise ShapeError("local_response_norm takes 3 or more axes", received=x.shape, allowed="[N, C, ...]")
    return channels_first(function, x, data_format, **settings)


group_norm = face(core.group_norm, data_format="NCHW")
instance_norm = face(core.instance_norm, _own_statistics, data_format="NCHW")
layer_norm = face(core.layer_norm)
local_response_norm = face(core.local_response_norm, _of_images, data_format="NCHW")
spectral_norm = face(core.spectral_norm, name=False)

_complete(__name__)
