"""Activations as layers."""

from __future__ import annotations

import functools
from typing import Any

from framework.core.errors import ShapeError
from framework.paddle._kernel.dtypes import get_default_dtype
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn import functional as F
from framework.paddle.nn.functional_layer import functional_layer
from framework.paddle.nn.initializer import Constant
from framework.paddle.nn.layer import Layer

_layer = functools.partial(functional_layer, module=__name__)

CELU = _layer("CELU", F.celu)
ELU = _layer("ELU", F.elu)
GELU = _layer("GELU", F.gelu)
GLU = _layer("GLU", F.glu)
Hardshrink = _layer("Hardshrink", F.hardshrink)
Hardsigmoid = _layer("Hardsigmoid", F.hardsigmoid, settings=())
Hardswish = _layer("Hardswish", F.hardswish)
Hardtanh = _layer("Hardtanh", F.hardtanh)
LeakyReLU = _layer("LeakyReLU", F.leaky_relu)
LogSigmoid = _layer("LogSigmoid", F.log_sigmoid)
LogSoftmax = _layer("LogSoftmax", F.log_softmax, settings=("axis",))
Maxout = _layer("Maxout", F.maxout)
Mish = _layer("Mish", F.mish)
ReLU = _layer("ReLU", F.relu)
ReLU6 = _layer("ReLU6", F.relu6)
SELU = _layer("SELU", F.selu)
Sigmoid = _layer("Sigmoid", F.sigmoid)
Silu = _layer("Silu", F.silu)
Softmax = _layer("Softmax", F.softmax, settings=("axis",))
Softplus = _layer("Softplus", F.softplus)
Softshrink = _layer("Softshrink", F.softshrink)
Softsign = _layer("Softsign", F.softsign)
Swish = _layer("Swish", F.swish)
Tanh = _layer("Tanh", F.tanh)
Tanhshrink = _layer("Tanhshrink", F.tanhshrink)
ThresholdedReLU = _layer("ThresholdedReLU", F.thresholded_relu)


class RReLU(_layer("RReLU", F.rrelu)):
    """x where positive, elsewhere x times a slope that training draws anew for each value."""

    def extra_repr(self) -> str:
        settings, _, name = super().extra_repr().partition(", name=")
        return f"{settings}, training={self.training}, dtype={self._dtype}" + (
            f", name={name}" if name else ""
        )


class Softmax2D(Layer):
    """softmax over the channels of [N, C, H, W] or [C, H, W]."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()
        self._name = name

    def forward(self, x: Tensor) -> Tensor:
        if len(x.shape) not in (3, 4):
            raise ShapeError("Softmax2D takes images", received=x.shape, allowed="[N, C, H, W] or [C, H, W]")
        return F.softmax(x, -3)

    def extra_repr(self) -> str:
        return f"name={self._name}" if self._name else ""


class PReLU(Layer):
    """x where positive, weight * x elsewhere; one weight for all, or one for each channel."""

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        weight_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._num_parameters, self._init, self._data_format = num_parameters, init, data_format
        self._weight_attr, self._name = weight_attr, name
        self._weight = self.create_parameter(
            [num_parameters], weight_attr, get_default_dtype(), default_initializer=Constant(init)
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.prelu(x, self._weight, self._data_format)

    def extra_repr(self) -> str:
        text = f"num_parameters={self._num_parameters}, data_format={self._data_format}, init={self._init}"
        return f"{text}, dtype={self._dtype}" + (f", name={self._name}" if self._name else "")
