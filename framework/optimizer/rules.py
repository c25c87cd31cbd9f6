"""What the optimizers do to one parameter: pure functions of arrays, in the order of operations of Paddle's kernels.

Each rule stands once. `framework.optimizer` applies it to parameters by name, `framework.paddle.optimizer` to Tensors,
where twenty steps are to agree with Paddle in the last digits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

State = dict[str, jax.Array]
Number = float | np.floating


@dataclass(frozen=True)
class StateSlot:
    """One array of state for each parameter.

    Attributes:
        fill: Its first value.
        wide: At least 32 bits, else the parameter's type.
        leading: Axes before those of the parameter.
        single: No array of the parameter's shape but one number, the same for all parameters.
        power: A single number, [1], that is `fill**t` at step t = 1, 2, … Only where `count` is not given.
        rowwise: One number for each row: the parameter's shape without its last axis. Only of tables.
    """

    fill: float = 0.0
    wide: bool = True
    leading: tuple[int, ...] = ()
    single: bool = False
    power: bool = False
    rowwise: bool = False


@dataclass(frozen=True)
class Rule:
    """Settings of an optimizer for a parameter."""

    timed: ClassVar[bool] = False
    """Whether the number of the step matters: the state has `count`, the steps done, int32 [], or the power slots."""

    def slots(self) -> Mapping[str, StateSlot]:
        """The state by the names that Paddle gives it."""
        return {}

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        """The new parameter and the new state of `slots`; all of one type, float32 or float64, `lr` of shape []."""
        raise NotImplementedError


@dataclass(frozen=True)
class SGDRule(Rule):
    """p - lr g."""

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        return p - lr * g, state


@dataclass(frozen=True)
class MomentumRule(Rule):
    """A velocity v = momentum v + g, and p - lr v; Nesterov: p - lr (g + momentum v). Source: Sutskever et al. 2013."""

    momentum: float = 0.9
    nesterov: bool = False

    def slots(self) -> Mapping[str, StateSlot]:
        return {"velocity": StateSlot(wide=False)}

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        momentum = rounded(self.momentum, p)
        velocity = state["velocity"] * momentum + g
        step = (g + velocity * momentum) * lr if self.nesterov else lr * velocity
        return p - step, {"velocity": velocity}


@dataclass(frozen=True)
class AdamRule(Rule):
    """Moments with bias corrected. Source: Kingma and Ba 2015."""

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    timed: ClassVar[bool] = True

    def slots(self) -> Mapping[str, StateSlot]:
        powers = {
            "beta1_pow_acc": StateSlot(self.beta1, power=True),
            "beta2_pow_acc": StateSlot(self.beta2, power=True),
        }
        return {"moment1": StateSlot(), "moment2": StateSlot(), **powers}

    def betas(self, p: jax.Array) -> tuple[Number, Number]:
        return p.dtype.type(self.beta1), p.dtype.type(self.beta2)

    def moments(self, p: jax.Array, g: jax.Array, state: State) -> State:
        """The averages of the gradient and its square, and the powers of beta for the next step."""
        beta1, beta2 = self.betas(p)
        return {
            "moment1": beta1 * state["moment1"] + (1 - beta1) * g,
            "moment2": beta2 * state["moment2"] + (1 - beta2) * (g * g),
            **next_powers(state, beta1_pow_acc=beta1, beta2_pow_acc=beta2),
        }

    def weights(self, p: jax.Array, state: State) -> tuple[jax.Array, jax.Array]:
        """`1 - beta**t` of both betas: the sums of the weights of the gradients in the averages."""
        beta1, beta2 = self.betas(p)
        first = one_minus_power(beta1, "beta1_pow_acc", p, state)
        return first, one_minus_power(beta2, "beta2_pow_acc", p, state)

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        new = self.moments(p, g, state)
        weight1, weight2 = self.weights(p, state)
        root = jnp.sqrt(weight2)
        rate = lr * (root / weight1)
        epsilon = p.dtype.type(self.epsilon) * root
        return p - rate * (new["moment1"] / (jnp.sqrt(new["moment2"]) + epsilon)), new


@dataclass(frozen=True)
class LazyAdamRule(AdamRule):
    """Adam of a table [V, D] that moves the rows with a gradient alone: parameter and averages of others stay, though
    the step counts for the correction of the bias. A row whose gradient is all zeros is taken for one without."""

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        moved, new = super().update(p, g, lr, state)
        has_gradient = (g != 0).any(axis=-1, keepdims=True)
        rows = {
            name: jnp.where(has_gradient, new[name], state[name]).astype(new[name].dtype)
            for name in ("moment1", "moment2")
        }
        return jnp.where(has_gradient, moved, p), {**new, **rows}


@dataclass(frozen=True)
class AdamWRule(AdamRule):
    """Adam with the decay apart from the gradient. Source: Loshchilov and Hutter 2019."""

    decay: float = 0.01
    ratio: float = 1.0

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        lr = lr * rounded(self.ratio, p)
        if self.decay:
            p = p * (1 - lr * rounded(self.decay, p))
        return super().update(p, g, lr, state)


@dataclass(frozen=True)
class AdamaxRule(AdamRule):
    """Adam with the infinity norm. Source: Kingma and Ba 2015, algorithm 2."""

    def slots(self) -> Mapping[str, StateSlot]:
        power = StateSlot(self.beta1, wide=False, power=True)
        return {"moment": StateSlot(), "inf_norm": StateSlot(), "beta1_pow_acc": power}

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        beta1, beta2 = rounded(self.beta1, p), rounded(self.beta2, p)
        moment = beta1 * state["moment"] + (1 - beta1) * g
        norm = jnp.maximum(jnp.abs(g), beta2 * state["inf_norm"] + rounded(self.epsilon, p))
        moved = p - lr / one_minus_power(beta1, "beta1_pow_acc", p, state) * (moment / norm)
        return moved, {"moment": moment, "inf_norm": norm, **next_powers(state, beta1_pow_acc=self.beta1)}


@dataclass(frozen=True)
class AdagradRule(Rule):
    """Divides by the root of the sum of squares. Source: Duchi et al. 2011."""

    epsilon: float = 1e-6
    start: float = 0.0

    def slots(self) -> Mapping[str, StateSlot]:
        return {"moment": StateSlot(self.start, wide=False)}

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        moment = state["moment"] + g * g
        return p - lr * g / (jnp.sqrt(moment) + rounded(self.epsilon, p)), {"moment": moment}


@dataclass(frozen=True)
class RowwiseAdagradRule(Rule):
    """Adagrad with one sum for each row of a table [rows, features]: the mean of the squares of its gradient.

    Source: FBGEMM's exact row-wise Adagrad (TorchRec).
    """

    epsilon: float = 1e-8
    start: float = 0.0

    def slots(self) -> Mapping[str, StateSlot]:
        return {"moment": StateSlot(self.start, rowwise=True)}

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        moment = state["moment"] + jnp.mean(g * g, -1)
        return p - lr * g / (jnp.sqrt(moment) + rounded(self.epsilon, p))[..., None], {"moment": moment}


@dataclass(frozen=True)
class AdadeltaRule(Rule):
    """Steps in the units of the parameter. Source: Zeiler 2012."""

    epsilon: float = 1e-6
    rho: float = 0.95

    def slots(self) -> Mapping[str, StateSlot]:
        return {"_avg_squared_grad": StateSlot(wide=False), "_avg_squared_update": StateSlot(wide=False)}

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        rho, epsilon = rounded(self.rho, p), rounded(self.epsilon, p)
        squared = rho * state["_avg_squared_grad"] + (1 - rho) * g * g
        before = state["_avg_squared_update"]
        step = -jnp.sqrt((before + epsilon) / (squared + epsilon)) * g
        after = rho * before + (1 - rho) * step * step
        return p + lr * step, {"_avg_squared_grad": squared, "_avg_squared_update": after}


@dataclass(frozen=True)
class RMSPropRule(Rule):
    """Divides by the root of a running mean of squares. Source: Hinton 2012; centered: arXiv 1308.0850."""

    epsilon: float = 1e-6
    rho: float = 0.95
    momentum: float = 0.0
    centered: bool = False
    keep_mean: bool = True
    """The mean of the gradients is a slot though it is not `centered`, as Paddle has it."""

    def slots(self) -> Mapping[str, StateSlot]:
        mean = ("mean_grad",) if self.centered or self.keep_mean else ()
        return {name: StateSlot(wide=False) for name in ("momentum", "mean_square", *mean)}

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        rho, epsilon = rounded(self.rho, p), rounded(self.epsilon, p)
        new = state | {"mean_square": rho * state["mean_square"] + (1 - rho) * g * g}
        spread = new["mean_square"]
        if self.centered:
            new["mean_grad"] = rho * state["mean_grad"] + (1 - rho) * g
            spread = spread - new["mean_grad"] * new["mean_grad"]
        new["momentum"] = rounded(self.momentum, p) * state["momentum"] + lr * g / jnp.sqrt(spread + epsilon)
        return p - new["momentum"], new


@dataclass(frozen=True)
class LambRule(AdamRule):
    """Adam scaled by the ratio of norms, a parameter at a time. Source: You et al. 2020, algorithm 2."""

    decay: float = 0.01
    always_adapt: bool = False

    def betas(self, p: jax.Array) -> tuple[Number, Number]:
        return rounded(self.beta1, p), rounded(self.beta2, p)

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        new = self.moments(p, g, state)
        weight1, weight2 = self.weights(p, state)
        first, second = new["moment1"] / weight1, new["moment2"] / weight2
        step = first / (jnp.sqrt(second) + rounded(self.epsilon, p)) + rounded(self.decay, p) * p
        if self.decay or self.always_adapt:
            own, norm = jnp.sqrt(jnp.sum(p * p)), jnp.sqrt(jnp.sum(step * step))
            lr = lr * jnp.where((own > 0) & (norm > 0), own / norm, 1)
        return p - lr * step, new


@dataclass(frozen=True)
class LionRule(Rule):
    """The sign of a momentum, with decoupled decay. Paddle 2.6 has none. Source: arXiv 2302.06675, algorithm 2."""

    beta1: float = 0.9
    beta2: float = 0.99
    decay: float = 0.0
    timed: ClassVar[bool] = True  # the step does not need it: checkpoints have always had the count

    def slots(self) -> Mapping[str, StateSlot]:
        return {"momentum": StateSlot()}

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        before = state["momentum"]
        step = jnp.sign(self.beta1 * before + (1 - self.beta1) * g)
        return p - lr * (step + self.decay * p), {"momentum": self.beta2 * before + (1 - self.beta2) * g}


@dataclass(frozen=True)
class NAdamRule(AdamRule):
    """Adam with Nesterov momentum whose strength grows: `mu_t = beta1 * (1 - 0.5 * 0.96**(t * growth))`.

    Of Paddle 3 and torch. Source: Dozat, ICLR workshop 2016, algorithm 8.
    """

    growth: float = 0.004

    def slots(self) -> Mapping[str, StateSlot]:
        return {**super().slots(), "product": StateSlot(1.0, single=True)}

    def betas(self, p: jax.Array) -> tuple[Number, Number]:
        return self.beta1, self.beta2  # as torch, not rounded

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        new, time = self.moments(p, g, state), (state["count"] + 1).astype(p.dtype)
        now, following = (
            self.beta1 * (1 - 0.5 * jnp.exp(t * self.growth * math.log(0.96))) for t in (time, time + 1)
        )
        product = new["product"] = state["product"] * now
        mixed = (1 - now) / (1 - product) * g + following / (1 - product * following) * new["moment1"]
        return p - lr * mixed / (jnp.sqrt(new["moment2"] / self.weights(p, state)[1]) + self.epsilon), new


@dataclass(frozen=True)
class RAdamRule(AdamRule):
    """Adam that waits for its variance: momentum alone for the first steps. Of Paddle 3 and torch.

    Source: arXiv 1908.03265, algorithm 2.
    """

    def betas(self, p: jax.Array) -> tuple[Number, Number]:
        return self.beta1, self.beta2  # as torch, not rounded

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        new, time = self.moments(p, g, state), (state["count"] + 1).astype(p.dtype)
        weight1, weight2 = self.weights(p, state)
        longest = 2 / (1 - self.beta2) - 1
        length = longest - 2 * time * (1 - weight2) / weight2
        safe = jnp.maximum(length, 5)
        share = (safe - 4) * (safe - 2) * longest / ((longest - 4) * (longest - 2) * safe)
        scale = jnp.sqrt(share * weight2) / (jnp.sqrt(new["moment2"]) + self.epsilon)
        return p - lr * new["moment1"] / weight1 * jnp.where(length > 5, scale, 1), new


@dataclass(frozen=True)
class RpropRule(Rule):
    """`p -= step * sign(g)`: a number's step grows by `etas[1]` while the signs of its gradient agree, and shrinks by
    `etas[0]` where they do not, which skips that step; it stays within `limits`. Of Paddle 3.

    Source: Riedmiller and Braun 1993.
    """

    limits: tuple[float, float] = (1e-5, 50.0)
    etas: tuple[float, float] = (0.5, 1.2)

    def slots(self) -> Mapping[str, StateSlot]:
        return {"before": StateSlot(), "scale": StateSlot(1.0)}

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        agree = g * state["before"]
        factor = jnp.where(agree > 0, self.etas[1], jnp.where(agree < 0, self.etas[0], 1.0))
        step = jnp.clip(lr * state["scale"] * factor, *self.limits)
        before = jnp.where(agree < 0, 0.0, g)
        return p - step * jnp.sign(before), {"before": before, "scale": step / jnp.where(lr > 0, lr, 1)}


@dataclass(frozen=True)
class ASGDRule(Rule):
    """`p -= lr * d / n`, where d is the sum of the last gradients of each of `batches` batches, and n how many of them
    there were. Of Paddle 3. Source: Schmidt et al. 2013 (arXiv 1309.2388), algorithm 1.
    """

    batches: int = 1
    timed: ClassVar[bool] = True

    def slots(self) -> Mapping[str, StateSlot]:
        return {"sum": StateSlot(), "past": StateSlot(leading=(self.batches,))}

    def update(self, p: jax.Array, g: jax.Array, lr: jax.Array, state: State) -> tuple[jax.Array, State]:
        index, past = state["count"] % self.batches, state["past"]
        seen = jnp.minimum(state["count"] + 1, self.batches).astype(p.dtype)
        total = state["sum"] - past[index] + g
        return p - lr / seen * total, {"sum": total, "past": past.at[index].set(g)}


def rounded(number: float, like: jax.Array) -> np.floating:
    """A setting as most kernels of Paddle see it: of the parameter's type, but never finer than float32."""
    return like.dtype.type(np.float32(number))


def one_minus_power(beta: Number, name: str, like: jax.Array, state: State) -> jax.Array:
    """`1 - beta**t` at step t: of the power in the state, as Paddle has it, or of the count, without cancellation."""
    if name in state:
        return 1 - state[name][0]
    time = (state["count"] + 1).astype(like.dtype)
    return -jnp.expm1(time * math.log(beta)) if beta else jnp.ones_like(time)


def next_powers(state: State, **betas: Number) -> State:
    """The powers of beta that the state has, for the next step."""
    return {name: state[name] * beta for name, beta in betas.items() if name in state}
