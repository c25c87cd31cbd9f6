"""Normalisation as layers. Running statistics are parameters that are not trained, as in Paddle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from framework.core.errors import ShapeError
from framework.paddle._kernel.dtypes import get_default_dtype
from framework.paddle._kernel.tensor import Parameter, Tensor
from framework.paddle.nn import functional as F
from framework.paddle.nn.functional.norm import group_norm, spectral_norm
from framework.paddle.nn.functional_layer import functional_layer
from framework.paddle.nn.initializer import Constant, Normal
from framework.paddle.nn.layer import Layer
from framework.paddle.nn.param_attr import ParamAttr


def _statistic(layer: Layer, name: str | None, value: float, size: int) -> Parameter:
    attr = ParamAttr(name=name, initializer=Constant(value), trainable=False)
    parameter = layer.create_parameter([size], attr)
    assert parameter is not None
    return parameter


class _BatchNorm(Layer):
    """Normalise each channel over the batch; `weight, bias, _mean, _variance`."""

    _ranks: ClassVar[tuple[int, ...]]

    def _build(
        self,
        num_features: int,
        momentum: float,
        epsilon: float,
        weight_attr: Any,
        bias_attr: Any,
        data_format: str,
        use_global_stats: bool | None,
        name: str | None,
    ) -> None:
        kind = get_default_dtype()
        self._dtype = "float32" if kind == "float16" else kind
        self._num_features, self._momentum, self._epsilon = num_features, momentum, epsilon
        self._weight_attr, self._bias_attr = weight_attr, bias_attr
        self._use_global_stats, self._name, self._data_format = use_global_stats, name, data_format
        one = Constant(1.0)
        self.weight = self.create_parameter([num_features], weight_attr, default_initializer=one)
        self.bias = self.create_parameter([num_features], bias_attr, is_bias=True)
        self._mean = _statistic(self, name and f"{name}_mean", 0.0, num_features)
        self._variance = _statistic(self, name and f"{name}_variance", 1.0, num_features)

    def forward(self, input: Tensor) -> Tensor:
        if input._value.ndim not in self._ranks:
            raise ValueError(
                f"{type(self).__name__} takes {' or '.join(map(str, self._ranks))} axes, received {input.shape}"
            )
        return F.batch_norm(
            input,
            self._mean,
            self._variance,
            self.weight,
            self.bias,
            self.training,
            self._momentum,
            self._epsilon,
            self._data_format,
            self._use_global_stats,
        )

    def extra_repr(self) -> str:
        text = f"num_features={self._num_features}, momentum={self._momentum}, epsilon={self._epsilon}"
        if self._data_format != "NCHW":
            text += f", data_format={self._data_format}"
        return text + (f", name={self._name}" if self._name is not None else "")


class BatchNorm1D(_BatchNorm):
    """Batch normalisation of [N, C] or [N, C, L]."""

    _ranks = (2, 3)

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-05,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCL",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        attributes = (weight_attr, bias_attr, data_format, use_global_stats, name)
        self._build(num_features, momentum, epsilon, *attributes)


class BatchNorm2D(_BatchNorm):
    """Batch normalisation of [N, C, H, W]."""

    _ranks = (4,)

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-05,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        attributes = (weight_attr, bias_attr, data_format, use_global_stats, name)
        self._build(num_features, momentum, epsilon, *attributes)


class BatchNorm3D(_BatchNorm):
    """Batch normalisation of [N, C, D, H, W]."""

    _ranks = (5,)

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-05,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCDHW",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        attributes = (weight_attr, bias_attr, data_format, use_global_stats, name)
        self._build(num_features, momentum, epsilon, *attributes)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over the batch of all devices: a batch that is split over devices is one array here, and its
    mean is that of the whole."""

    _ranks = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-05,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._build(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, None, name)

    @classmethod
    def convert_sync_batchnorm(cls, layer: Layer) -> Layer:
        """The layer with a SyncBatchNorm, which has the same parameters, in place of each batch norm inside."""
        if isinstance(layer, _BatchNorm) and not isinstance(layer, SyncBatchNorm):
            new = cls(
                layer._num_features,
                layer._momentum,
                layer._epsilon,
                layer._weight_attr is not False and None,
                layer._bias_attr is not False and None,
                layer._data_format,
            )
            new._weight_attr, new._bias_attr = layer._weight_attr, layer._bias_attr
            for name in ("weight", "bias", "_mean", "_variance"):
                setattr(new, name, getattr(layer, name))
            new.training = layer.training
            return new
        for name, sublayer in layer.named_children():
            layer._sub_layers[name] = cls.convert_sync_batchnorm(sublayer)
        return layer


