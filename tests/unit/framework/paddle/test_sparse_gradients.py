"""Gradients of sparse Tensors that were computed."""

from __future__ import annotations

import numpy as np
import pytest

from framework import paddle


def test_gradients_of_computed_sparse_tensors_are_kept() -> None:
    x = paddle.sparse.sparse_coo_tensor([[0, 1]], [1.0, 2.0], [3], stop_gradient=False)
    y = paddle.sparse.square(x)
    y.retain_grads()
    y.to_dense().sum().backward()
    assert y.grad is not None and y.grad.values().tolist() == [1.0, 1.0]
    y.clear_gradient(False)
    assert y.grad is None


@pytest.mark.parametrize(
    ("sparse_axes", "axis", "keepdim", "positions", "values"),
    [
        (1, 0, False, [[0]], [[-2, 3, 4]]),
        (1, 1, False, [[0, 1]], [1, 4]),
        (1, 1, True, [[0, 1]], [[1], [4]]),
        (2, 0, True, [[0, 0, 0], [0, 1, 2]], [-2, 3, 4]),
    ],
)
def test_sums_of_points_with_several_values(
    sparse_axes: int, axis: int, keepdim: bool, positions: list, values: list
) -> None:
    """paddlepaddle 2.6.2."""
    x = paddle.to_tensor([[-2.0, 0.0, 3.0], [0.0, 3.0, 1.0]]).to_sparse_coo(sparse_axes)
    result = paddle.sparse.sum(x, axis, keepdim=keepdim)
    assert result.indices().tolist() == positions and result.values().tolist() == values


@pytest.mark.parametrize(("sparse_axes", "axis"), [(3, 0), (3, -2), (3, 2), (2, 1), (2, 2), (1, 0)])
def test_softmax_runs_along_sparse_and_dense_axes(sparse_axes: int, axis: int) -> None:
    dense = np.arange(24.0).reshape(2, 3, 4) % 5 + 1
    whole = paddle.to_tensor(dense).to_sparse_coo(sparse_axes)
    powers = np.exp(dense)
    result = paddle.sparse.nn.functional.softmax(whole, axis)
    np.testing.assert_allclose(result.to_dense().numpy(), powers / powers.sum(axis, keepdims=True))


def test_softmax_counts_the_elements_that_are_kept() -> None:
    row = paddle.sparse.sparse_coo_tensor([[0, 2]], [1.0, 1.0], [3])
    assert paddle.sparse.nn.functional.softmax(row, 0).to_dense().tolist() == [0.5, 0, 0.5]
    with pytest.raises(NotImplementedError, match="last axis"):
        paddle.sparse.nn.functional.softmax(paddle.ones([2, 2]).to_sparse_csr(), 0)
    with pytest.raises(ValueError, match="no such axis"):
        paddle.sparse.nn.functional.softmax(row, 1)
