"""`paddle._C_ops` and `paddle._legacy_C_ops`: kernels by their names and orders of arguments."""

from __future__ import annotations

import numpy as np
import pytest

from framework import paddle
from framework.paddle import _C_ops, _legacy_C_ops

RANDOM = np.random.RandomState(1)


def test_public_functions_are_called_in_the_order_of_kernels():
    x = paddle.to_tensor(RANDOM.rand(3, 4))
    assert _C_ops.argmax(x, 1, False, False, 3).tolist() == paddle.argmax(x, 1).tolist()
    assert _C_ops.sum(x, [], None, False).item() == pytest.approx(x.sum().item())
    assert _C_ops.cast(x, 5).dtype == paddle.float32
    assert _C_ops.full([2], 3.0, paddle.float32, paddle.CPUPlace()).tolist() == [3, 3]


def test_operators_of_programs_are_kernels_too():
    x, w = paddle.to_tensor(RANDOM.rand(1, 2, 5, 5)), paddle.to_tensor(RANDOM.rand(3, 2, 3, 3))
    x.stop_gradient = False
    y = _C_ops.conv2d(x, w, [1, 1], [1, 1], "EXPLICIT", [1, 1], 1, "NCHW")
    expected = paddle.nn.functional.conv2d(x, w, padding=1)
    assert np.allclose(y.numpy(), expected.numpy(), atol=1e-12)
    y.sum().backward()
    assert x.grad is not None and x.grad.shape == x.shape


def test_inputs_that_are_settings_are_read_where_others_want_a_gradient():
    x = paddle.to_tensor(RANDOM.rand(1, 1, 2, 2), stop_gradient=False)
    size = paddle.to_tensor([4, 4], "int32")
    settings = ("NCHW", 0, 0, 0, [], "nearest", False, 1)
    y = _C_ops.nearest_interp(x._use_gpudnn(False), size, None, None, *settings)
    y.sum().backward()
    assert y.shape == [1, 1, 4, 4] and x.grad is not None and x.grad.sum().item() == 16


def test_the_older_way_has_pairs_of_names_and_values():
    x = paddle.to_tensor(RANDOM.rand(3, 4))
    product = _legacy_C_ops.matmul_v2(x, x, "trans_x", False, "trans_y", True)
    assert np.allclose(product.numpy(), x.numpy() @ x.numpy().T)


def test_updates_write_into_their_inputs():
    p, g = paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([0.5, -0.5])
    moments = [paddle.zeros([2]), paddle.zeros([2])]
    powers = [paddle.to_tensor([0.9]), paddle.to_tensor([0.999])]
    rate = paddle.to_tensor([0.1])
    _C_ops.adam_(p, g, rate, *moments, *powers, None, None, 0.9, 0.999, 1e-8, False, 1000, False, False)
    assert p.numpy() == pytest.approx([0.9, 2.1], abs=1e-5)
    assert powers[0].item() == pytest.approx(0.81)


def test_losses_return_what_kernels_return():
    logits, label = paddle.to_tensor(RANDOM.rand(3, 4)), paddle.to_tensor([[0], [3], [1]])
    softmax, loss = _C_ops.cross_entropy_with_softmax(logits, label, False, True, True, -100, -1)
    assert softmax.shape == [3, 4] and loss.shape == [3, 1]
    assert loss.numpy()[1, 0] == pytest.approx(-np.log(softmax.numpy()[1, 3]))


def test_a_name_that_is_no_kernel_is_told():
    with pytest.raises(AttributeError, match="no such name"):
        _C_ops.frobnicate  # noqa: B018
