"""Normalisation as layers. Running statistics are parameters that are not trained, as in Paddle."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from framework import nn as core
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.tensor import Parameter, Tensor
from framework.paddle.nn import functional as F
from framework.paddle.nn.faces import ParametricFace, parametric_face
from framework.paddle.nn.functional.norm import group_norm, spectral_norm
from framework.paddle.nn.initializer import Constant, Normal
from framework.paddle.nn.layer import Layer
from framework.paddle.nn.param_attr import AttrLike, ParamAttr


def _statistic(layer: Layer, name: str | None, value: float, size: int) -> Parameter:
    attr = ParamAttr(name=name, initializer=Constant(value), trainable=False)
    parameter = layer.create_parameter([size], attr)
    assert parameter is not None
    return parameter


_RANKS = {"NCL": (2, 3), "NCHW": (4,), "NCDHW": (5,)}


class _Normalizer(ParametricFace):
    """Images whose number of axes is that of the class, which its default format says."""

    _own_forward = True
    _ranks: tuple[int, ...] = ()

    def _settled(self, settings: dict[str, object]) -> dict[str, object]:
        self._ranks = self._ranks or _RANKS[self._row.signature.parameters["data_format"].default]
        return settings

    def _check_axes(self, x: Tensor) -> None:
        if x._value.ndim not in self._ranks:
            raise ValueError(
                f"{type(self).__name__} takes {' or '.join(map(str, self._ranks))} axes, received {x.shape}"
            )


class _BatchNorm(_Normalizer):
    """Normalise each channel over the batch; `weight, bias, _mean, _variance`."""

    _use_global_stats: bool | None = None

    def _parameter_type(self) -> str:
        kind = super()._parameter_type()
        return "float32" if kind == "float16" else kind

    def _create(self, settings: Mapping[str, Any]) -> None:
        size, name = settings["num_features"], settings["name"]
        one = Constant(1.0)
        self.weight = self.create_parameter([size], settings["weight_attr"], default_initializer=one)
        self.bias = self.create_parameter([size], settings["bias_attr"], is_bias=True)
        self._mean = _statistic(self, name and f"{name}_mean", 0.0, size)
        self._variance = _statistic(self, name and f"{name}_variance", 1.0, size)

    def forward(self, input: Tensor) -> Tensor:
        self._check_axes(input)
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


def copy_batch_norm(layer: ParametricFace, kind: type[ParametricFace]) -> ParametricFace:
    """A batch norm of this kind with the parameters and statistics of `layer`."""
    settings = [getattr(layer, name) for name in ("_num_features", "_momentum", "_epsilon")]
    attrs = {name: getattr(layer, f"_{name}") for name in ("weight_attr", "bias_attr")}
    without = {name: False for name, attr in attrs.items() if attr is False}
    new = kind(*settings, **without, data_format=layer._data_format)
    for name, attr in attrs.items():
        setattr(new, f"_{name}", attr)
    for name in ("weight", "bias", "_mean", "_variance"):
        setattr(new, name, getattr(layer, name))
    new.training = layer.training
    return new


class _SyncBatchNorm(_BatchNorm):
    """A batch that is split over devices is one array here, and its mean is that of the whole."""

    _ranks = (2, 3, 4, 5)

    @classmethod
    def convert_sync_batchnorm(cls, layer: Layer) -> Layer:
        """The layer with a SyncBatchNorm, which has the same parameters, in place of each batch norm inside."""
        if isinstance(layer, _BatchNorm) and not isinstance(layer, _SyncBatchNorm):
            return copy_batch_norm(layer, cls)
        for name, sublayer in layer.named_children():
            layer._sub_layers[name] = cls.convert_sync_batchnorm(sublayer)
        return layer


class _InstanceNorm(_Normalizer):
    """Normalise each channel of each sample over its pixels; `scale` and `bias`."""

    _shown = "num_features={num_features}, epsilon={epsilon}"

    def _settled(self, settings: dict[str, object]) -> dict[str, object]:
        weight_attr, bias_attr = settings["weight_attr"], settings["bias_attr"]
        if (weight_attr is False) != (bias_attr is False):
            raise ShapeError(
                f"{type(self).__name__} has both parameters or none",
                received=f"weight_attr={weight_attr}, bias_attr={bias_attr}",
                allowed="False for both",
            )
        return super()._settled(settings)

    def forward(self, input: Tensor) -> Tensor:
        self._check_axes(input)
        return F.instance_norm(
            input, None, None, self.scale, self.bias, True, self._momentum, self._epsilon, self._data_format
        )


class _LayerNorm(ParametricFace):
    """The trailing axes as a list."""

    _shown = "normalized_shape={normalized_shape}, epsilon={epsilon}"

    def _settled(self, settings: dict[str, Any]) -> dict[str, object]:
        shape = settings["normalized_shape"]
        return {**settings, "normalized_shape": [shape] if isinstance(shape, int) else list(shape)}


class _GroupNorm(ParametricFace):
    """False keeps a parameter, as ones or zeros that are not trained."""

    _shown = "num_groups={num_groups}, num_channels={num_channels}, epsilon={epsilon}"

    def _settled(self, settings: dict[str, object]) -> dict[str, object]:
        if settings["data_format"] not in ("NCHW", "NHWC"):
            raise ValueError(f"unsupported data layout: {settings['data_format']}")
        return settings

    def _create(self, settings: Mapping[str, object]) -> None:
        attrs = {name: settings[name] for name in ("weight_attr", "bias_attr")}
        fixed = {name: ParamAttr(trainable=False) for name, attr in attrs.items() if attr is False}
        super()._create({**settings, **fixed})


_face = functools.partial(parametric_face, module=__name__, inputs="input")
BatchNorm1D = _face(core.BatchNorm1D, F.batch_norm, _BatchNorm, data_format="NCL")
BatchNorm2D = _face(core.BatchNorm2D, F.batch_norm, _BatchNorm)
BatchNorm3D = _face(core.BatchNorm3D, F.batch_norm, _BatchNorm, data_format="NCDHW")
SyncBatchNorm = _face(core.SyncBatchNorm, F.batch_norm, _SyncBatchNorm, without="use_global_stats")
LayerNorm = _face(core.LayerNorm, F.layer_norm, _LayerNorm)
GroupNorm = _face(core.GroupNorm, group_norm, _GroupNorm)
_instance = functools.partial(_face, base=_InstanceNorm, sources={"weight": "scale", "eps": "_epsilon"})
InstanceNorm1D = _instance(core.InstanceNorm1D, F.instance_norm, data_format="NCL")
InstanceNorm2D = _instance(core.InstanceNorm2D, F.instance_norm)
InstanceNorm3D = _instance(core.InstanceNorm3D, F.instance_norm, data_format="NCDHW")


class BatchNorm(Layer):
    """Batch normalisation of any number of axes, followed by the activation that `act` names."""

    def __init__(
        self,
        num_channels: int,
        act: str | None = None,
        is_test: bool = False,
        momentum: float = 0.9,
        epsilon: float = 1e-05,
        param_attr: AttrLike = None,
        bias_attr: AttrLike = None,
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