class BatchNorm(Layer):
    """Batch normalisation of any number of axes, followed by the activation that `act` names."""

    def __init__(
        self,
        num_channels: int,
        act: str | None = None,
        is_test: bool = False,
        momentum: float = 0.9,
        epsilon: float = 1e-05,
        param_attr: Any = None,
        bias_attr: Any = None,
        dtype: str = "float32",
        data_layout: str = "NCHW",
        in_place: bool = False,
        moving_mean_name: str | None = None,
        moving_variance_name: str | None = None,
        do_model_average_for_mean_and_var: bool = True,
        use_global_stats: bool = False,
        trainable_statistics: bool = False,
    ) -> None:
        super().__init__(dtype="float32" if dtype == "float16" else dtype)
        self._param_attr, self._bias_attr, self._act = param_attr, bias_attr, act
        self._momentum, self._epsilon, self._data_layout = momentum, epsilon, data_layout
        self._is_test, self._in_place = is_test, in_place
        self._use_global_stats, self._trainable_statistics = use_global_stats, trainable_statistics
        one = Constant(1.0)
        self.weight = self.create_parameter([num_channels], param_attr, default_initializer=one)
        self.bias = self.create_parameter([num_channels], bias_attr, is_bias=True)
        self._mean = _statistic(self, moving_mean_name, 0.0, num_channels)
        self._variance = _statistic(self, moving_variance_name, 1.0, num_channels)

    def forward(self, input: Tensor) -> Tensor:
        y = F.batch_norm(
            input,
            self._mean,
            self._variance,
            self.weight,
            self.bias,
            self.training,
            self._momentum,
            self._epsilon,
            self._data_layout,
            self._use_global_stats or None,
        )
        return y if self._act is None else getattr(F, self._act)(y)


