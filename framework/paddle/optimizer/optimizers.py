"""The optimizers by Paddle's names, arguments and defaults; what they compute is in framework.optimizer.rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from framework.optimizer import rules
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.optimizer.base import Group, Optimizer
from framework.paddle.optimizer.lr import LRScheduler

Rate = float | LRScheduler


def _share(value: Any, name: str) -> float | Tensor:
    """A beta: from 0 to below 1. Raises: ValueError."""
    if not isinstance(value, Tensor) and not 0 <= value < 1:
        raise ValueError(f"{name} must be from 0 to below 1, received {value}")
    return value


def _not_negative(value: Any, name: str) -> float | Tensor:
    if not isinstance(value, Tensor) and not value >= 0:
        raise ValueError(f"{name} must not be negative, received {value}")
    return value


class SGD(Optimizer):
    """`p -= lr * g`."""

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._multi_precision = multi_precision

    def _rule(self, param: Tensor, group: Group) -> rules.Rule:
        return rules.SGD()


class Momentum(Optimizer):
    """`v = momentum * v + g`, `p -= lr * v`, or with Nesterov `p -= lr * (g + momentum * v)`.

    `rescale_grad` multiplies gradients first. `use_multi_tensor` changes nothing: all parameters are one program.
    """

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        momentum: float = 0.9,
        parameters: Any = None,
        use_nesterov: bool = False,
        weight_decay: Any = None,
        grad_clip: Any = None,
        multi_precision: bool = False,
        rescale_grad: float = 1.0,
        use_multi_tensor: bool = False,
        name: str | None = None,
    ) -> None:
        if momentum is None:
            raise ValueError("Momentum: momentum is not set")
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._momentum, self._use_nesterov = momentum, bool(use_nesterov)
        self._multi_precision, self._rescale_grad = multi_precision, rescale_grad

    def _rule(self, param: Tensor, group: Group) -> rules.Rule:
        return rules.Momentum(float(self._momentum), self._use_nesterov)

    def _rescale(self, group: Group) -> float:
        return float(self._rescale_grad)


class _Adam(Optimizer):
    """What those with two betas share."""

    def _betas(self, beta1: Any, beta2: Any, epsilon: Any) -> None:
        where = type(self).__name__
        self._beta1, self._beta2 = _share(beta1, f"{where}: beta1"), _share(beta2, f"{where}: beta2")
        self._epsilon = _not_negative(epsilon, f"{where}: epsilon")

    def _numbers(self, group: Group) -> tuple[float, float, float]:
        """beta1, beta2 and epsilon of a group."""
        names = (("beta1", self._beta1), ("beta2", self._beta2), ("epsilon", self._epsilon))
        beta1, beta2, epsilon = (float(group.get(name, default)) for name, default in names)
        return beta1, beta2, epsilon


class Adam(_Adam):
    """Adam (arXiv 1412.6980); `weight_decay` is added to the gradient.

    `lazy_mode` and `use_multi_tensor` change nothing: gradients are dense, and all parameters are one program.
    """

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        beta1: float | Tensor = 0.9,
        beta2: float | Tensor = 0.999,
        epsilon: float | Tensor = 1e-8,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        use_multi_tensor: bool = False,
        name: str | None = None,
    ) -> None:
        self._betas(beta1, beta2, epsilon)
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._lazy_mode, self._multi_precision = lazy_mode, multi_precision

    def _rule(self, param: Tensor, group: Group) -> rules.Rule:
        return rules.Adam(*self._numbers(group))


class AdamW(_Adam):
    """Adam with decoupled decay: `p -= lr * weight_decay * p` beside Adam's step (arXiv 1711.05101).

    `apply_decay_param_fun(name)` says whether the parameter of this name decays, `lr_ratio(parameter)` multiplies its
    rate. A regularizer of a ParamAttr is added to the gradient, and the decoupled decay stays beside it.
    """

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        beta1: float | Tensor = 0.9,
        beta2: float | Tensor = 0.999,
        epsilon: float | Tensor = 1e-8,
        parameters: Any = None,
        weight_decay: float | Tensor = 0.01,
        lr_ratio: Callable[[Tensor], float] | None = None,
        apply_decay_param_fun: Callable[[str], bool] | None = None,
        grad_clip: Any = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        self._betas(beta1, beta2, epsilon)
        if not isinstance(weight_decay, float | Tensor):
            raise TypeError(
                f"AdamW: weight_decay is a float or a Tensor, received {type(weight_decay).__name__}"
            )
        if lr_ratio is not None and not callable(lr_ratio):
            raise TypeError(
                f"AdamW: lr_ratio is a function of a parameter, received {type(lr_ratio).__name__}"
            )
        super().__init__(learning_rate, parameters, None, grad_clip, name)
        self._weight_decay, self._lr_ratio = weight_decay, lr_ratio
        self._apply_decay_param_fun = apply_decay_param_fun
        self._lazy_mode, self._multi_precision = lazy_mode, multi_precision

    def _take_decay(self, group: Group, parameters: Sequence[Any]) -> None:
        """A group's decay is the decoupled one: the regularizers of its parameters stay."""

    def _rule(self, param: Tensor, group: Group) -> rules.Rule:
        decays = self._apply_decay_param_fun is None or self._apply_decay_param_fun(param.name)
        decay = float(group.get("weight_decay", self._weight_decay)) if decays else 0.0
        ratio = 1.0 if self._lr_ratio is None else float(self._lr_ratio(param))
        return rules.AdamW(*self._numbers(group), decay, ratio)

    def __str__(self) -> str:
        return f"AdamW, weight decay {self._weight_decay}"


