"""Weight decay as a value: Paddle's `L1Decay` and `L2Decay`."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework.core.errors import ConfigError


@dataclass(frozen=True)
class WeightDecay:
    """What is added to a parameter's gradient: `l1 * sign(p) + l2 * p`.

    In YAML `weight_decay: 5.0e-4` is L2 and `weight_decay: {l1: 1.0e-5}` is L1. In Python `L1Decay(coeff)` and
    `L2Decay(coeff)` make it, for the optimizer's `weight_decay` and for `ParamAttr(regularizer=...)`.
    """

    l1: float = 0.0
    l2: float = 0.0

    def __post_init__(self) -> None:
        if self.l1 < 0 or self.l2 < 0:
            raise ConfigError(
                "weight decay is negative", received=f"l1 {self.l1}, l2 {self.l2}", allowed="0 or more"
            )

    def add_to(self, grad: jax.Array, param: jax.Array) -> jax.Array:
        """`grad` with the decay of `param`."""
        if self.l2:
            grad = grad + self.l2 * param
        return grad + self.l1 * jnp.sign(param) if self.l1 else grad

    @staticmethod
    def of(value: object) -> WeightDecay:
        """A number is L2, None is no decay, a WeightDecay itself."""
        if isinstance(value, WeightDecay):
            return value
        if value is None:
            return WeightDecay()
        if isinstance(value, (int, float)):
            return WeightDecay(l2=float(value))
        raise ConfigError(
            "the weight decay must be a number or a regularizer",
            received=repr(value),
            allowed="a number, L1Decay(coeff), L2Decay(coeff) or None",
        )


def L1Decay(coeff: float = 0.0) -> WeightDecay:
    """The decay `coeff * sign(p)`, the gradient of `coeff * |p|`."""
    return WeightDecay(l1=coeff)


def L2Decay(coeff: float = 0.0) -> WeightDecay:
    """The decay `coeff * p`, the gradient of `coeff / 2 * p**2`."""
    return WeightDecay(l2=coeff)
