"""The optimizers, with Paddle's names, arguments and defaults; what they share is in base.py.

Where optax computes the same, its transformation is the rule. The others are written here, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import optax

from framework.config.registry import register
from framework.nn.layer import Parameter
from framework.optimizer.base import Arrays, Optimizer, ParamGroups, RuleState
from framework.optimizer.lr.base import Rate
from framework.optimizer.regularizer import WeightDecay

# YAML holds no functions: for it these fields are always null.
if TYPE_CHECKING:
    NameFilter = Callable[[str], bool] | None
    NameFactor = Callable[[str], float] | None
else:
    NameFilter = NameFactor = None


def _zeros(params: Arrays) -> Arrays:
    return {name: jnp.zeros_like(value) for name, value in params.items()}


def _average(old: Arrays, new: Arrays, decay: float, power: int = 1) -> Arrays:
    """The moving average of new**power."""
    return {name: decay * old[name] + (1 - decay) * new[name] ** power for name in old}


def _one_minus_power(beta: float, time: jax.Array) -> jax.Array:
    """1 - beta**time in float32, without the cancellation that it has for a beta near 1."""
    return -jnp.expm1(time * math.log(beta)) if beta else jnp.ones_like(time)


def _adam(beta1: float, beta2: float, epsilon: float) -> optax.GradientTransformation:
    """The direction of Adam. optax takes 1 - beta2**t by a difference, which has five digits in the first steps."""

    def init(params: Any) -> RuleState:
        return {"count": jnp.zeros((), jnp.int32), "moment1": _zeros(params), "moment2": _zeros(params)}

    def update(updates: Any, state: RuleState, params: object = None) -> tuple[Any, RuleState]:
        count = state["count"] + 1
        time = count.astype(jnp.float32)
        moment1 = _average(state["moment1"], updates, beta1)
        moment2 = _average(state["moment2"], updates, beta2, 2)
        first, root = _one_minus_power(beta1, time), jnp.sqrt(_one_minus_power(beta2, time))
        found = {n: moment1[n] / first / (jnp.sqrt(moment2[n]) / root + epsilon) for n in updates}
        return found, {"count": count, "moment1": moment1, "moment2": moment2}

    return optax.GradientTransformation(init, update)


@register("optimizer")
@dataclass(frozen=True)
class SGD(Optimizer):
    """`p -= lr * g`."""

    learning_rate: Rate = 0.001

    def rule(self) -> optax.GradientTransformation:
        return optax.identity()


@register("optimizer")
@dataclass(frozen=True)
class Momentum(Optimizer):
    """`v = momentum * v + g`, `p -= lr * v`, or with Nesterov `p -= lr * (g + momentum * v)`."""

    learning_rate: Rate = 0.001
    momentum: float = 0.9
    use_nesterov: bool = False

    def rule(self) -> optax.GradientTransformation:
        return optax.trace(self.momentum, self.use_nesterov)


@register("optimizer")
@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam; `weight_decay` is added to the gradient. Source: arXiv 1412.6980, algorithm 1."""

    learning_rate: Rate = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def rule(self) -> optax.GradientTransformation:
        return _adam(self.beta1, self.beta2, self.epsilon)


@register("optimizer")
@dataclass(frozen=True)
class AdamW(Adam):
    """Adam with decoupled decay: `p -= lr * weight_decay * p` apart from Adam's step. Source: arXiv 1711.05101.

    `apply_decay_param_fun(name)` says whether a parameter decays and `lr_ratio(name)` multiplies its rate; both are
    Python only (in YAML use `no_decay`, `lr_multipliers`, `layer_decay`) and get the dotted name. As in Paddle, a
    regularizer of a ParamAttr is added to the gradient, and the decoupled decay stays beside it.
    """

    weight_decay: float | None = 0.01
    lr_ratio: NameFactor = None
    apply_decay_param_fun: NameFilter = None
    decoupled: ClassVar[bool] = True

    def decays(self, name: str) -> bool:
        return self.apply_decay_param_fun is None or self.apply_decay_param_fun(name)

    def ratio(self, name: str) -> float:
        return 1.0 if self.lr_ratio is None else self.lr_ratio(name)


