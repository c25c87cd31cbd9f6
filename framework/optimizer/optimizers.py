"""The optimizers, with Paddle's names, arguments and defaults; what they share is in base.py, what they compute in
rules.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from framework.config.registry import register
from framework.nn.layer import Parameter
from framework.optimizer import rules
from framework.optimizer.base import Optimizer, ParamGroup
from framework.optimizer.lr.base import Rate
from framework.optimizer.regularizer import WeightDecay
from framework.optimizer.rules import Rule

# YAML holds no functions: for it these fields are always null.
if TYPE_CHECKING:
    NameFilter = Callable[[str], bool] | None
    NameFactor = Callable[[str], float] | None
else:
    NameFilter = NameFactor = None


@register("optimizer")
@dataclass(frozen=True)
class SGD(Optimizer):
    """`p -= lr * g`."""

    learning_rate: Rate = 0.001

    def rule(self, group: ParamGroup) -> Rule:
        return rules.SGDRule()


@register("optimizer")
@dataclass(frozen=True)
class Momentum(Optimizer):
    """`v = momentum * v + g`, `p -= lr * v`, or with Nesterov `p -= lr * (g + momentum * v)`."""

    learning_rate: Rate = 0.001
    momentum: float = 0.9
    use_nesterov: bool = False
    state_names: ClassVar = {"velocity": "trace"}

    def rule(self, group: ParamGroup) -> Rule:
        return rules.MomentumRule(self.momentum, self.use_nesterov)


@register("optimizer")
@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam; `weight_decay` is added to the gradient. Source: arXiv 1412.6980, algorithm 1."""

    learning_rate: Rate = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def rule(self, group: ParamGroup) -> Rule:
        return rules.AdamRule(self.beta1, self.beta2, self.epsilon)


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

    def rule(self, group: ParamGroup) -> Rule:
        return rules.AdamWRule(self.beta1, self.beta2, self.epsilon, group.decoupled)


@register("optimizer")
@dataclass(frozen=True)
class Adamax(Adam):
    """Adam with the infinity norm: `u = max(beta2 * u + epsilon, |g|)`. Source: arXiv 1412.6980, algorithm 2."""

    def rule(self, group: ParamGroup) -> Rule:
        return rules.AdamaxRule(self.beta1, self.beta2, self.epsilon)


@register("optimizer")
@dataclass(frozen=True)
class Adagrad(Optimizer):
    """`m += g**2`, `p -= lr * g / (sqrt(m) + epsilon)`. Source: Duchi et al., JMLR 12 (2011)."""

    learning_rate: Rate
    epsilon: float = 1e-6
    initial_accumulator_value: float = 0.0

    def rule(self, group: ParamGroup) -> Rule:
        return rules.AdagradRule(self.epsilon, self.initial_accumulator_value)


@register("optimizer")
@dataclass(frozen=True)
class Adadelta(Optimizer):
    """`d = g * sqrt(E[d**2] + epsilon) / sqrt(E[g**2] + epsilon)`, `p -= lr * d`. Source: arXiv 1212.5701."""

    learning_rate: Rate = 0.001
    epsilon: float = 1e-6
    rho: float = 0.95
    state_names: ClassVar = {"_avg_squared_grad": "e_g", "_avg_squared_update": "e_x"}

    def rule(self, group: ParamGroup) -> Rule:
        return rules.AdadeltaRule(self.epsilon, self.rho)


@register("optimizer")
@dataclass(frozen=True)
class RMSProp(Optimizer):
    """`g / sqrt(E[g**2] + epsilon)`, or with `centered` `g / sqrt(E[g**2] - E[g]**2 + epsilon)`.

    As Paddle's; torch adds epsilon to the root. The momentum is taken of steps that the learning rate has scaled
    already, so a change of the rate comes in slowly.
    Source: Hinton, Neural Networks for Machine Learning, lecture 6e; centered: arXiv 1308.0850, eq. 38 to 45.
    """

    learning_rate: Rate
    rho: float = 0.95
    epsilon: float = 1e-6
    momentum: float = 0.0
    centered: bool = False
    state_names: ClassVar = {"mean_square": "scale/nu", "mean_grad": "scale/mu"}

    def rule(self, group: ParamGroup) -> Rule:
        return rules.RMSPropRule(self.epsilon, self.rho, self.momentum, self.centered, keep_mean=False)


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

    def rule(self, group: ParamGroup) -> Rule:
        return rules.LambRule(self.beta1, self.beta2, self.epsilon, group.decoupled, self.always_adapt)


@register("optimizer")
@dataclass(frozen=True)
class Lion(Optimizer):
    """The sign of a momentum, with decoupled decay. Paddle 2.6 has none. Source: arXiv 2302.06675, algorithm 2."""

    learning_rate: Rate = 1e-4
    beta1: float = 0.9
    beta2: float = 0.99
    weight_decay: float | None = 0.0
    decoupled: ClassVar[bool] = True
    state_names: ClassVar = {"momentum": "mu"}

    def rule(self, group: ParamGroup) -> Rule:
        return rules.LionRule(self.beta1, self.beta2, group.decoupled)


@register("optimizer")
@dataclass(frozen=True)
class NAdam(Adam):
    """Adam with Nesterov momentum whose strength grows: `mu_t = beta1 * (1 - 0.5 * 0.96**(t * momentum_decay))`.

    Of Paddle 3 and torch. Source: Dozat, ICLR workshop 2016, algorithm 8.
    """

    learning_rate: Rate = 0.002
    momentum_decay: float = 0.004

    def rule(self, group: ParamGroup) -> Rule:
        return rules.NAdamRule(self.beta1, self.beta2, self.epsilon, self.momentum_decay)


@register("optimizer")
@dataclass(frozen=True)
class RAdam(Adam):
    """Adam that waits for its variance: momentum alone for the first steps. Of Paddle 3 and torch.

    Source: arXiv 1908.03265, algorithm 2.
    """

    def rule(self, group: ParamGroup) -> Rule:
        return rules.RAdamRule(self.beta1, self.beta2, self.epsilon)


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

    def rule(self, group: ParamGroup) -> Rule:
        return rules.RpropRule(self.learning_rate_range, self.etas)


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

    def rule(self, group: ParamGroup) -> Rule:
        return rules.ASGDRule(self.batch_num)