class Adamax(_Adam):
    """Adam with the infinity norm: `u = max(beta2 * u + epsilon, |g|)` (arXiv 1412.6980, algorithm 2)."""

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        self._betas(beta1, beta2, epsilon)
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)

    def _rule(self, param: Tensor, group: Group) -> rules.Rule:
        return rules.Adamax(*self._numbers(group))


class Lamb(_Adam):
    """Adam's direction plus decay, scaled to the norm of the parameter (arXiv 1904.00962, algorithm 2).

    `exclude_from_weight_decay_fn(parameter)` takes the decay from a parameter, which is then not scaled either, unless
    `always_adapt`.
    """

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        lamb_weight_decay: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        parameters: Any = None,
        grad_clip: Any = None,
        exclude_from_weight_decay_fn: Callable[[Tensor], bool] | None = None,
        multi_precision: bool = False,
        always_adapt: bool = False,
        name: str | None = None,
    ) -> None:
        self._betas(beta1, beta2, epsilon)
        super().__init__(learning_rate, parameters, None, grad_clip, name)
        self._lamb_weight_decay, self._multi_precision = lamb_weight_decay, multi_precision
        self._exclude_from_weight_decay_fn, self.always_adapt = exclude_from_weight_decay_fn, always_adapt

    def _rule(self, param: Tensor, group: Group) -> rules.Rule:
        decay = float(group.get("lamb_weight_decay", self._lamb_weight_decay))
        excluded = group.get("exclude_from_weight_decay_fn", self._exclude_from_weight_decay_fn)
        if excluded is not None and excluded(param):
            decay = 0.0
        return rules.Lamb(*self._numbers(group), decay, self.always_adapt)


class Adagrad(Optimizer):
    """`m += g**2`, `p -= lr * g / (sqrt(m) + epsilon)`."""

    def __init__(
        self,
        learning_rate: Rate,
        epsilon: float = 1e-6,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
        initial_accumulator_value: float = 0.0,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._epsilon, self.initial_accumulator_value = epsilon, initial_accumulator_value

    def _rule(self, param: Tensor, group: Group) -> rules.Rule:
        start = group.get("initial_accumulator_value", self.initial_accumulator_value)
        return rules.Adagrad(float(group.get("epsilon", self._epsilon)), float(start))


class Adadelta(Optimizer):
    """`d = g * sqrt(E[d**2] + epsilon) / sqrt(E[g**2] + epsilon)`, `p -= lr * d` (arXiv 1212.5701)."""

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        epsilon: float = 1e-6,
        rho: float = 0.95,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._epsilon, self._rho = epsilon, rho

    def _rule(self, param: Tensor, group: Group) -> rules.Rule:
        return rules.Adadelta(float(group.get("epsilon", self._epsilon)), float(group.get("rho", self._rho)))


class RMSProp(Optimizer):
    """`g / sqrt(E[g**2] + epsilon)`, or with `centered` `g / sqrt(E[g**2] - E[g]**2 + epsilon)`.

    The momentum is taken of steps that the learning rate has scaled already.
    """

    def __init__(
        self,
        learning_rate: Rate,
        rho: float = 0.95,
        epsilon: float = 1e-6,
        momentum: float = 0.0,
        centered: bool = False,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        for what, value in (("rho", rho), ("epsilon", epsilon), ("momentum", momentum)):
            _not_negative(value, f"RMSProp: {what}")
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._rho, self._epsilon, self._momentum, self._centered = rho, epsilon, momentum, centered

    def _rule(self, param: Tensor, group: Group) -> rules.Rule:
        get = group.get
        return rules.RMSProp(
            float(get("epsilon", self._epsilon)),
            float(get("rho", self._rho)),
            float(get("momentum", self._momentum)),
            bool(get("centered", self._centered)),
        )