@register("optimizer")
@dataclass(frozen=True)
class Adamax(Adam):
    """Adam with the infinity norm: `u = max(beta2 * u + epsilon, |g|)`. Source: arXiv 1412.6980, algorithm 2.

    optax adds epsilon to |g| instead of to the decayed norm.
    """

    def init_rule(self, params: Arrays) -> RuleState:
        return {"count": jnp.zeros((), jnp.int32), "moment": _zeros(params), "inf_norm": _zeros(params)}

    def deltas(
        self, grads: Arrays, state: RuleState, params: Arrays, rates: Arrays, groups: ParamGroups
    ) -> tuple[Arrays, RuleState]:
        count = state["count"] + 1
        moment = _average(state["moment"], grads, self.beta1)
        norm = {
            n: jnp.maximum(self.beta2 * state["inf_norm"][n] + self.epsilon, jnp.abs(grads[n])) for n in grads
        }
        unbiased = _one_minus_power(self.beta1, count.astype(jnp.float32))
        found = {n: rates[n] / unbiased * moment[n] / norm[n] for n in grads}
        return found, {"count": count, "moment": moment, "inf_norm": norm}


@register("optimizer")
@dataclass(frozen=True)
class Adagrad(Optimizer):
    """`m += g**2`, `p -= lr * g / (sqrt(m) + epsilon)`. Source: Duchi et al., JMLR 12 (2011).

    optax puts epsilon under the root.
    """

    learning_rate: Rate
    epsilon: float = 1e-6
    initial_accumulator_value: float = 0.0

    def init_rule(self, params: Arrays) -> RuleState:
        return {"moment": {n: jnp.full_like(p, self.initial_accumulator_value) for n, p in params.items()}}

    def deltas(
        self, grads: Arrays, state: RuleState, params: Arrays, rates: Arrays, groups: ParamGroups
    ) -> tuple[Arrays, RuleState]:
        moment = {n: state["moment"][n] + grads[n] ** 2 for n in grads}
        found = {n: rates[n] * grads[n] / (jnp.sqrt(moment[n]) + self.epsilon) for n in grads}
        return found, {"moment": moment}


@register("optimizer")
@dataclass(frozen=True)
class Adadelta(Optimizer):
    """`d = g * sqrt(E[d**2] + epsilon) / sqrt(E[g**2] + epsilon)`, `p -= lr * d`. Source: arXiv 1212.5701."""

    learning_rate: Rate = 0.001
    epsilon: float = 1e-6
    rho: float = 0.95

    def rule(self) -> optax.GradientTransformation:
        return optax.scale_by_adadelta(self.rho, self.epsilon)


@register("optimizer")
@dataclass(frozen=True)
class RMSProp(Optimizer):
    """`g / sqrt(E[g**2] + epsilon)`, or with `centered` `g / sqrt(E[g**2] - E[g]**2 + epsilon)`.

    The momentum is taken of steps that the learning rate has scaled already, so a change of the rate comes in slowly.
    Source: Hinton, Neural Networks for Machine Learning, lecture 6e; centered: arXiv 1308.0850, eq. 38 to 45.
    """

    learning_rate: Rate
    rho: float = 0.95
    epsilon: float = 1e-6
    momentum: float = 0.0
    centered: bool = False

    def rule(self) -> optax.GradientTransformation:
        scale = optax.scale_by_stddev if self.centered else optax.scale_by_rms
        return scale(self.rho, self.epsilon)

    def init_rule(self, params: Arrays) -> RuleState:
        return {"scale": self.rule().init(params), "momentum": _zeros(params)}

    def deltas(
        self, grads: Arrays, state: RuleState, params: Arrays, rates: Arrays, groups: ParamGroups
    ) -> tuple[Arrays, RuleState]:
        steps, scale = self.apply_rule(grads, state["scale"], params)
        moved = {n: self.momentum * state["momentum"][n] + rates[n] * steps[n] for n in grads}
        return moved, {"scale": scale, "momentum": moved}


