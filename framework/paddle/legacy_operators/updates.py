"""Updates of parameters by operators that no optimizer of today's Paddle runs.

Source: paddle/phi/kernels/impl, paddle/phi/kernels/cpu
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from framework.paddle.legacy_operators.operands import Operands, Output, Outputs, Table, registrar

OPERATORS: Table = {}
operator = registrar(OPERATORS)


@operator("sgd")
def _sgd(a: Operands) -> Outputs:
    master = a.get("MasterParam")
    start = a.array("Param") if master is None else master
    out = start - a.array("LearningRate") * a.array("Grad").astype(start.dtype)
    return {"ParamOut": out.astype(a.array("Param").dtype), "MasterParamOut": None if master is None else out}


@operator("decayed_adagrad")
def _decayed_adagrad(a: Operands) -> Outputs:
    grad, decay = a.array("Grad"), a.attr("decay", 0.95)
    moment = decay * a.array("Moment") + (1 - decay) * jnp.square(grad)
    step = a.array("LearningRate") * grad / (jnp.sqrt(moment) + a.attr("epsilon", 1e-6))
    return {"ParamOut": a.array("Param") - step, "MomentOut": moment}


def _shrink(value: jax.Array, rate: jax.Array, l1: float, l2: float) -> jax.Array:
    """The proximal step of l1 |x| + l2/2 x^2."""
    shrunk = jnp.sign(value) * jnp.maximum(jnp.abs(value) - rate * l1, 0) if l1 > 0 else value
    return shrunk / (1 + rate * l2)


@operator("proximal_gd")
def _proximal_gd(a: Operands) -> Outputs:
    rate = a.array("LearningRate")
    step = a.array("Param") - rate * a.array("Grad")
    return {"ParamOut": _shrink(step, rate, a.attr("l1", 0.0), a.attr("l2", 0.0))}


@operator("proximal_adagrad")
def _proximal_adagrad(a: Operands) -> Outputs:
    grad = a.array("Grad")
    moment = a.array("Moment") + jnp.square(grad)
    rate = a.array("LearningRate") / jnp.sqrt(moment)
    step = a.array("Param") - rate * grad
    out = _shrink(step, a.array("LearningRate"), a.attr("l1", 0.0), a.attr("l2", 0.0))
    return {"ParamOut": out, "MomentOut": moment}


@operator("ftrl")
def _ftrl(a: Operands) -> Outputs:
    """Source: McMahan et al. 2013."""
    param, grad, squared = a.array("Param"), a.array("Grad"), a.array("SquaredAccumulator")
    rate, power = a.array("LearningRate"), a.attr("lr_power", -0.5)
    l1, l2 = a.attr("l1", 0.0) + 1e-10, a.attr("l2", 0.0) + 1e-10
    total = squared + jnp.square(grad)
    linear = a.array("LinearAccumulator") + grad - (total**-power - squared**-power) / rate * param
    divisor = 2 * l2 + total**-power / rate
    out = jnp.where(jnp.abs(linear) > l1, (jnp.sign(linear) * l1 - linear) / divisor, 0)
    return {"ParamOut": out.astype(param.dtype), "SquaredAccumOut": total, "LinearAccumOut": linear}


@operator("dpsgd")
def _dpsgd(a: Operands) -> Outputs:
    """A clipped gradient with noise. Source: Abadi et al. 2016."""
    grad, clip, size = a.array("Grad"), a.attr("clip", 10.0), a.attr("batch_size", 16.0)
    norm = jnp.sqrt(jnp.square(grad).sum())
    key = jax.random.key(a.attr("seed", 0))
    noise = a.attr("sigma", 1.0) * clip / size * jax.random.normal(key, (), grad.dtype)
    step = grad / jnp.maximum(norm / clip, 1) + noise
    return {"ParamOut": a.array("Param") - a.array("LearningRate") * step}


@operator("sparse_momentum")
def _sparse_momentum(a: Operands) -> Outputs:
    """Momentum where the gradient has rows (or columns) for some indices only, with repeated ones added."""
    master, velocity = a.get("MasterParam"), a.array("Velocity")
    param = a.array("Param") if master is None else master
    axis = int(a.host("Axis").ravel()[0]) if a.get("Axis") is not None else a.attr("axis", 0)
    index = a.array("Index").ravel()
    values = a.array("Grad").astype(param.dtype) * a.attr("rescale_grad", 1.0)
    grad = jnp.zeros_like(param)
    grad = grad.at[index].add(values) if axis == 0 else grad.at[:, index].add(values)
    if a.attr("regularization_method", "") == "l2_decay":
        grad = grad + a.attr("regularization_coeff", 0.0) * param
    mu = a.attr("mu", 0.0)
    velocity = mu * velocity + grad
    step = grad + mu * velocity if a.attr("use_nesterov", False) else velocity
    out = param - a.array("LearningRate") * step
    return {
        "ParamOut": out.astype(a.array("Param").dtype),
        "VelocityOut": velocity,
        "MasterParamOut": None if master is None else out,
    }


@operator("lars_momentum")
def _lars_momentum(a: Operands) -> Outputs:
    """Momentum with a rate by the norms of each parameter and its gradient. Source: You et al. 2017."""
    names = ("Param", "Grad", "Velocity", "LearningRate")
    rows = zip(*(a.all(name) for name in names), a.attr("lars_weight_decay", [0.0005]))
    mu, coefficient, epsilon = a.attr("mu", 0.0), a.attr("lars_coeff", 0.001), a.attr("epsilon", 0.0)
    params: list[Output] = []
    velocities: list[Output] = []
    for param, grad, velocity, rate, decay in rows:
        norms = jnp.sqrt(jnp.square(param).sum()), jnp.sqrt(jnp.square(grad).sum())
        scaled = rate * coefficient * norms[0] / (norms[1] + decay * norms[0] + epsilon)
        local = jnp.where((norms[0] > 0) & (norms[1] > 0) & (decay > 0), scaled, rate)
        change = mu * velocity + local * (grad + decay * param)
        params.append((param - change).astype(param.dtype))
        velocities.append(change.astype(velocity.dtype))
    return {"ParamOut": params, "VelocityOut": velocities}
