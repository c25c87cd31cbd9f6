"""paddle.incubate.optimizer.functional: quasi-Newton methods that minimise a function of one vector.

What they do next depends on values, so they run on the host; the function is called for its value and its gradient.
Source: Nocedal and Wright, Numerical Optimization, algorithms 3.5, 3.6, 6.1 and 7.4. The line search keeps the slope of
its first point for all brackets, as Paddle's does, so that both find the same points.
Differs: Paddle 2.6.2 updates the inverse of the Hessian of BFGS by the transposed factors, and converges later or not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from framework import paddle
from framework.paddle._kernel.errors import ModeError, UnknownMethodError
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Tensor, as_array, wrap

__all__ = ["minimize_bfgs", "minimize_lbfgs"]

Function = Callable[[Tensor], Tensor]
_SLOPE, _CURVATURE, _LONGEST, _NARROWEST = 1e-4, 0.9, 10.0, 1e-8  # of the line search


@dataclass(frozen=True)
class _Settings:
    """When the iterations end, and what the first step length is."""

    max_iters: int
    tolerance_grad: float
    tolerance_change: float
    max_line_search_iters: int
    initial_step_length: float


@dataclass
class _Point:
    """A point on the line: step length, value, slope along the line and gradient."""

    step: np.floating
    value: np.ndarray
    slope: float
    gradient: np.ndarray


class _Objective:
    """The function on arrays. `calls` counts them as Paddle does, whose searches do not count their last one."""

    def __init__(self, function: Function, dtype: str) -> None:
        self.function, self.dtype, self.calls = function, np.dtype(dtype), 1

    def __call__(self, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(value, gradient)."""
        x = wrap(as_array(position))
        x.stop_gradient = False
        value = self.function(x)
        gradient = paddle.grad([value], [x])[0]
        return value.detach().numpy(), np.zeros_like(position) if gradient is None else gradient.numpy()

    def search(self, position: np.ndarray, direction: np.ndarray, settings: _Settings) -> _Point:
        """A point that meets the strong Wolfe conditions; the start, with the step 0, where none was reached."""
        limit = settings.max_line_search_iters

        def at(step: np.floating) -> _Point:
            value, gradient = self(position + step * direction)
            return _Point(step, value, np.dot(gradient, direction), gradient)

        start = before = at(self.dtype.type(0.0))
        self.calls += 1
        step = self.dtype.type(settings.initial_step_length)
        for iteration in range(limit):
            point = at(step)
            self.calls += 1
            if np.isinf(point.value).any():
                return start
            if _is_high(point, start) or (point.value >= before.value and iteration > 1):
                return self._narrow(at, before, point, start, limit)
            if abs(point.slope) <= -_CURVATURE * start.slope:
                return point
            if point.slope >= 0:
                return self._narrow(at, point, before, start, limit)
            before = _Point(point.step, point.value, start.slope, point.gradient)
            step = np.minimum(2 * step, self.dtype.type(_LONGEST))
        return start

    def _narrow(
        self, at: Callable[[np.floating], _Point], low: _Point, high: _Point, start: _Point, limit: int
    ) -> _Point:
        """The lower end of the bracket, once it meets the conditions or the bracket is narrow."""
        for _ in range(limit):
            width = abs(high.step - low.step)
            if width < _NARROWEST:
                break
            step = _lowest(low, high)
            if min(abs(step - low.step), abs(step - high.step)) < 0.1 * width:
                step = self.dtype.type(0.5) * (low.step + high.step)
            point = at(self.dtype.type(step))
            if _is_high(point, start) or point.value >= low.value:
                high = point
            elif abs(point.slope) <= -_CURVATURE * start.slope:
                return point
            else:
                high = low if point.slope * (high.step - low.step) >= 0 else high
                low = point
            self.calls += 1
        return low


def _is_high(point: _Point, start: _Point) -> bool:
    return bool(point.value > start.value + _SLOPE * point.step * start.slope)


def _lowest(one: _Point, other: _Point) -> np.floating:
    """Where the cubic through two points with their slopes is lowest between them."""
    first, last = (one, other) if one.step <= other.step else (other, one)
    sum_ = one.slope + other.slope - 3 * (one.value - other.value).item() / (one.step - other.step)
    square = sum_**2 - one.slope * other.slope
    if not square >= 0:
        return (first.step + last.step) / 2
    root = np.sqrt(square)
    share = (last.slope + root - sum_) / (last.slope - first.slope + 2 * root)
    return np.clip(last.step - (last.step - first.step) * share, first.step, last.step)


def _checked(
    position: object, estimate: Tensor | None, line_search_fn: str, dtype: str, where: str
) -> tuple[np.ndarray, np.ndarray]:
    """The start, and the first inverse of the Hessian. Raises: ValueError, NotImplementedError, ModeError."""
    if dtype not in ("float32", "float64"):
        raise ValueError(f"The dtype must be 'float32' or 'float64', but the specified is {dtype}.")
    if not paddle.in_dynamic_mode():
        raise ModeError(
            "the iterations depend on values, which a static program has not",
            where=where,
            fix="call it in dynamic mode, after paddle.disable_static()",
        )
    for value in (position, estimate):
        if not isinstance(value, Tensor) and value is not None:
            raise ValueError(f"The input: {value} must be tensor.")
    assert isinstance(position, Tensor)
    if line_search_fn != "strong_wolfe":
        raise UnknownMethodError(
            "Currently only support line_search_fn = 'strong_wolfe'",
            where=where,
            received=repr(line_search_fn),
        )
    start = position.detach().numpy()
    if estimate is None:
        return start, np.eye(len(start), dtype=dtype)
    inverse = estimate.numpy()
    if not (inverse == inverse.T).all() or (np.linalg.eigvalsh(inverse) <= 0).any():
        raise ValueError(
            "The initial_inverse_hessian_estimate should be symmetric and positive definite, but the specified is not."
        )
    return start, inverse


