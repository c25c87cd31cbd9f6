"""Convolutions and pooling of sparse points agree with the dense ones at the points that are kept."""

import numpy as np
import pytest

from framework import paddle

functional = paddle.sparse.nn.functional


@pytest.fixture(scope="module")
def points():
    draw = np.random.default_rng(0)
    return np.where(draw.random((1, 4, 4, 4, 1)) < 0.3, draw.random((1, 4, 4, 4, 2)) + 0.1, 0).astype(
        np.float32
    )


def test_windows_that_meet_a_point_are_the_dense_convolution(points):
    weight = np.random.default_rng(1).standard_normal((3, 3, 3, 2, 3)).astype(np.float32)
    own, other = (paddle.to_tensor(weight, stop_gradient=False) for _ in range(2))
    sparse = functional.conv3d(paddle.to_tensor(points).to_sparse_coo(4), own, stride=2, padding=1).to_dense()
    dense = paddle.nn.functional.conv3d(
        paddle.to_tensor(points), other.transpose([4, 3, 0, 1, 2]), stride=2, padding=1, data_format="NDHWC"
    )
    np.testing.assert_allclose(sparse.numpy(), dense.numpy(), atol=1e-5)
    (sparse**2).sum().backward()
    (dense**2).sum().backward()
    np.testing.assert_allclose(own.grad.numpy(), other.grad.numpy(), rtol=1e-4, atol=1e-4)


def test_submanifold_layers_keep_the_points(points):
    x = paddle.to_tensor(points).to_sparse_coo(4)
    layer = paddle.sparse.nn.SubmConv3D(2, 3, 3)
    dense = paddle.nn.functional.conv3d(
        paddle.to_tensor(points),
        layer.weight.transpose([4, 3, 0, 1, 2]),
        layer.bias,
        padding=1,
        data_format="NDHWC",
    ).numpy()
    y = layer(x)
    np.testing.assert_array_equal(y.indices().numpy(), x.indices().numpy())
    np.testing.assert_allclose(y.values().numpy(), dense[tuple(x.indices().numpy())], atol=1e-5)


def test_pooling_takes_the_greatest_point(points):
    y = paddle.sparse.nn.MaxPool3D(2)(paddle.to_tensor(points).to_sparse_coo(4))
    dense = points.reshape(1, 2, 2, 2, 2, 2, 2, 2).max((2, 4, 6))
    np.testing.assert_array_equal(y.to_dense().numpy(), dense)


def test_dense_axes_are_asked_for(points):
    with pytest.raises(ValueError, match=r"to_sparse_coo\(4\)"):
        functional.max_pool3d(paddle.to_tensor(points).to_sparse_coo(5), 2)


def test_batch_norms_become_synchronized_ones(points):
    sparse, kind = paddle.sparse.nn.BatchNorm(2), paddle.sparse.nn.SyncBatchNorm
    model = paddle.nn.Sequential(sparse, paddle.nn.BatchNorm2D(3), paddle.nn.ReLU())
    x = paddle.to_tensor(points).to_sparse_coo(4)
    expected = paddle.sparse.nn.BatchNorm(2)(x).values().numpy()
    converted = kind.convert_sync_batchnorm(model)
    assert [type(layer) for layer in converted] == [kind, paddle.nn.SyncBatchNorm, paddle.nn.ReLU]
    assert converted[0].weight is sparse.weight and kind.convert_sync_batchnorm(converted[0]) is converted[0]
    np.testing.assert_allclose(converted[0](x).values().numpy(), expected)
