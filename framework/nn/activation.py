"""Activations as layers."""

from __future__ import annotations

from collections.abc import Callable

import jax

from framework.core.errors import ShapeError
from framework.nn import functional as F
from framework.nn import initializer as I
from framework.nn.common import FunctionLayer, check_data_format
from framework.nn.layer import AttrLike, Layer


def _layer(name: str, function: Callable[..., jax.Array]) -> type[FunctionLayer]:
    """The layer class of an activation, with its documentation and its arguments."""
    members = {"__doc__": function.__doc__, "__module__": __name__}
    return type(name, (FunctionLayer,), members, function=function)


ReLU = _layer("ReLU", F.relu)
ReLU6 = _layer("ReLU6", F.relu6)
Sigmoid = _layer("Sigmoid", F.sigmoid)
LogSigmoid = _layer("LogSigmoid", F.log_sigmoid)
Tanh = _layer("Tanh", F.tanh)
Silu = _layer("Silu", F.silu)
Swish = _layer("Swish", F.silu)
Mish = _layer("Mish", F.mish)
Hardswish = _layer("Hardswish", F.hardswish)
Softsign = _layer("Softsign", F.softsign)
Tanhshrink = _layer("Tanhshrink", F.tanhshrink)
Hardsigmoid = _layer("Hardsigmoid", F.hardsigmoid)
Hardtanh = _layer("Hardtanh", F.hardtanh)
GELU = _layer("GELU", F.gelu)
LeakyReLU = _layer("LeakyReLU", F.leaky_relu)
ELU = _layer("ELU", F.elu)
CELU = _layer("CELU", F.celu)
SELU = _layer("SELU", F.selu)
Softplus = _layer("Softplus", F.softplus)
Softshrink = _layer("Softshrink", F.softshrink)
Hardshrink = _layer("Hardshrink", F.hardshrink)
ThresholdedReLU = _layer("ThresholdedReLU", F.thresholded_relu)
Maxout = _layer("Maxout", F.maxout)
GLU = _layer("GLU", F.glu)
Softmax = _layer("Softmax", F.softmax)
LogSoftmax = _layer("LogSoftmax", F.log_softmax)


class PReLU(Layer):
    """x where positive, a learned slope times x elsewhere. The parameter is called `_weight`, as in Paddle."""

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        weight_attr: AttrLike = None,
        data_format: str = "NHWC",
    ) -> None:
        super().__init__()
        check_data_format(data_format, "PReLU")
        self._weight = self.create_parameter(
            (num_parameters,), weight_attr, default_initializer=I.Constant(init)
        )

    def forward(self, x: jax.Array) -> jax.Array:
        return F.prelu(x, self._weight)


class RReLU(Layer):
    """x where positive; elsewhere x times a slope, random in training: see `functional.rrelu`."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3) -> None:
        super().__init__()
        self.lower, self.upper = lower, upper

    def forward(self, x: jax.Array) -> jax.Array:
        return F.rrelu(x, self.lower, self.upper, self.training)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}"


class Softmax2D(Layer):
    """softmax over the channels of an image [N, H, W, C] or [H, W, C]."""

    def forward(self, x: jax.Array) -> jax.Array:
        if x.ndim not in (3, 4):
            raise ShapeError(
                "Softmax2D takes images", received=x.shape, allowed="[N, H, W, C] or [H, W, C], channels last"
            )
        return F.softmax(x, -1)