@register("optimizer")
@dataclass(frozen=True)
class Lamb(Optimizer):
    """Adam's direction plus decay, scaled to the norm of the parameter. Source: arXiv 1904.00962, algorithm 2.

    The decay is `lamb_weight_decay` as in Paddle; `exclude_from_weight_decay_fn(name)` (Python only; in YAML use
    `no_decay`) takes it from a parameter. A parameter without decay is not scaled either, unless `always_adapt`.
    """

    learning_rate: Rate = 0.001
    lamb_weight_decay: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-6
    exclude_from_weight_decay_fn: NameFilter = None
    always_adapt: bool = False
    decoupled: ClassVar[bool] = True

    def __post_init__(self, parameters: Iterable[Parameter] | None, name: str | None) -> None:
        super().__post_init__(parameters, name)
        if self.weight_decay is not None:
            raise self.error(
                "the decay of Lamb has its own name", f"weight_decay {self.weight_decay}", "lamb_weight_decay"
            )

    @property
    def own_decay(self) -> WeightDecay:
        return WeightDecay(l2=self.lamb_weight_decay)

    def decays(self, name: str) -> bool:
        return self.exclude_from_weight_decay_fn is None or not self.exclude_from_weight_decay_fn(name)

    def rule(self) -> optax.GradientTransformation:
        return _adam(self.beta1, self.beta2, self.epsilon)

    def deltas(
        self, grads: Arrays, state: RuleState, params: Arrays, rates: Arrays, groups: ParamGroups
    ) -> tuple[Arrays, RuleState]:
        directions, state = self.apply_rule(grads, state, params)
        found = {}
        for name, direction in directions.items():
            direction = direction + groups[name].decoupled * params[name]
            ratio = jnp.ones(())
            if groups[name].decoupled or self.always_adapt:
                own, step = jnp.linalg.norm(params[name].ravel()), jnp.linalg.norm(direction.ravel())
                ratio = jnp.where((own > 0) & (step > 0), own / jnp.where(step > 0, step, 1), 1)
            found[name] = rates[name] * ratio * direction
        return found, state


@register("optimizer")
@dataclass(frozen=True)
class Lion(Optimizer):
    """The sign of a momentum, with decoupled decay. Paddle 2.6 has none. Source: arXiv 2302.06675, algorithm 2."""

    learning_rate: Rate = 1e-4
    beta1: float = 0.9
    beta2: float = 0.99
    weight_decay: float | None = 0.0
    decoupled: ClassVar[bool] = True

    def rule(self) -> optax.GradientTransformation:
        return optax.scale_by_lion(self.beta1, self.beta2)


@register("optimizer")
@dataclass(frozen=True)
class NAdam(Adam):
    """Adam with Nesterov momentum whose strength grows: `mu_t = beta1 * (1 - 0.5 * 0.96**(t * momentum_decay))`.

    Of Paddle 3 and torch; optax keeps the strength constant. Source: Dozat, ICLR workshop 2016, algorithm 8.
    """

    learning_rate: Rate = 0.002
    momentum_decay: float = 0.004

    def init_rule(self, params: Arrays) -> RuleState:
        zeros, product = jnp.zeros((), jnp.int32), jnp.ones((), jnp.float32)
        return {"count": zeros, "product": product, "moment1": _zeros(params), "moment2": _zeros(params)}

    def deltas(
        self, grads: Arrays, state: RuleState, params: Arrays, rates: Arrays, groups: ParamGroups
    ) -> tuple[Arrays, RuleState]:
        count = state["count"] + 1
        grown = lambda t: self.beta1 * (1 - 0.5 * jnp.exp(t * self.momentum_decay * math.log(0.96)))  # noqa: E731
        time = count.astype(jnp.float32)
        now, following = grown(time), grown(time + 1)
        product = state["product"] * now
        moment1 = _average(state["moment1"], grads, self.beta1)
        moment2 = _average(state["moment2"], grads, self.beta2, 2)
        unbiased, found = _one_minus_power(self.beta2, time), {}
        for name, grad in grads.items():
            mixed = (1 - now) / (1 - product) * grad + following / (1 - product * following) * moment1[name]
            found[name] = rates[name] * mixed / (jnp.sqrt(moment2[name] / unbiased) + self.epsilon)
        return found, {"count": count, "product": product, "moment1": moment1, "moment2": moment2}


