"""paddle.regularizer: what a parameter adds to its own gradient."""

from __future__ import annotations

import jax.numpy as jnp

from framework.optimizer.regularizer import WeightDecay
from framework.paddle._kernel.tensor import Tensor, wrap
from framework.paddle._kernel.x64 import x64


class WeightDecayRegularizer:
    """Base of the two: a coefficient, and the core's value of the decay."""

    decay: WeightDecay

    def __init__(self, coeff: float = 0.0) -> None:
        self._coeff = float(coeff)

    @property
    def coeff(self) -> float:
        return self._coeff

    def __call__(self, param: Tensor, grad: Tensor, block: object = None) -> Tensor:
        """The term that is added to the gradient."""
        with x64():
            return wrap(self.decay.add_to(jnp.zeros_like(param._value), param._value))


class L1Decay(WeightDecayRegularizer):
    """Adds `coeff * sign(parameter)` to the gradient, the gradient of `coeff * sum(|parameter|)`."""

    def __init__(self, coeff: float = 0.0) -> None:
        super().__init__(coeff)
        self.decay = WeightDecay(l1=self._coeff)

    def __str__(self) -> str:
        return f"L1Decay, coeff={self._coeff:f}"


class L2Decay(WeightDecayRegularizer):
    """Adds `coeff * parameter` to the gradient, the gradient of `coeff / 2 * sum(parameter**2)`."""

    def __init__(self, coeff: float = 0.0) -> None:
        super().__init__(coeff)
        self.decay = WeightDecay(l2=self._coeff)

    def __str__(self) -> str:
        return f"L2Decay, coeff={self._coeff:f}"


__all__ = ["L1Decay", "L2Decay"]
