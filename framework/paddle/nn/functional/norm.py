"""Normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from framework.core.errors import ShapeError
from framework.nn import functional as core
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn.functional.layout import from_last, is_last, to_last


@operation(name="batch_norm")
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

    Without `training` the running statistics are used and stay; `use_global_stats` says so itself, either way.
    """
    of_batch = training if use_global_stats is None else not use_global_stats
    if not of_batch:
        return _batch_norm_inference(x, running_mean, running_var, weight, bias, float(epsilon), data_format)
    y, mean, variance = _batch_norm(
        x, running_mean, running_var, weight, bias, float(momentum), float(epsilon), data_format
    )
    running_mean._value, running_var._value = mean._value, variance._value
    return y


@operation(name="layer_norm")
def _layer_norm(
    x: Array, weight: Array | None, bias: Array | None, normalized_shape: Any, epsilon: float
) -> Array:
    return core.layer_norm(x, normalized_shape, weight, bias, epsilon)


def layer_norm(
    x: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    epsilon: float = 1e-05,
    name: str | None = None,
) -> Tensor:
    """Normalise the trailing axes `normalized_shape`; weight and bias have as many values."""
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    return _layer_norm(x, weight, bias, shape, epsilon)


@operation(name="instance_norm")
def _instance_norm(x: Array, weight: Array | None, bias: Array | None, eps: float, data_format: str) -> Array:
    return from_last(
        core.instance_norm(to_last(x, data_format), None, None, weight, bias, eps=eps), data_format
    )


def instance_norm(
    x: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.9,
    eps: float = 1e-05,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Tensor:
    """Normalise each channel of each sample over its pixels; running statistics change nothing, as in Paddle."""
    return _instance_norm(x, weight, bias, float(eps), data_format)


@operation(name="group_norm")
def group_norm(
    x: Array, weight: Array | None, bias: Array | None, num_groups: int, epsilon: float, data_format: str
) -> Array:
    """Normalise each of `num_groups` runs of channels over all pixels of a sample."""
    return from_last(core.group_norm(to_last(x, data_format), num_groups, epsilon, weight, bias), data_format)


@operation
def local_response_norm(
    x: Array,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    k: float = 1.0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Array:
    """x / (k + alpha * the mean square over `size` neighbouring channels) ** beta."""
    if x.ndim < 3:
        raise ShapeError("local_response_norm takes 3 or more axes", received=x.shape, allowed="[N, C, ...]")
    return from_last(core.local_response_norm(to_last(x, data_format), size, alpha, beta, k), data_format)


@operation
def spectral_norm(
    weight: Array, u: Array, v: Array, dim: int = 0, power_iters: int = 1, eps: float = 1e-12
) -> tuple[Array, Array, Array]:
    """(weight / sigma, u, v) after `power_iters` steps of power iteration."""
    return core.spectral_norm(weight, u, v, dim, power_iters, eps)
