"""Lists of Tensors by the names of Paddle's older interface."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from framework import paddle
from framework.paddle.tensor.array import (
    array_length,
    array_read,
    array_write,
    create_array,
    tensor_array_to_tensor,
)


@pytest.fixture
def static() -> Iterator[None]:
    paddle.enable_static()
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        yield
    paddle.disable_static()


def test_dynamic_lists() -> None:
    first, second = paddle.ones([1, 2]), paddle.zeros([1, 2])
    i = paddle.zeros([1], "int64")
    array = array_write(first, i)
    assert array_write(second, i + 1, array) is array and array_length(array) == 2
    assert array_read(array, i + 1) is second
    joined, sizes = tensor_array_to_tensor(array, axis=0)
    assert joined.tolist() == [[1, 1], [0, 0]] and sizes.tolist() == [1, 1]
    with pytest.raises(AssertionError, match="position 4 is behind the end of a list of 2 Tensors"):
        array_write(first, i + 4, array)
    with pytest.raises(TypeError, match="list/tuple of Tensors"):
        create_array("float32", [1])  # type: ignore[list-item]


def test_static_lists_hold_what_was_written(static: None) -> None:
    x = paddle.static.data("x", [2])
    i = paddle.zeros([1], "int64")
    array = create_array("float32")
    for _ in range(2):
        array_write(x * 2, i, array)
        paddle.increment(i)
    length = array_length(array)
    assert isinstance(length, paddle.Tensor) and length.item() == 2
    stacked, _ = tensor_array_to_tensor(array, axis=0, use_stack=True)
    (value,) = paddle.static.Executor().run(feed={"x": np.ones(2, np.float32)}, fetch_list=[stacked])
    np.testing.assert_array_equal(value, np.full((2, 2), 2))
    with pytest.raises(TypeError, match="'array' must be what create_array gives"):
        array_read([x], i)
    with pytest.raises(TypeError, match="'i' must be int64"):
        array_read(array, x)


def test_variables_are_for_static_mode() -> None:
    with pytest.raises(AssertionError, match="is for static mode"):
        paddle.static.data("x", [1])
