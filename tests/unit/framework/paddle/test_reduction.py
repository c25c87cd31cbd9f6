"""Reductions, cumulative functions and statistics of framework.paddle."""

from __future__ import annotations

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import ShapeError
from framework.paddle._kernel.tensor import Tensor

VALUES = np.array([[3.0, -1.0, 2.0, 2.0], [0.5, 4.0, -2.0, 1.0]])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sum", np.sum),
        ("mean", np.mean),
        ("prod", np.prod),
        ("max", np.max),
        ("amin", np.min),
        ("std", lambda x, axis=None, keepdims=False: np.std(x, axis, ddof=1, keepdims=keepdims)),
        ("median", np.median),
        (
            "logsumexp",
            lambda x, axis=None, keepdims=False: np.log(np.sum(np.exp(x), axis, keepdims=keepdims)),
        ),
    ],
)
def test_reductions_follow_numpy(name: str, expected: object) -> None:
    function, x = getattr(paddle, name), Tensor(VALUES)
    np.testing.assert_allclose(function(x).numpy(), expected(VALUES), rtol=1e-9)  # type: ignore[operator]
    reduced = function(x, axis=-1, keepdim=True)
    assert reduced.shape == [2, 1]
    np.testing.assert_allclose(reduced.numpy(), expected(VALUES, axis=-1, keepdims=True), rtol=1e-9)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("name", "kind", "result"),
    [
        ("sum", "bool", "int64"),
        ("sum", "int32", "int64"),
        ("sum", "uint8", "uint8"),
        ("mean", "int64", "int64"),
        ("prod", "int32", "int32"),
        ("median", "int64", "float32"),
        ("nanmedian", "int64", "int64"),
        ("count_nonzero", "float32", "int64"),
        ("quantile", "float32", "float64"),
        ("cumsum", "int32", "int32"),
    ],
)
def test_types_of_results(name: str, kind: str, result: str) -> None:
    x = paddle.to_tensor([1, 0, 3, 1]).astype(kind)
    reduced = getattr(paddle, name)(x, 0.5) if name == "quantile" else getattr(paddle, name)(x)
    assert reduced.dtype == result


def test_equal_extremes_share_the_gradient_in_amax_only() -> None:
    for name, expected in (("max", [0.0, 1.0, 1.0]), ("amax", [0.0, 0.5, 0.5])):
        x = Tensor([1.0, 3.0, 3.0], stop_gradient=False)
        getattr(paddle, name)(x).backward()
        assert x.grad is not None and x.grad.tolist() == expected


def test_logsumexp_does_not_overflow() -> None:
    assert paddle.logsumexp(Tensor([1000.0, 1000.0])).item() == pytest.approx(1000 + np.log(2))
    assert paddle.logcumsumexp(Tensor([1000.0, 1000.0])).tolist() == pytest.approx([1000, 1000 + np.log(2)])


def test_empty_tensors() -> None:
    empty = paddle.zeros([0, 3])
    assert paddle.sum(empty).item() == 0.0 and paddle.sum(empty, 0).tolist() == [0.0] * 3
    assert paddle.cumsum(empty).shape == [0]
    with pytest.raises(ShapeError, match="no extreme"):
        paddle.max(empty)
    with pytest.raises(ShapeError, match="the axis is out of range"):
        paddle.sum(empty, 2)


def test_nan() -> None:
    x = Tensor([1.0, np.nan, 4.0])
    assert np.isnan(paddle.median(x).item()) and paddle.nanmedian(x).item() == 2.5
    assert paddle.nansum(x).item() == 5.0 and paddle.nanmean(x).item() == 2.5
    assert np.isnan(paddle.quantile(x, 0.5).item()) and paddle.nanquantile(x, 0.5).item() == 2.5


def test_cumulative_functions() -> None:
    x = Tensor([[1, 2], [3, 4]])
    assert paddle.cumsum(x).tolist() == [1, 3, 6, 10]
    assert paddle.cumprod(x, 1).tolist() == [[1, 2], [3, 12]]
    y = Tensor([1.0, 3.0, 3.0, 2.0], stop_gradient=False)
    largest, index = paddle.cummax(y)
    assert (largest.tolist(), index.tolist()) == ([1.0, 3.0, 3.0, 3.0], [0, 1, 2, 2])
    largest.sum().backward()
    assert y.grad is not None and y.grad.tolist() == [1.0, 1.0, 2.0, 0.0]
    assert paddle.cummin(y)[0].tolist() == [1.0] * 4


def test_differences_and_areas() -> None:
    y = Tensor([1.0, 4.0, 9.0])
    assert paddle.diff(y).tolist() == [3.0, 5.0] and paddle.diff(y, n=2).tolist() == [2.0]
    assert paddle.diff(y, prepend=Tensor([0.0])).tolist() == [1.0, 3.0, 5.0]
    assert paddle.trapezoid(y, Tensor([0.0, 2.0, 3.0])).item() == 11.5
    assert paddle.cumulative_trapezoid(y, dx=2.0).tolist() == [5.0, 18.0]
    with pytest.raises(ShapeError, match="not both"):
        paddle.trapezoid(y, y, 1.0)


def test_quantiles_of_several_levels_and_axes() -> None:
    x = Tensor(VALUES)
    for axis in (0, [0, 1]):
        expected = np.quantile(VALUES, [0.1, 0.5], tuple(axis) if isinstance(axis, list) else axis)
        np.testing.assert_allclose(paddle.quantile(x, [0.1, 0.5], axis).numpy(), expected)
    assert paddle.std(x, unbiased=False).item() == pytest.approx(VALUES.std())
    assert paddle.var(Tensor([2.0])).item() == 0.0
