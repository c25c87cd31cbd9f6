"""Normalisation layers with Paddle's parameter names: BatchNorm keeps `weight, bias, _mean, _variance`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import numpy as np

from framework.core.errors import ShapeError
from framework.core.rng import next_initializer_rng
from framework.nn import functional as F
from framework.nn import initializer as I
from framework.nn.common import check_data_format
from framework.nn.layer import AttrLike, Layer


class BatchNorm(Layer):
    """Batch normalisation of [N, ..., C]. The running statistics are the buffers `_mean` and `_variance`.

    `momentum` weighs the old statistic. In training the call replaces the buffers; inside jit use `nn.apply`, which
    returns them. `use_global_stats=True` normalises with the running statistics in training too, and so does a layer
    that is frozen.
    """

    float32_parameters = True

    _ranks: tuple[int, ...] = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        weight_attr: AttrLike = None,
        bias_attr: AttrLike = None,
        data_format: str = "NHWC",
        use_global_stats: bool | None = None,
    ) -> None:
        super().__init__()
        check_data_format(data_format, type(self).__name__)
        self.num_features, self.momentum, self.epsilon = num_features, momentum, epsilon
        self.use_global_stats = use_global_stats
        shape = (num_features,)
        self.weight = self.create_parameter(shape, weight_attr, default_initializer=I.Constant(1.0))
        self.bias = self.create_parameter(shape, bias_attr, is_bias=True)
        self.register_buffer("_mean", np.zeros(num_features, np.float32))
        self.register_buffer("_variance", np.ones(num_features, np.float32))

    def forward(self, x: jax.Array) -> jax.Array:
        if x.ndim not in self._ranks:
            raise ShapeError(
                "the input has the wrong number of axes",
                where=type(self).__name__,
                received=x.shape,
                allowed=" or ".join(f"{n} axes" for n in self._ranks) + ", channels last",
            )
        running = True if self.statistics_frozen else self.use_global_stats
        y, mean, variance = F.batch_norm(
            x,
            self._mean,
            self._variance,
            self.weight,
            self.bias,
            self.training,
            self.momentum,
            self.epsilon,
            running,
        )
        if self.training and not running:
            self._mean, self._variance = mean, variance
        return y

    def extra_repr(self) -> str:
        return f"num_features={self.num_features}, momentum={self.momentum}, epsilon={self.epsilon}"


class BatchNorm1D(BatchNorm):
    """Batch normalisation of [N, C] or [N, T, C]."""

    _ranks = (2, 3)


class BatchNorm2D(BatchNorm):
    """Batch normalisation of [N, H, W, C]."""

    _ranks = (4,)


class BatchNorm3D(BatchNorm):
    """Batch normalisation of [N, D, H, W, C]."""

    _ranks = (5,)


class SyncBatchNorm(BatchNorm):
    """Batch normalisation over all devices.

    It is BatchNorm: under jit the batch is one global array, whatever its sharding, and XLA reduces over all of it.
    """

    @classmethod
    def convert_sync_batchnorm(cls, layer: Layer) -> Layer:
        """`layer` itself: every BatchNorm is synchronous here."""
        return layer


class LayerNorm(Layer):
    """Normalises the trailing axes `normalized_shape`. weight and bias are flat, as in Paddle."""

    float32_parameters = True

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        epsilon: float = 1e-5,
        weight_attr: AttrLike = None,
        bias_attr: AttrLike = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (
            (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        )
        self.epsilon = epsilon
        size = (math.prod(self.normalized_shape),)
        self.weight = self.create_parameter(size, weight_attr, default_initializer=I.Constant(1.0))
        self.bias = self.create_parameter(size, bias_attr, is_bias=True)

    def forward(self, x: jax.Array) -> jax.Array:
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.epsilon)

    def extra_repr(self) -> str:
        return f"normalized_shape={self.normalized_shape}, epsilon={self.epsilon}"


class GroupNorm(Layer):
    """Normalises each of `num_groups` runs of channels of [N, ..., C] over all pixels."""

    float32_parameters = True

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        epsilon: float = 1e-5,
        weight_attr: AttrLike = None,
        bias_attr: AttrLike = None,
        data_format: str = "NHWC",
    ) -> None:
        super().__init__()
        check_data_format(data_format, "GroupNorm")
        self.num_groups, self.num_channels, self.epsilon = num_groups, num_channels, epsilon
        self.weight = self.create_parameter((num_channels,), weight_attr, default_initializer=I.Constant(1.0))
        self.bias = self.create_parameter((num_channels,), bias_attr, is_bias=True)

    def forward(self, x: jax.Array) -> jax.Array:
        return F.group_norm(x, self.num_groups, self.epsilon, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}, epsilon={self.epsilon}"


class InstanceNorm2D(Layer):
    """Normalises each channel of each sample of [N, ..., C]. The parameters are called `scale` and `bias`.

    `momentum` is accepted for Paddle's sake: there are no running statistics.
    """

    float32_parameters = True

    def __init__(
        self,
        num_features: int,
        epsilon: float = 1e-5,
        momentum: float = 0.9,
        weight_attr: AttrLike = None,
        bias_attr: AttrLike = None,
        data_format: str = "NHWC",
    ) -> None:
        super().__init__()
        check_data_format(data_format, type(self).__name__)
        self.num_features, self.epsilon = num_features, epsilon
        self.scale = self.create_parameter((num_features,), weight_attr, default_initializer=I.Constant(1.0))
        self.bias = self.create_parameter((num_features,), bias_attr, is_bias=True)

    def forward(self, x: jax.Array) -> jax.Array:
        return F.instance_norm(x, weight=self.scale, bias=self.bias, eps=self.epsilon)

    def extra_repr(self) -> str:
        return f"num_features={self.num_features}, epsilon={self.epsilon}"


class RMSNorm(Layer):
    """Divides the last axis by the root of its mean square, and multiplies by `weight` [hidden_size].

    With `unit_offset` it multiplies by 1 + weight, which starts at 0, as in Gemma. See `functional.rms_norm`.
    """

    float32_parameters = True

    def __init__(
        self,
        hidden_size: int,
        epsilon: float = 1e-6,
        weight_attr: AttrLike = None,
        unit_offset: bool = False,
    ) -> None:
        super().__init__()
        self.epsilon, self.unit_offset = epsilon, unit_offset
        start = I.Constant(0.0 if unit_offset else 1.0)
        self.weight = self.create_parameter((hidden_size,), weight_attr, default_initializer=start)

    def forward(self, x: jax.Array) -> jax.Array:
        weight = 1 + self.weight.astype("float32") if self.unit_offset else self.weight
        return F.rms_norm(x, weight.shape, weight, self.epsilon)

    def extra_repr(self) -> str:
        return f"{self._parameters['weight'].shape[0]}, epsilon={self.epsilon}"


class InstanceNorm1D(InstanceNorm2D):
    """Normalises each channel of each sample of [N, T, C]."""


class InstanceNorm3D(InstanceNorm2D):
    """Normalises each channel of each sample of [N, D, H, W, C]."""


class SpectralNorm(Layer):
    """`forward(weight)` divides a weight by its largest singular value. The vectors start at each call from the buffers
    `weight_u` and `weight_v`, which do not change, as in Paddle; `nn.utils.spectral_norm` refines them.
    """

    def __init__(
        self, weight_shape: Sequence[int], dim: int = 0, power_iters: int = 1, eps: float = 1e-12
    ) -> None:
        super().__init__()
        self.dim, self.power_iters, self.eps = dim, power_iters, eps
        rows = int(weight_shape[dim])
        rng = next_initializer_rng()
        for name, size in (("weight_u", rows), ("weight_v", math.prod(weight_shape) // rows)):
            self.register_buffer(name, rng.standard_normal(size).astype("float32"))

    def forward(self, x: jax.Array) -> jax.Array:
        return F.spectral_norm(x, self.weight_u, self.weight_v, self.dim, self.power_iters, self.eps)[0]