@register("optimizer")
@dataclass(frozen=True)
class RAdam(Adam):
    """Adam that waits for its variance: momentum alone for the first steps. Of Paddle 3 and torch.

    optax computes the length of the average by a difference of which float32 keeps three digits, and may begin to
    adapt a step early. Source: arXiv 1908.03265, algorithm 2.
    """

    def deltas(
        self, grads: Arrays, state: RuleState, params: Arrays, rates: Arrays, groups: ParamGroups
    ) -> tuple[Arrays, RuleState]:
        count = state["count"] + 1
        moment1 = _average(state["moment1"], grads, self.beta1)
        moment2 = _average(state["moment2"], grads, self.beta2, 2)
        time = count.astype(jnp.float32)
        unbiased1, unbiased2 = _one_minus_power(self.beta1, time), _one_minus_power(self.beta2, time)
        longest = 2 / (1 - self.beta2) - 1
        length = longest - 2 * time * (1 - unbiased2) / unbiased2
        adapts, safe = length > 5, jnp.maximum(length, 5)
        share = (safe - 4) * (safe - 2) * longest / ((longest - 4) * (longest - 2) * safe)
        factor = jnp.sqrt(share * unbiased2)
        found = {}
        for name in grads:
            scale = jnp.where(adapts, factor / (jnp.sqrt(moment2[name]) + self.epsilon), 1)
            found[name] = rates[name] * moment1[name] / unbiased1 * scale
        return found, {"count": count, "moment1": moment1, "moment2": moment2}


@register("optimizer")
@dataclass(frozen=True)
class Rprop(Optimizer):
    """`p -= step * sign(g)`: a number's step grows by `etas[1]` while the signs of its gradient agree, and shrinks by
    `etas[0]` where they do not, which skips that step. For gradients of the whole data set. Of Paddle 3.

    Steps begin with the learning rate and stay within `learning_rate_range`. Source: Riedmiller and Braun 1993.
    """

    learning_rate: Rate = 0.001
    learning_rate_range: tuple[float, float] = (1e-5, 50.0)
    etas: tuple[float, float] = (0.5, 1.2)

    def __post_init__(self, parameters: Iterable[Parameter] | None, name: str | None) -> None:
        super().__post_init__(parameters, name)
        low, high = self.learning_rate_range
        if not 0 < low <= high:
            raise self.error("learning_rate_range is out of order", (low, high), "0 < low <= high")
        if not 0 < self.etas[0] < 1 < self.etas[1]:
            raise self.error("etas are out of range", self.etas, "one between 0 and 1, one above 1")

    def init_rule(self, params: Arrays) -> RuleState:
        return {"before": _zeros(params), "scale": {n: jnp.ones_like(p) for n, p in params.items()}}

    def deltas(
        self, grads: Arrays, state: RuleState, params: Arrays, rates: Arrays, groups: ParamGroups
    ) -> tuple[Arrays, RuleState]:
        found, before, scale = {}, {}, {}
        low, high = self.learning_rate_range
        for name, grad in grads.items():
            agree = grad * state["before"][name]
            factor = jnp.where(agree > 0, self.etas[1], jnp.where(agree < 0, self.etas[0], 1.0))
            step = jnp.clip(rates[name] * state["scale"][name] * factor, low, high)
            before[name] = jnp.where(agree < 0, 0.0, grad)
            scale[name] = step / jnp.where(rates[name] > 0, rates[name], 1)
            found[name] = step * jnp.sign(before[name])
        return found, {"before": before, "scale": scale}


@register("optimizer")
@dataclass(frozen=True)
class ASGD(Optimizer):
    """`p -= lr * d / n`, where d is the sum of the last gradients of each of `batch_num` batches, and n how many of
    them there were: the stochastic average gradient. The batches come in one order. Of Paddle 3.

    Source: Schmidt et al. 2013 (arXiv 1309.2388), algorithm 1.
    """

    learning_rate: Rate = 0.001
    batch_num: int = 1

    def __post_init__(self, parameters: Iterable[Parameter] | None, name: str | None) -> None:
        super().__post_init__(parameters, name)
        if self.batch_num < 1:
            raise self.error("batch_num is too small", self.batch_num, "1 or more")

    def init_rule(self, params: Arrays) -> RuleState:
        past = {n: jnp.zeros((self.batch_num, *p.shape), p.dtype) for n, p in params.items()}
        return {"count": jnp.zeros((), jnp.int32), "sum": _zeros(params), "past": past}

    def deltas(
        self, grads: Arrays, state: RuleState, params: Arrays, rates: Arrays, groups: ParamGroups
    ) -> tuple[Arrays, RuleState]:
        place, count = state["count"] % self.batch_num, state["count"] + 1
        seen = jnp.minimum(count, self.batch_num).astype(jnp.float32)
        total = {n: state["sum"][n] - state["past"][n][place] + grads[n] for n in grads}
        past = {n: state["past"][n].at[place].set(grads[n]) for n in grads}
        found = {n: rates[n] / seen * total[n] for n in grads}
        return found, {"count": count, "sum": total, "past": past}
