"""What the optimizers do to one parameter: pure functions of arrays, in the order of operations of Paddle's kernels.

They stand here and not on framework.optimizer's rules because twenty steps are to agree with Paddle in the last digits:
its Adam keeps powers of beta as state and rounds `1 - beta` in the type of the parameter, which the core avoids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

State = dict[str, jax.Array]


@dataclass(frozen=True)
class Slot:
    """One array of state for each parameter: its first value, one number or the parameter's shape, and whether it is
    of at least 32 bits (else of the parameter's type)."""

    fill: float = 0.0
    single: bool = False
    wide: bool = True


@dataclass(frozen=True)
class Rule:
    """Settings of an optimizer for a parameter."""

    def slots(self) -> Mapping[str, Slot]:
        """The state by the names that Paddle gives it."""
        return {}

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        """The new parameter and state; all of one type, float32 or float64, `lr` of shape []."""
        raise NotImplementedError


@dataclass(frozen=True)
class SGD(Rule):
    """p - lr g."""

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        return p - lr * g, state


@dataclass(frozen=True)
class Momentum(Rule):
    """A velocity v = momentum v + g, and p - lr v; Nesterov: p - lr (g + momentum v). Source: Sutskever et al. 2013."""

    momentum: float = 0.9
    nesterov: bool = False

    def slots(self) -> Mapping[str, Slot]:
        return {"velocity": Slot(wide=False)}

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        momentum = rounded(self.momentum, p)
        velocity = state["velocity"] * momentum + g
        step = (g + velocity * momentum) * lr if self.nesterov else lr * velocity
        return p - step, {"velocity": velocity}


@dataclass(frozen=True)
class Adam(Rule):
    """Moments with bias corrected. Source: Kingma and Ba 2015."""

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def slots(self) -> Mapping[str, Slot]:
        return {
            "moment1": Slot(),
            "moment2": Slot(),
            "beta1_pow_acc": Slot(self.beta1, single=True),
            "beta2_pow_acc": Slot(self.beta2, single=True),
        }

    def beta(self, p: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.asarray(self.beta1, p.dtype), jnp.asarray(self.beta2, p.dtype)

    def moments(self, p: jax.Array, g: jax.Array, state: State) -> State:
        """The averages of the gradient and its square, and the powers of beta for the next step."""
        beta1, beta2 = self.beta(p)
        return {
            "moment1": beta1 * state["moment1"] + (1 - beta1) * g,
            "moment2": beta2 * state["moment2"] + (1 - beta2) * (g * g),
            "beta1_pow_acc": state["beta1_pow_acc"] * beta1,
            "beta2_pow_acc": state["beta2_pow_acc"] * beta2,
        }

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        new = self.moments(p, g, state)
        root = jnp.sqrt(1 - state["beta2_pow_acc"][0])
        rate = lr * (root / (1 - state["beta1_pow_acc"][0]))
        epsilon = jnp.asarray(self.epsilon, p.dtype) * root
        return p - rate * (new["moment1"] / (jnp.sqrt(new["moment2"]) + epsilon)), new


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam with the decay apart from the gradient. Source: Loshchilov and Hutter 2019."""

    decay: float = 0.01
    ratio: float = 1.0

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        lr = lr * rounded(self.ratio, p)
        if self.decay:
            p = p * (1 - lr * rounded(self.decay, p))
        return super().update(p, g, lr, state)


@dataclass(frozen=True)
class Adamax(Adam):
    """Adam with the infinity norm. Source: Kingma and Ba 2015."""

    def slots(self) -> Mapping[str, Slot]:
        return {
            "moment": Slot(),
            "inf_norm": Slot(),
            "beta1_pow_acc": Slot(self.beta1, single=True, wide=False),
        }

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        beta1, beta2 = rounded(self.beta1, p), rounded(self.beta2, p)
        moment = beta1 * state["moment"] + (1 - beta1) * g
        norm = jnp.maximum(jnp.abs(g), beta2 * state["inf_norm"] + rounded(self.epsilon, p))
        power = state["beta1_pow_acc"]
        moved = p - lr / (1 - power[0]) * (moment / norm)
        return moved, {"moment": moment, "inf_norm": norm, "beta1_pow_acc": power * self.beta1}


@dataclass(frozen=True)
class Adagrad(Rule):
    """Divides by the root of the sum of squares. Source: Duchi et al. 2011."""

    epsilon: float = 1e-6
    start: float = 0.0

    def slots(self) -> Mapping[str, Slot]:
        return {"moment": Slot(self.start, wide=False)}

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        moment = state["moment"] + g * g
        return p - lr * g / (jnp.sqrt(moment) + rounded(self.epsilon, p)), {"moment": moment}


@dataclass(frozen=True)
class Adadelta(Rule):
    """Steps in the units of the parameter. Source: Zeiler 2012."""

    epsilon: float = 1e-6
    rho: float = 0.95

    def slots(self) -> Mapping[str, Slot]:
        return {"_avg_squared_grad": Slot(wide=False), "_avg_squared_update": Slot(wide=False)}

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        rho, epsilon = rounded(self.rho, p), rounded(self.epsilon, p)
        squared = rho * state["_avg_squared_grad"] + (1 - rho) * g * g
        before = state["_avg_squared_update"]
        step = -jnp.sqrt((before + epsilon) / (squared + epsilon)) * g
        after = rho * before + (1 - rho) * step * step
        return p + lr * step, {"_avg_squared_grad": squared, "_avg_squared_update": after}


@dataclass(frozen=True)
class RMSProp(Rule):
    """Divides by the root of a running mean of squares. Source: Hinton 2012."""

    epsilon: float = 1e-6
    rho: float = 0.95
    momentum: float = 0.0
    centered: bool = False

    def slots(self) -> Mapping[str, Slot]:
        return {name: Slot(wide=False) for name in ("momentum", "mean_square", "mean_grad")}

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        rho, epsilon = rounded(self.rho, p), rounded(self.epsilon, p)
        square = rho * state["mean_square"] + (1 - rho) * g * g
        mean, spread = state["mean_grad"], square
        if self.centered:
            mean = rho * mean + (1 - rho) * g
            spread = square - mean * mean
        step = rounded(self.momentum, p) * state["momentum"] + lr * g / jnp.sqrt(spread + epsilon)
        return p - step, {"momentum": step, "mean_square": square, "mean_grad": mean}


@dataclass(frozen=True)
class Lamb(Adam):
    """Adam scaled by the ratio of norms, a parameter at a time. Source: You et al. 2020."""

    decay: float = 0.01
    always_adapt: bool = False

    def beta(self, p: jax.Array) -> tuple[jax.Array, jax.Array]:
        return rounded(self.beta1, p), rounded(self.beta2, p)

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        new = self.moments(p, g, state)
        first = new["moment1"] / (1 - state["beta1_pow_acc"][0])
        second = new["moment2"] / (1 - state["beta2_pow_acc"][0])
        step = first / (jnp.sqrt(second) + rounded(self.epsilon, p)) + rounded(self.decay, p) * p
        if self.decay or self.always_adapt:
            own, norm = jnp.sqrt(jnp.sum(p * p)), jnp.sqrt(jnp.sum(step * step))
            lr = lr * jnp.where((own > 0) & (norm > 0), own / norm, 1)
        return p - lr * step, new


def rounded(number: float, like: jax.Array) -> jax.Array:
    """A setting as most kernels of Paddle see it: of the parameter's type, but never finer than float32."""
    return jnp.asarray(np.float32(number), like.dtype)
