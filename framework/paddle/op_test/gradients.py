"""Comparison of gradients in the way of Paddle's tests: with given ones, or with differences along directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from framework.paddle._kernel.tape import no_grad
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.ops.creation import to_tensor

_STEP = 1e-5
_DIRECTIONS = 2
_SMALL = 1e-3  # below it an absolute difference counts


def assert_close(ours: np.ndarray, expected: np.ndarray, name: str, limit: float, atol: float = 1e-5) -> None:
    """That no element differs by more than `limit`, relative to the expected one.

    Raises:
        AssertionError: one does, or the shapes differ.
    """
    if ours.shape != expected.shape:
        raise AssertionError(f"gradient of {name}: shape {ours.shape}, expected {expected.shape}")
    size = np.abs(expected)
    difference = np.abs(ours - expected) / np.where(size < _SMALL, 1, size)
    over = (difference > limit) & (np.abs(ours - expected) > atol)
    if over.any() or np.isnan(difference).any():
        raise AssertionError(
            f"gradient of {name} differs by {np.nanmax(difference):.2e}, the limit is {limit:.2e}: "
            f"{ours.reshape(-1)[:8]}, expected {expected.reshape(-1)[:8]}"
        )


def check_directions(
    loss: Callable[[], Tensor],
    leaves: Sequence[Tensor],
    gradients: Sequence[np.ndarray],
    names: Sequence[str],
    limit: float,
) -> None:
    """That the gradients in float64 agree with the differences of `loss` along random directions.

    Raises:
        AssertionError: one does not.
    """
    random = np.random.RandomState(5)
    for leaf, gradient, name in zip(leaves, gradients, names, strict=True):
        start = leaf.numpy()
        if start.dtype.kind != "f" or not start.size:
            continue
        for _ in range(_DIRECTIONS):
            direction = random.randn(*start.shape) / np.sqrt(start.size)
            numeric = _slope(loss, leaf, start, direction)
            analytic = float((gradient * direction).sum())
            scale = max(abs(numeric), abs(analytic), float(np.linalg.norm(gradient)) * 0.05, 1e-6)
            if not abs(numeric - analytic) <= limit * scale:
                raise AssertionError(f"gradient of {name}: {analytic} along a direction, numeric {numeric}")


def _slope(loss: Callable[[], Tensor], leaf: Tensor, start: np.ndarray, direction: np.ndarray) -> float:
    values = []
    for step in (_STEP, -_STEP):
        leaf.set_value(to_tensor((start + step * direction).astype(start.dtype)))
        with no_grad():
            values.append(float(np.real(loss().numpy())))
    leaf.set_value(to_tensor(start))
    return (values[0] - values[1]) / (2 * _STEP)