def _inverse_product(change: np.ndarray, move: np.ndarray) -> np.floating:
    """1 / (change . move); 1000 where that is 0, as in Paddle."""
    product = np.dot(change, move)
    return move.dtype.type(1000.0 if product == 0 else 1 / product)


@dataclass
class _Result:
    """Where the iterations ended."""

    converged: bool
    position: np.ndarray
    value: np.ndarray
    gradient: np.ndarray

    def tensors(self, calls: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        arrays = (np.array([self.converged]), np.array([calls], np.int64))
        converged, count, position, value, gradient = (
            wrap(as_array(array)) for array in (*arrays, self.position, self.value, self.gradient)
        )
        return converged, count, position, value, gradient


def _iterate(
    objective: _Objective,
    position: np.ndarray,
    settings: _Settings,
    direct: Callable[[np.ndarray], np.ndarray],
    update: Callable[[np.ndarray, np.ndarray], None],
) -> _Result:
    """Steps along `direct(gradient)`; `update(move, change of the gradient)` comes after each."""
    value, gradient = objective(position)
    for _ in range(settings.max_iters):
        direction = direct(gradient)
        point = objective.search(position, direction, settings)
        move = point.step * direction
        position = position + move
        update(move, point.gradient - gradient)
        value, gradient = point.value, point.gradient
        is_flat = np.abs(gradient).max() < settings.tolerance_grad
        if is_flat or np.abs(direction).max() < settings.tolerance_change:
            return _Result(True, position, value, gradient)
        if point.step == 0:
            break
    return _Result(False, position, value, gradient)


def minimize_bfgs(
    objective_func: Function,
    initial_position: Tensor,
    max_iters: int = 50,
    tolerance_grad: float = 1e-7,
    tolerance_change: float = 1e-9,
    initial_inverse_hessian_estimate: Tensor | None = None,
    line_search_fn: str = "strong_wolfe",
    max_line_search_iters: int = 50,
    initial_step_length: float = 1.0,
    dtype: str = "float32",
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """(converged [1] bool, calls of the function [1], position, value, gradient, inverse of the Hessian) of the BFGS
    method.

    Args:
        objective_func: From a vector to one number.
        tolerance_grad, tolerance_change: It has converged when the largest gradient, or the largest change of the
            direction, is below these.
        initial_inverse_hessian_estimate: Symmetric and positive definite [N, N]; the identity by default.
        dtype: "float32" or "float64", that of the vector.
    """
    checks = (initial_inverse_hessian_estimate, line_search_fn, dtype, "minimize_bfgs")
    position, inverse = _checked(initial_position, *checks)
    objective = _Objective(objective_func, dtype)
    identity = np.eye(len(position), dtype=dtype)

    def update(move: np.ndarray, change: np.ndarray) -> None:
        nonlocal inverse
        weight = _inverse_product(change, move)
        left = identity - weight * np.outer(move, change)
        inverse = left @ inverse @ left.T + weight * np.outer(move, move)

    settings = _Settings(
        max_iters, tolerance_grad, tolerance_change, max_line_search_iters, initial_step_length
    )
    result = _iterate(objective, position, settings, lambda gradient: -(inverse @ gradient), update)
    return *result.tensors(objective.calls), wrap(as_array(inverse))


def minimize_lbfgs(
    objective_func: Function,
    initial_position: Tensor,
    history_size: int = 100,
    max_iters: int = 50,
    tolerance_grad: float = 1e-8,
    tolerance_change: float = 1e-8,
    initial_inverse_hessian_estimate: Tensor | None = None,
    line_search_fn: str = "strong_wolfe",
    max_line_search_iters: int = 50,
    initial_step_length: float = 1.0,
    dtype: str = "float32",
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """(converged [1] bool, calls of the function [1], position, value, gradient) of the L-BFGS method, which takes the
    curvature from the last `history_size - 1` changes; other arguments as of `minimize_bfgs`."""
    checks = (initial_inverse_hessian_estimate, line_search_fn, dtype, "minimize_lbfgs")
    position, inverse = _checked(initial_position, *checks)
    objective = _Objective(objective_func, dtype)
    history: deque[tuple[np.ndarray, np.ndarray, np.floating]] = deque(maxlen=max(history_size - 1, 0))

    def direct(gradient: np.ndarray) -> np.ndarray:
        row, weights = gradient, []
        for move, change, weight in reversed(history):
            weights.append(weight * (move @ row))
            row = row - weights[-1] * change
        row = inverse @ row
        for (move, change, weight), first in zip(history, reversed(weights), strict=True):
            row = row + move * (first - weight * (change @ row))
        return -row

    def update(move: np.ndarray, change: np.ndarray) -> None:
        history.append((move, change, _inverse_product(change, move)))

    settings = _Settings(
        max_iters, tolerance_grad, tolerance_change, max_line_search_iters, initial_step_length
    )
    return _iterate(objective, position, settings, direct, update).tensors(objective.calls)


_complete(__name__)
