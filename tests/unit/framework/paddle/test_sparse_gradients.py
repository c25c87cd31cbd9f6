"""Gradients of sparse Tensors that were computed."""

from __future__ import annotations

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
