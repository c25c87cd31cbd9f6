"""Activations as layers."""

from __future__ import annotations

from collections.abc import Callable

import jax

from framework.nn import functional as F
from framework.nn import initializer as I
from framework.nn.common import check_data_format
from framework.nn.layer import AttrLike, Layer


def _pointwise(name: str, function: Callable[[jax.Array], jax.Array]) -> type[Layer]:
    """A layer class without arguments around a function of one array."""

    def forward(self: Layer, x: jax.Array) -> jax.Array:
        return function(x)

    members = {
        "forward": forward,
        "__doc__": f"`functional.{name.lower()}` as a layer.",
        "__module__": __name__,
    }
    return type(name, (Layer,), members)


ReLU = _pointwise("ReLU", F.relu)
ReLU6 = _pointwise("ReLU6", F.relu6)
Sigmoid = _pointwise("Sigmoid", F.sigmoid)
LogSigmoid = _pointwise("LogSigmoid", F.log_sigmoid)
Tanh = _pointwise("Tanh", F.tanh)
Silu = _pointwise("Silu", F.silu)
Swish = _pointwise("Swish", F.silu)
Mish = _pointwise("Mish", F.mish)
Hardswish = _pointwise("Hardswish", F.hardswish)
Softsign = _pointwise("Softsign", F.softsign)
Tanhshrink = _pointwise("Tanhshrink", F.tanhshrink)


class _Configured(Layer):
    """A layer around a function of an array and numbers, which `_arguments` holds by name."""

    _function: Callable[..., jax.Array]

    def __init__(self, **arguments: object) -> None:
        super().__init__()
        self._arguments = arguments

    def forward(self, x: jax.Array) -> jax.Array:
        return type(self)._function(x, **self._arguments)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self._arguments.items())


class Hardsigmoid(_Configured):
    """slope * x + offset clamped to [0, 1]. Paddle's layer has slope 1/6; the OCR necks use 0.2."""

    _function = staticmethod(F.hardsigmoid)

    def __init__(self, slope: float = 1 / 6, offset: float = 0.5) -> None:
        super().__init__(slope=slope, offset=offset)


class Hardtanh(_Configured):
    """x clamped to [min, max]."""

    _function = staticmethod(F.hardtanh)

    def __init__(self, min: float = -1.0, max: float = 1.0) -> None:
        super().__init__(min=min, max=max)


class GELU(_Configured):
    """x * Phi(x), exact by default."""

    _function = staticmethod(F.gelu)

    def __init__(self, approximate: bool = False) -> None:
        super().__init__(approximate=approximate)


class LeakyReLU(_Configured):
    """x where positive, negative_slope * x elsewhere."""

    _function = staticmethod(F.leaky_relu)

    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__(negative_slope=negative_slope)


class ELU(_Configured):
    """x where positive, alpha * (exp(x) - 1) elsewhere."""

    _function = staticmethod(F.elu)

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__(alpha=alpha)


class CELU(_Configured):
    """x where positive, alpha * (exp(x / alpha) - 1) elsewhere."""

    _function = staticmethod(F.celu)

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__(alpha=alpha)


class SELU(_Configured):
    """Self-normalising ELU."""

    _function = staticmethod(F.selu)

    def __init__(self, scale: float = 1.0507009873554805, alpha: float = 1.6732632423543772) -> None:
        super().__init__(scale=scale, alpha=alpha)


class Softplus(_Configured):
    """log(1 + exp(beta * x)) / beta."""

    _function = staticmethod(F.softplus)

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__(beta=beta, threshold=threshold)


class Softshrink(_Configured):
    """x moved towards zero by `threshold`."""

    _function = staticmethod(F.softshrink)

    def __init__(self, threshold: float = 0.5) -> None:
        super().__init__(threshold=threshold)


class Hardshrink(_Configured):
    """x where |x| exceeds `threshold`."""

    _function = staticmethod(F.hardshrink)

    def __init__(self, threshold: float = 0.5) -> None:
        super().__init__(threshold=threshold)


class ThresholdedReLU(_Configured):
    """x where it exceeds `threshold`."""

    _function = staticmethod(F.thresholded_relu)

    def __init__(self, threshold: float = 1.0) -> None:
        super().__init__(threshold=threshold)


class Maxout(_Configured):
    """The maximum of each run of `groups` neighbouring channels."""

    _function = staticmethod(F.maxout)

    def __init__(self, groups: int, axis: int = -1) -> None:
        super().__init__(groups=groups, axis=axis)


class GLU(_Configured):
    """The first half of `axis` times the sigmoid of the second."""

    _function = staticmethod(F.glu)

    def __init__(self, axis: int = -1) -> None:
        super().__init__(axis=axis)


class Softmax(_Configured):
    """exp(x) normalised to sum 1 over `axis`."""

    _function = staticmethod(F.softmax)

    def __init__(self, axis: int = -1) -> None:
        super().__init__(axis=axis)


class LogSoftmax(_Configured):
    """log of softmax over `axis`."""

    _function = staticmethod(F.log_softmax)

    def __init__(self, axis: int = -1) -> None:
        super().__init__(axis=axis)


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
