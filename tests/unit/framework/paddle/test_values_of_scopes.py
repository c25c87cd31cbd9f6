"""Values of scopes by Paddle's older methods, and least squares in static programs."""

from __future__ import annotations

import numpy as np
import pytest

from framework import paddle
from framework.paddle import static
from framework.paddle.base import core


def test_values_are_allocated_sliced_and_copied() -> None:
    assert core.Tensor is core.LoDTensor and core.eager.Tensor is paddle.Tensor
    tensor = core.Scope().var("x").get_tensor()
    tensor._set_dims([2, 3])
    tensor._alloc_int(None)
    assert np.asarray(tensor).dtype == np.int32 and tensor.shape() == [2, 3] and tensor._numel() == 6
    tensor.set(np.arange(6).reshape(2, 3), None)
    other = core.Tensor()
    other._copy_from(tensor._slice(1, 2))
    assert np.asarray(other).tolist() == [[3, 4, 5]] and other._ptr() > 0
    with pytest.raises(ValueError, match="not taken"):
        tensor.set(["1", "2"], None)


def test_numbers_of_scopes() -> None:
    scope = core.Scope()
    number = scope.var("n")
    number.set_int(10)
    assert number.is_int() and not number.is_float() and number.get_int() == 10 and scope.size() == 1


def test_least_squares_of_a_program() -> None:
    paddle.enable_static()
    try:
        with static.program_guard(static.Program()):
            x, y = static.data("x", [3, 2], "float64"), static.data("y", [3, 1], "float64")
            results = paddle.linalg.lstsq(x, y, driver="gelsd")
            feed = {"x": np.array([[1.0, 0], [0, 1], [1, 1]]), "y": np.array([[1.0], [2], [3]])}
            solution = static.Executor().run(feed=feed, fetch_list=list(results))[0]
    finally:
        paddle.disable_static()
    np.testing.assert_allclose(solution, [[1.0], [2.0]], atol=1e-12)
