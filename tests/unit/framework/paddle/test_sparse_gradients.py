"""Gradients of sparse Tensors that were computed."""

from __future__ import annotations

from framework import paddle


def test_gradients_of_computed_sparse_tensors_are_kept() -> None:
    x = paddle.sparse.sparse_coo_tensor([[0, 1]], [1.0, 2.0], [3], stop_gradient=False)
    y = paddle.sparse.square(x)
    y.retain_grads()
    y.to_dense().sum().backward()
    assert y.grad is not None and y.grad.values().tolist() == [1.0, 1.0]
    y.clear_gradient(False)
    assert y.grad is None
