"""Kernels of `paddle._C_ops` that update parameters: the rules of framework.optimizer on Tensors, in place."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from framework.optimizer import rules
from framework.paddle._kernel.tensor import Tensor, wrap
from framework.paddle._kernel.x64 import x64

Number = float | Tensor


def _number(value: Number) -> float:
    return float(value.numpy().reshape(-1)[0]) if isinstance(value, Tensor) else float(value)


def _apply(
    rule: rules.Rule,
    param: Tensor,
    grad: Tensor,
    rate: Tensor | jax.Array,
    state: dict[str, Tensor],
    master: Tensor | None = None,
) -> None:
    """One step: `param`, the Tensors of `state` and `master`, the float32 copy of a narrow parameter, change."""
    with x64():
        value = param._value if master is None else master._value
        wide = value.astype(jnp.float32) if value.dtype.itemsize < 4 else value
        learning_rate = (rate._value if isinstance(rate, Tensor) else rate).reshape(-1)[0].astype(wide.dtype)
        states = {name: tensor._value.astype(wide.dtype) for name, tensor in state.items()}
        new, after = rule.update(wide, grad._value.astype(wide.dtype), learning_rate, states)
        if master is not None:
            master.set_value(wrap(new))
        param.set_value(wrap(new.astype(param._value.dtype)))
        for name, tensor in state.items():
            tensor.set_value(wrap(after[name].astype(tensor._value.dtype).reshape(tensor._value.shape)))


def sgd_(
    param: Tensor, learning_rate: Tensor, grad: Tensor, master_param: Tensor | None, multi_precision: bool
) -> tuple[Tensor, Tensor | None]:
    """(param, master_param)."""
    _apply(rules.SGDRule(), param, grad, learning_rate, {}, master_param)
    return param, master_param


def momentum_(
    param: Tensor,
    grad: Tensor,
    velocity: Tensor,
    learning_rate: Tensor,
    master_param: Tensor | None,
    mu: float,
    use_nesterov: bool = False,
    regularization_method: str = "",
    regularization_coeff: float = 0.0,
    multi_precision: bool = False,
    rescale_grad: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """(param, velocity, master_param); the gradient is scaled, then decay added to it."""
    slope = grad * rescale_grad if rescale_grad != 1 else grad
    if regularization_method == "l2_decay":
        slope = slope + (master_param if master_param is not None else param) * regularization_coeff
    _apply(
        rules.MomentumRule(mu, use_nesterov),
        param,
        slope,
        learning_rate,
        {"velocity": velocity},
        master_param,
    )
    return param, velocity, master_param


def merged_momentum_(
    param: Sequence[Tensor],
    grad: Sequence[Tensor],
    velocity: Sequence[Tensor],
    learning_rate: Sequence[Tensor],
    master_param: Sequence[Tensor] | None,
    mu: float,
    use_nesterov: bool = False,
    regularization_method: Sequence[str] = (),
    regularization_coeff: Sequence[float] = (),
    multi_precision: bool = False,
    rescale_grad: float = 1.0,
) -> tuple[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor | None]]:
    """As `momentum_`, of many parameters, which may share a learning rate."""
    masters = master_param or [None] * len(param)
    for index, master in enumerate(masters):
        momentum_(
            *(param[index], grad[index], velocity[index], learning_rate[min(index, len(learning_rate) - 1)]),
            *(master, mu, use_nesterov),
            regularization_method[index] if regularization_method else "",
            regularization_coeff[index] if regularization_coeff else 0.0,
            rescale_grad=rescale_grad,
        )
    return param, velocity, masters


def adagrad_(
    param: Tensor,
    grad: Tensor,
    moment: Tensor,
    learning_rate: Tensor,
    master_param: Tensor | None,
    epsilon: float = 1e-6,
    multi_precision: bool = False,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """(param, moment, master_param)."""
    _apply(rules.AdagradRule(epsilon), param, grad, learning_rate, {"moment": moment}, master_param)
    return param, moment, master_param


def adadelta_(
    param: Tensor,
    grad: Tensor,
    avg_squared_grad: Tensor,
    avg_squared_update: Tensor,
    learning_rate: Tensor,
    master_param: Tensor | None,
    rho: float = 0.95,
    epsilon: float = 1e-6,
    multi_precision: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """(param, avg_squared_grad, avg_squared_update, master_param)."""
    rule = rules.AdadeltaRule(epsilon=epsilon, rho=rho)
    state = dict(zip(rule.slots(), (avg_squared_grad, avg_squared_update)))
    _apply(rule, param, grad, learning_rate, state, master_param)
    return param, avg_squared_grad, avg_squared_update, master_param


def adamax_(
    param: Tensor,
    grad: Tensor,
    learning_rate: Tensor,
    moment: Tensor,
    inf_norm: Tensor,
    beta1_pow: Tensor,
    master_param: Tensor | None,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    multi_precision: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """(param, moment, inf_norm, master_param)."""
    state = {"moment": moment, "inf_norm": inf_norm, "beta1_pow_acc": beta1_pow.clone()}
    _apply(rules.AdamaxRule(beta1, beta2, epsilon), param, grad, learning_rate, state, master_param)
    return param, moment, inf_norm, master_param


def _adam(
    rule: rules.Rule,
    param: Tensor,
    grad: Tensor,
    rate: Tensor | jax.Array,
    moments: tuple[Tensor, Tensor, Tensor, Tensor],
    master: Tensor | None,
    global_powers: bool = False,
) -> None:
    powers = [tensor.clone() if global_powers else tensor for tensor in moments[2:]]
    names = ("moment1", "moment2", "beta1_pow_acc", "beta2_pow_acc")
    state: dict[str, Tensor] = dict(zip(names, (*moments[:2], *powers)))
    _apply(rule, param, grad, rate, state, master)


def adam_(
    param: Tensor,
    grad: Tensor,
    learning_rate: Tensor,
    moment1: Tensor,
    moment2: Tensor,
    beta1_pow: Tensor,
    beta2_pow: Tensor,
    master_param: Tensor | None,
    skip_update: Tensor | None,
    beta1: Number = 0.9,
    beta2: Number = 0.999,
    epsilon: Number = 1e-8,
    lazy_mode: bool = False,
    min_row_size_to_use_multithread: int = 1000,
    multi_precision: bool = False,
    use_global_beta_pow: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    """(param, moment1, moment2, beta1_pow, beta2_pow, master_param)."""
    if skip_update is None or not bool(skip_update):
        rule = rules.AdamRule(_number(beta1), _number(beta2), _number(epsilon))
        moments = (moment1, moment2, beta1_pow, beta2_pow)
        _adam(rule, param, grad, learning_rate, moments, master_param, use_global_beta_pow)
    return param, moment1, moment2, beta1_pow, beta2_pow, master_param


def adamw_(
    param: Tensor,
    grad: Tensor,
    learning_rate: Tensor,
    moment1: Tensor,
    moment2: Tensor,
    beta1_pow: Tensor,
    beta2_pow: Tensor,
    master_param: Tensor | None,
    skip_update: Tensor | None,
    beta1: Number = 0.9,
    beta2: Number = 0.999,
    epsilon: Number = 1e-8,
    lr_ratio: float = 1.0,
    coeff: float = 0.01,
    with_decay: bool = False,
    lazy_mode: bool = False,
    min_row_size_to_use_multithread: int = 1000,
    multi_precision: bool = False,
    use_global_beta_pow: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    """(param, moment1, moment2, beta1_pow, beta2_pow, master_param)."""
    if skip_update is None or not bool(skip_update):
        numbers = (_number(beta1), _number(beta2), _number(epsilon))
        rule = rules.AdamWRule(*numbers, coeff) if with_decay else rules.AdamRule(*numbers)
        moments = (moment1, moment2, beta1_pow, beta2_pow)
        rate = learning_rate._value * lr_ratio if lr_ratio != 1 else learning_rate
        _adam(rule, param, grad, rate, moments, master_param, use_global_beta_pow)
    return param, moment1, moment2, beta1_pow, beta2_pow, master_param


def lamb_(
    param: Tensor,
    grad: Tensor,
    learning_rate: Tensor,
    moment1: Tensor,
    moment2: Tensor,
    beta1_pow: Tensor,
    beta2_pow: Tensor,
    master_param: Tensor | None,
    skip_update: Tensor | None,
    weight_decay: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    always_adapt: bool = False,
    multi_precision: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    """(param, moment1, moment2, beta1_pow, beta2_pow, master_param)."""
    if skip_update is None or not bool(skip_update):
        rule = rules.LambRule(beta1, beta2, epsilon, weight_decay, always_adapt)
        _adam(rule, param, grad, learning_rate, (moment1, moment2, beta1_pow, beta2_pow), master_param)
    return param, moment1, moment2, beta1_pow, beta2_pow, master_param


def merged_adam_(
    param: Sequence[Tensor],
    grad: Sequence[Tensor],
    learning_rate: Sequence[Tensor],
    moment1: Sequence[Tensor],
    moment2: Sequence[Tensor],
    beta1_pow: Sequence[Tensor],
    beta2_pow: Sequence[Tensor],
    master_param: Sequence[Tensor] | None,
    beta1: Number = 0.9,
    beta2: Number = 0.999,
    epsilon: Number = 1e-8,
    multi_precision: bool = False,
    use_global_beta_pow: bool = False,
) -> tuple[Sequence[Tensor], ...]:
    """As `adam_`, of many parameters."""
    masters = master_param or [None] * len(param)
    for index, master in enumerate(masters):
        adam_(
            *(param[index], grad[index], learning_rate[index]),
            *(moment1[index], moment2[index], beta1_pow[index], beta2_pow[index]),
            *(master, None, beta1, beta2, epsilon),
            use_global_beta_pow=use_global_beta_pow,
        )
    return param, moment1, moment2, beta1_pow, beta2_pow, masters  # type: ignore[return-value]


def rmsprop_(
    param: Tensor,
    mean_square: Tensor,
    grad: Tensor,
    moment: Tensor,
    learning_rate: Tensor,
    mean_grad: Tensor | None,
    master_param: Tensor | None,
    epsilon: float = 1e-10,
    decay: float = 0.9,
    momentum: float = 0.0,
    centered: bool = False,
    multi_precision: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """(param, moment, mean_square, mean_grad, master_param)."""
    rule = rules.RMSPropRule(epsilon, decay, momentum, centered, centered)
    state = {"momentum": moment, "mean_square": mean_square}
    if centered and mean_grad is not None:
        state["mean_grad"] = mean_grad
    _apply(rule, param, grad, learning_rate, state, master_param)
    return param, moment, mean_square, mean_grad, master_param
