"""Gradients of low-precision models that are added up in float32, in `main_grad` of each parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import jax.numpy as jnp

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Parameter, Tensor, wrap
from framework.paddle._kernel.x64 import x64
from framework.paddle.distributed.fleet.utils.hybrid_parallel_util import obtain_optimizer_parameters_list
from framework.paddle.distributed.gradients import watch_backward
from framework.paddle.distributed.parallel import WrappedLayer
from framework.paddle.nn.layer import Layer

if TYPE_CHECKING:
    from framework.paddle.amp.grad_scaler import GradScaler
    from framework.paddle.optimizer.base import Optimizer


class MixPrecisionLayer(WrappedLayer):
    """A layer of which each backward adds the gradients to `main_grad`, in float32, and leaves `grad` empty."""

    def __init__(self, layers: Layer, dtype: str = "float16") -> None:
        super().__init__(f"{layers.full_name()}_mix_precision")
        assert dtype in ("float16", "bfloat16"), f"MixPrecisionLayer: float16 or bfloat16, received {dtype!r}"
        self._layers, self._dtype = layers, dtype
        for parameter in layers.parameters():
            if not hasattr(parameter, "main_grad"):
                parameter.main_grad = None  # type: ignore[attr-defined]
        watch_backward(self)

    def after_backward(self, leaves: Sequence[Tensor]) -> None:
        """Move the gradients of this layer's parameters."""
        reached = {id(leaf) for leaf in leaves}
        with x64():
            for parameter in self._layers.parameters():
                if id(parameter) in reached and parameter._grad is not None:
                    _add(parameter, parameter._grad)
                    parameter._grad = None


def _add(parameter: Parameter, gradient: Tensor) -> None:
    value = gradient._value.astype(jnp.float32)
    if parameter.main_grad is None:
        parameter.main_grad = wrap(value)  # type: ignore[attr-defined]
    else:
        parameter.main_grad._value = parameter.main_grad._value + value


class MixPrecisionOptimizer:
    """An optimizer that updates by `main_grad`. All else is the optimizer's."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._inner_opt = optimizer
        self._parameter_list: list[Parameter] = obtain_optimizer_parameters_list(optimizer)

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner_opt, name)

    def step(self) -> None:
        """Update by the gradients in `main_grad`."""
        groups = self._inner_opt._groups()
        self._inner_opt._apply([(group, _with_main_grad(group["params"])) for group in groups])

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Zeros for `main_grad`, or None."""
        for parameter in self._parameter_list:
            gradient = getattr(parameter, "main_grad", None)
            if not hasattr(parameter, "main_grad"):
                parameter.clear_gradient(set_to_zero)
            elif gradient is not None:
                zeros = wrap(jnp.zeros_like(gradient._value)) if set_to_zero else None
                parameter.main_grad = zeros  # type: ignore[attr-defined]


def _with_main_grad(parameters: Sequence[Parameter]) -> list[tuple[Parameter, Tensor]]:
    pairs = [(one, getattr(one, "main_grad", None)) for one in parameters if not one.stop_gradient]
    return [(one, gradient) for one, gradient in pairs if gradient is not None]


class MixPrecisionScaler:
    """A scaler that divides `main_grad`. All else is the scaler's."""

    def __init__(self, scaler: GradScaler) -> None:
        self._inner_scaler = scaler
        scaler._gradients_of = _main_gradients  # type: ignore[method-assign]

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner_scaler, name)


def _main_gradients(optimizer: object) -> list[Tensor]:
    return [gradient for _, gradient in _with_main_grad(obtain_optimizer_parameters_list(optimizer))]


_complete(__name__)