class LayerNorm(Layer):
    """Normalise the trailing axes `normalized_shape`."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        epsilon: float = 1e-05,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        self._normalized_shape, self._epsilon = shape, epsilon
        self._weight_attr, self._bias_attr = weight_attr, bias_attr
        one = Constant(1.0)
        self.weight = self.create_parameter([math.prod(shape)], weight_attr, default_initializer=one)
        self.bias = self.create_parameter([math.prod(shape)], bias_attr, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self._normalized_shape, self.weight, self.bias, self._epsilon)

    def extra_repr(self) -> str:
        return f"normalized_shape={self._normalized_shape}, epsilon={self._epsilon}"


class GroupNorm(Layer):
    """Normalise each of `num_groups` runs of channels over all pixels of a sample."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        epsilon: float = 1e-05,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        if data_format not in ("NCHW", "NHWC"):
            raise ValueError(f"unsupported data layout: {data_format}")
        self._num_groups, self._num_channels, self._epsilon = num_groups, num_channels, epsilon
        self._weight_attr, self._bias_attr, self._data_format = weight_attr, bias_attr, data_format
        # False keeps the parameter, as ones or zeros that are not trained.
        fixed = ParamAttr(trainable=False)
        one = Constant(1.0)
        weight_attr = fixed if weight_attr is False else weight_attr
        bias_attr = fixed if bias_attr is False else bias_attr
        self.weight = self.create_parameter([num_channels], weight_attr, default_initializer=one)
        self.bias = self.create_parameter([num_channels], bias_attr, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        return group_norm(
            input, self.weight, self.bias, self._num_groups, float(self._epsilon), self._data_format
        )

    def extra_repr(self) -> str:
        return f"num_groups={self._num_groups}, num_channels={self._num_channels}, epsilon={self._epsilon}"


class _InstanceNorm(Layer):
    """Normalise each channel of each sample over its pixels; `scale` and `bias`."""

    _ranks: ClassVar[tuple[int, ...]]

    def _build(
        self,
        num_features: int,
        epsilon: float,
        momentum: float,
        weight_attr: Any,
        bias_attr: Any,
        data_format: str,
    ) -> None:
        if (weight_attr is False) != (bias_attr is False):
            raise ShapeError(
                f"{type(self).__name__} has both parameters or none",
                received=f"weight_attr={weight_attr}, bias_attr={bias_attr}",
                allowed="False for both",
            )
        self._num_features, self._epsilon, self._momentum = num_features, epsilon, momentum
        self._weight_attr, self._bias_attr, self._data_format = weight_attr, bias_attr, data_format
        one = Constant(1.0)
        self.scale = self.create_parameter([num_features], weight_attr, default_initializer=one)
        self.bias = self.create_parameter([num_features], bias_attr, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        if input._value.ndim not in self._ranks:
            raise ValueError(
                f"{type(self).__name__} takes {' or '.join(map(str, self._ranks))} axes, received {input.shape}"
            )
        return F.instance_norm(
            input, None, None, self.scale, self.bias, True, self._momentum, self._epsilon, self._data_format
        )

    def extra_repr(self) -> str:
        return f"num_features={self._num_features}, epsilon={self._epsilon}"


class InstanceNorm1D(_InstanceNorm):
    """Instance normalisation of [N, C, L]."""

    _ranks = (2, 3)

    def __init__(
        self,
        num_features: int,
        epsilon: float = 1e-05,
        momentum: float = 0.9,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCL",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._build(num_features, epsilon, momentum, weight_attr, bias_attr, data_format)


class InstanceNorm2D(_InstanceNorm):
    """Instance normalisation of [N, C, H, W]."""

    _ranks = (4,)

    def __init__(
        self,
        num_features: int,
        epsilon: float = 1e-05,
        momentum: float = 0.9,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._build(num_features, epsilon, momentum, weight_attr, bias_attr, data_format)


class InstanceNorm3D(_InstanceNorm):
    """Instance normalisation of [N, C, D, H, W]."""

    _ranks = (5,)

    def __init__(
        self,
        num_features: int,
        epsilon: float = 1e-05,
        momentum: float = 0.9,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCDHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._build(num_features, epsilon, momentum, weight_attr, bias_attr, data_format)


LocalResponseNorm = functional_layer(
    "LocalResponseNorm",
    F.local_response_norm,
    module=__name__,
    inputs="input",
    prefix="",
    quiet=("data_format",),
)


class SpectralNorm(Layer):
    """A weight divided by its largest singular value, which power iteration finds; `weight_u, weight_v`."""

    def __init__(
        self,
        weight_shape: Sequence[int],
        dim: int = 0,
        power_iters: int = 1,
        eps: float = 1e-12,
        dtype: str = "float32",
    ) -> None:
        super().__init__(dtype=dtype)
        shape = [int(n) for n in weight_shape]
        if not math.prod(shape) or dim >= len(shape):
            raise ShapeError(
                "SpectralNorm: the weight has values, and `dim` is one of its axes",
                received=f"shape {shape}, dim {dim}",
            )
        self._power_iters, self._eps, self._dim, self._weight_shape = power_iters, eps, dim, shape
        fixed, start = ParamAttr(trainable=False), Normal(0.0, 1.0)
        rows = shape[dim]
        self.weight_u = self.create_parameter([rows], fixed, default_initializer=start)
        self.weight_v = self.create_parameter([math.prod(shape) // rows], fixed, default_initializer=start)

    def forward(self, x: Tensor) -> Tensor:
        settings = (self._dim, self._power_iters, self._eps)
        weight, u, v = spectral_norm(x, self.weight_u, self.weight_v, *settings)
        assert self.weight_u is not None and self.weight_v is not None
        self.weight_u._value, self.weight_v._value = u._value, v._value
        return weight
