"""LBFGS: a quasi-Newton method that calls the program's own function for loss and gradients as often as it needs.

What it does next depends on the values, so it runs on the host, on numpy arrays of all parameters in one row.
Source: Nocedal and Wright, Numerical Optimization, algorithms 7.4, 7.5 and, of the line search, 3.5 and 3.6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from framework.optimizer.rules import Rule
from framework.paddle._kernel import tape
from framework.paddle._kernel.arguments import DecayLike, Parameters
from framework.paddle._kernel.errors import UnknownMethodError
from framework.paddle._kernel.tensor import Parameter, Tensor, as_array, wrap
from framework.paddle.optimizer.base import Optimizer

if TYPE_CHECKING:
    from framework.paddle.nn.clip import ClipGradBase

Point = tuple[float, float, np.ndarray, float]  # step length, loss, gradient, its slope along the direction
Evaluate = Callable[[float], tuple[float, np.ndarray]]  # step length -> (loss, gradient)


class LBFGS(Optimizer):
    """`optimizer.step(closure)`: closure clears the gradients, computes the loss, calls backward() and returns it.

    Args:
        learning_rate: the first step length tried.
        max_iter: iterations in a step. max_eval: calls of closure in a step, 1.25 * max_iter by default.
        tolerance_grad, tolerance_change: a step ends when the largest gradient, or the change of the parameters or of
            the loss, is not above these.
        history_size: pairs of changes that the curvature is taken from.
        line_search_fn: None, or "strong_wolfe".
    """

    def __init__(
        self,
        learning_rate: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        parameters: Parameters | None = None,
        weight_decay: DecayLike = None,
        grad_clip: ClipGradBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(1.0, parameters, weight_decay, grad_clip, name)
        self.learning_rate, self.max_iter = learning_rate, max_iter
        self.max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        self.tolerance_grad, self.tolerance_change = tolerance_grad, tolerance_change
        self.history_size, self.line_search_fn = history_size, line_search_fn
        self.state: dict[str, Any] = {}

    def _rule(self, param: Tensor, group: object) -> Rule:
        raise RuntimeError("LBFGS moves all parameters together: call step(closure)")

    def state_dict(self) -> dict[str, object]:
        """The counts, the last direction and gradient, and the pairs of changes, as Tensors."""
        return {
            "state": {
                key: wrap(as_array(value))
                if isinstance(value, np.ndarray)
                else [wrap(as_array(part)) for part in value]
                if isinstance(value, list)
                else value
                for key, value in self.state.items()
            }
        }

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        self.state = {
            key: [np.asarray(part) for part in value]
            if isinstance(value, list)
            else value.numpy()
            if isinstance(value, Tensor)
            else value
            for key, value in state_dict["state"].items()
        }

    def minimize(
        self,
        loss: Tensor,
        startup_program: object = None,
        parameters: object = None,
        no_grad_set: object = None,
    ) -> NoReturn:
        raise UnknownMethodError(
            "LBFGS needs a function that computes the loss again",
            where="paddle.optimizer.LBFGS.minimize",
            fix="call step(closure)",
        )

    def _gradient(self) -> np.ndarray:
        grads = [
            p.grad.numpy() if p.grad is not None else np.zeros(p.shape, p.dtype.numpy) for p in self._own()
        ]
        return np.concatenate([grad.reshape(-1) for grad in grads])

    def _own(self) -> list[Parameter]:
        return self._all_parameters()

    def _move(self, start: Sequence[np.ndarray], step: float, direction: np.ndarray) -> None:
        """Set the parameters to `start + step * direction`."""
        at = 0
        for parameter, values in zip(self._own(), start, strict=True):
            part = direction[at : at + values.size].reshape(values.shape)
            parameter._value = as_array(values + part * step, parameter.dtype)
            at += values.size

    def step(self, closure: Callable[[], Tensor]) -> Tensor:  # type: ignore[override]
        """Up to `max_iter` iterations; returns the loss before the first.

        Raises:
            RuntimeError: `line_search_fn` is another one.
        """
        if self.line_search_fn not in (None, "strong_wolfe"):
            raise RuntimeError(
                f"LBFGS: line_search_fn is None or 'strong_wolfe', received {self.line_search_fn!r}"
            )
        evaluate = tape.enable_grad(closure)
        state = self.state
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = evaluate()  # type: ignore[operator]
        loss = float(first)
        calls = 1
        state["func_evals"] += 1
        gradient = self._gradient()
        if np.abs(gradient).max() <= self.tolerance_grad:
            return first
        for iteration in range(1, self.max_iter + 1):
            state["n_iter"] += 1
            direction = self._direction(gradient)
            state["prev_flat_grad"], before = gradient.copy(), loss
            length = self.learning_rate
            if state["n_iter"] == 1:
                length = min(1.0, 1.0 / np.abs(gradient).sum()) * self.learning_rate
            slope = gradient.dot(direction)
            state["d"], state["alpha"], state["prev_loss"] = direction, length, before
            if slope > -self.tolerance_change:
                break
            start = [parameter.numpy() for parameter in self._own()]

            def at(
                step: float, start: list[np.ndarray] = start, direction: np.ndarray = direction
            ) -> tuple[float, np.ndarray]:
                self._move(start, step, direction)
                return float(evaluate()), self._gradient()  # type: ignore[operator]

            done = 0
            if self.line_search_fn is not None:
                search = _Search(at, direction, (0.0, loss, gradient, slope), self.tolerance_change)
                (length, loss, gradient, _), done = search.run(length)
                self._move(start, length, direction)
            else:
                self._move(start, length, direction)
                if iteration != self.max_iter:
                    loss, gradient = at(length)
                    done = 1
            state["alpha"] = length
            calls += done
            state["func_evals"] += done
            if np.abs(gradient).max() <= self.tolerance_grad or calls >= self.max_eval:
                break
            if np.abs(direction * length).max() <= self.tolerance_change:
                break
            if abs(loss - before) < self.tolerance_change:
                break
        return first

    def _direction(self, gradient: np.ndarray) -> np.ndarray:
        """Minus the gradient, times the inverse of the curvature that the last changes show."""
        state = self.state
        if state["n_iter"] == 1:
            state.update(old_yk=[], old_sk=[], ro=[], H_diag=np.ones((), gradient.dtype))
            return -gradient
        change = gradient - state["prev_flat_grad"]
        moved = state["d"] * gradient.dtype.type(state["alpha"])
        product = change.dot(moved)
        changes, moves, inverse = state["old_yk"], state["old_sk"], state["ro"]
        if product > 1e-10:
            if len(changes) == self.history_size:
                for history in (changes, moves, inverse):
                    history.pop(0)
            changes.append(change)
            moves.append(moved)
            inverse.append(np.asarray(1.0 / product))
            state["H_diag"] = np.asarray(product / change.dot(change))
        row = -gradient
        weights = []
        for y, s, r in zip(reversed(changes), reversed(moves), reversed(inverse), strict=True):
            weights.append(s.dot(row) * r)
            row = row - y * weights[-1]
        row = row * state["H_diag"]
        for y, s, r, weight in zip(changes, moves, inverse, reversed(weights), strict=True):
            row = row + s * (weight - y.dot(row) * r)
        return row


class _Search:
    """A step length that lowers the loss enough and flattens its slope: the strong Wolfe conditions."""

    c1, c2, most = 1e-4, 0.9, 25

    def __init__(self, evaluate: Evaluate, direction: np.ndarray, start: Point, tolerance: float) -> None:
        self.evaluate, self.direction, self.start, self.tolerance = evaluate, direction, start, tolerance
        self.calls = 0

    def _at(self, length: float) -> Point:
        loss, gradient = self.evaluate(length)
        self.calls += 1
        return length, loss, gradient, gradient.dot(self.direction)

    def _too_high(self, point: Point) -> bool:
        return point[1] > self.start[1] + self.c1 * point[0] * self.start[3]

    def _flat(self, point: Point) -> bool:
        return abs(point[3]) <= -self.c2 * self.start[3]

    def run(self, length: float) -> tuple[Point, int]:
        """The best point found, and how often the loss was computed."""
        before, point, turns = self.start, self._at(length), 0
        while turns < self.most:
            if self._too_high(point) or (turns > 1 and point[1] >= before[1]):
                return self._between(before, point, turns), self.calls
            if self._flat(point):
                return point, self.calls
            if point[3] >= 0:
                return self._between(before, point, turns), self.calls
            bounds = (point[0] + 0.01 * (point[0] - before[0]), point[0] * 10)
            length = _lowest(before, point, bounds)
            before, point, turns = point, self._at(length), turns + 1
        return min(self.start, point, key=lambda p: p[1]), self.calls

    def _between(self, one: Point, other: Point, turns: int) -> Point:
        """Narrow the bracket until it holds a point that will do."""
        low, high = (one, other) if one[1] <= other[1] else (other, one)
        reach, stalled = np.abs(self.direction).max(), False
        while turns < self.most and abs(high[0] - low[0]) * reach >= self.tolerance:
            length = _lowest(low, high)
            left, right = min(low[0], high[0]), max(low[0], high[0])
            margin = 0.1 * (right - left)
            if min(right - length, length - left) < margin:
                if stalled or length >= right or length <= left:
                    length = right - margin if abs(length - right) < abs(length - left) else left + margin
                    stalled = False
                else:
                    stalled = True
            else:
                stalled = False
            point, turns = self._at(length), turns + 1
            if self._too_high(point) or point[1] >= low[1]:
                high = point
                if low[1] > high[1]:
                    low, high = high, low
                continue
            if self._flat(point):
                return point
            if point[3] * (high[0] - low[0]) >= 0:
                high = low
            low = point
        return low


def _lowest(one: Point, other: Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two points with their slopes is lowest, within the bounds (the points themselves)."""
    (x1, f1, _, g1), (x2, f2, _, g2) = (one, other) if one[0] <= other[0] else (other, one)
    low, high = bounds or (x1, x2)
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1 * d1 - g1 * g2
    if square < 0:
        return (low + high) / 2
    d2 = np.sqrt(square)
    return min(max(x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2)), low), high)
