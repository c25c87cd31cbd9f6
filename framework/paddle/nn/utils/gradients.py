"""Parameters as one vector, and clipping of the gradients that parameters hold."""

from __future__ import annotations

import math
from collections.abc import Iterable

import jax.numpy as jnp

from framework.paddle._kernel.dispatch import Array, Arrays, operation
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.tensor import Tensor


@operation(name="parameters_to_vector")
def _joined(parameters: Arrays) -> Array:
    return jnp.concatenate([p.reshape(-1) for p in parameters])


@operation(name="vector_to_parameters", differentiable=False)
def _parts(vec: Array, shapes: tuple[tuple[int, ...], ...]) -> tuple[Array, ...]:
    ends, total = [], 0
    for shape in shapes:
        total += math.prod(shape)
        ends.append(total)
    return tuple(p.reshape(s) for p, s in zip(jnp.split(vec, ends[:-1]), shapes, strict=True))


def parameters_to_vector(parameters: Iterable[Tensor], name: str | None = None) -> Tensor:
    """All numbers of the parameters in one vector, for optimizers such as L-BFGS."""
    return _joined(list(parameters))


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor], name: str | None = None) -> None:
    """Set the parameters from what `parameters_to_vector` made.

    Raises:
        ShapeError: the vector has another length.
    """
    chosen = list(parameters)
    needed = sum(p.size for p in chosen)
    if vec.size != needed:
        raise ShapeError(
            "the vector does not fit the parameters",
            where="paddle.nn.utils.vector_to_parameters",
            received=f"{vec.size} numbers",
            allowed=f"{needed}",
        )
    for parameter, part in zip(chosen, _parts(vec, [p.shape for p in chosen]), strict=True):
        parameter._value = part._value


@operation(name="clip_grad_norm", differentiable=False)
def _scaled(grads: Arrays, max_norm: Array, norm_type: float) -> tuple[Array, ...]:
    """(norm of all, scaled gradients …)."""
    flat = [g.astype(jnp.promote_types(g.dtype, jnp.float32)).reshape(-1) for g in grads]
    if norm_type == math.inf:
        total = jnp.stack([jnp.abs(g).max() for g in flat]).max()
    else:
        total = sum(jnp.sum(jnp.abs(g) ** norm_type) for g in flat) ** (1.0 / norm_type)
    factor = jnp.minimum(max_norm / (total + 1e-6), 1.0)
    return (total, *[(g * factor).astype(g.dtype) for g in grads])


def _with_gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    chosen = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p for p in chosen if p.grad is not None]


def _needs_dynamic_mode(function: str) -> None:
    if mode.recorder is not None:
        raise RuntimeError(
            f"paddle.nn.utils.{function} is for dynamic mode: give the optimizer a grad_clip in static mode"
        )


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale the gradients that the parameters hold so that their joint norm is at most `max_norm`; returns the norm
    before.

    Raises:
        ShapeError: `norm_type` is no norm.
        RuntimeError: the norm is not finite, and `error_if_nonfinite`; static mode, which has no gradients to change.
    """
    _needs_dynamic_mode("clip_grad_norm_")
    kind = float(norm_type)
    if not kind > 0:
        raise ShapeError(
            "there is no such norm",
            where="paddle.nn.utils.clip_grad_norm_",
            received=f"norm_type {norm_type}",
            allowed="a positive number, float('inf')",
        )
    chosen = _with_gradients(parameters)
    if not chosen:
        return Tensor(0.0)
    total, *grads = _scaled([p.grad for p in chosen], float(max_norm), kind)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(f"the norm of the gradients is {total.item()}: nothing was clipped")
    for parameter, grad in zip(chosen, grads, strict=True):
        assert parameter.grad is not None
        parameter.grad._value = grad._value
    return total


@operation(name="clip_grad_value", differentiable=False)
def _limited(grads: Arrays, clip_value: Array) -> tuple[Array, ...]:
    return tuple(jnp.clip(g, -clip_value, clip_value).astype(g.dtype) for g in grads)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Limit every element of the gradients that the parameters hold to [-clip_value, clip_value].

    Raises:
        ShapeError: `clip_value` is negative.
        RuntimeError: static mode, which has no gradients to change.
    """
    _needs_dynamic_mode("clip_grad_value_")
    if clip_value < 0:
        raise ShapeError(
            "clip_value is 0 or more", where="paddle.nn.utils.clip_grad_value_", received=str(clip_value)
        )
    chosen = _with_gradients(parameters)
    if chosen:
        grads = _limited([p.grad for p in chosen], float(clip_value))
        for parameter, grad in zip(chosen, grads, strict=True):
            assert parameter.grad is not None
            parameter.grad._value = grad._value
