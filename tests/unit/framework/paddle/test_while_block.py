"""`While` and arrays whose positions are variables. The values are those of Paddle 2.6.2."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from framework.paddle.static.nn.control_flow import While  # type: ignore[import-not-found]

from framework import paddle
from framework.core.errors import TraceError
from framework.paddle import static

X = {"x": np.arange(3, dtype=np.float32)}


@pytest.fixture(autouse=True)
def static_mode() -> Iterator[None]:
    paddle.enable_static()
    with static.program_guard(static.Program(), static.Program()):
        yield
    paddle.disable_static()


def run(*fetches: paddle.Tensor) -> list[list]:
    return [np.asarray(one).tolist() for one in static.Executor().run(feed=X, fetch_list=list(fetches))]


def counter(count: int) -> tuple:
    step, end = paddle.zeros([1], "int64"), paddle.full([1], count, "int64")
    return step, end, paddle.less_than(step, end)


def count_up(step: paddle.Tensor, end: paddle.Tensor, more: paddle.Tensor) -> None:
    paddle.increment(step)
    paddle.assign(paddle.less_than(step, end), more)


def test_a_block_assigns_to_variables_of_the_outside() -> None:
    step, end, more = counter(4)
    total, x = paddle.zeros([3]), static.data("x", [3])
    with While(more).block():
        paddle.assign(total + x * paddle.cast(step, "float32"), total)
        count_up(step, end, more)
    assert run(total, step, more) == [[0, 6, 12], [4], [False]]
    never = paddle.full([1], False, "bool")
    with While(never).block():
        paddle.assign(total + 1, total)
    assert run(total) == [[0, 6, 12]]


def test_loops_have_gradients() -> None:
    step, end, more = counter(4)
    x = static.data("x", [3])
    x.stop_gradient = False
    total = x * 0
    with While(more).block():
        paddle.assign(total + x * paddle.cast(step, "float32"), total)
        count_up(step, end, more)
    (gradient,) = static.gradients([total.sum()], [x])
    assert run(gradient) == [[6, 6, 6]]
    _, product = static.nn.while_loop(
        lambda i, y: i < 2, lambda i, y: [i + 1, y * x], [paddle.zeros([1], "int64"), x]
    )
    (gradient,) = static.gradients([product.sum()], [x])
    assert run(product, gradient) == [[0, 1, 8], [0, 3, 12]]


def test_arrays_grow_in_loops() -> None:
    step, end, more = counter(4)
    x = static.data("x", [3])
    x.stop_gradient = False
    array = paddle.tensor.create_array("float32")
    with pytest.raises(TraceError, match="no variables yet"), While(more).block():
        paddle.tensor.array_read(array, step)
    with While(more).block():
        paddle.tensor.array_write(x * paddle.cast(step, "float32"), step, array)
        count_up(step, end, more)
    length, last = paddle.tensor.array_length(array), paddle.tensor.array_read(array, end - 1)
    (gradient,) = static.gradients([last.sum()], [x])
    stacked, sizes = paddle.tensor.manipulation.tensor_array_to_tensor(array, axis=0, use_stack=True)
    assert stacked.shape == (-1, 3)
    rows = [[0, 0, 0], [0, 1, 2], [0, 2, 4], [0, 3, 6]]
    assert run(length, last, gradient, stacked, sizes) == [[4], rows[3], [3, 3, 3], rows, [1, 1, 1, 1]]
    with pytest.raises(TraceError, match="only known when the program runs"):
        paddle.stack(array)


def test_arrays_that_were_written_before_are_read_in_nested_loops() -> None:
    x = static.data("x", [3])
    outer, two, more = counter(2)
    zero = paddle.zeros([1], "int64")
    array = paddle.tensor.array_write(x + 1, zero)
    with While(more).block():
        inner, three, again = counter(3)
        with While(again).block():
            value = paddle.tensor.array_read(array, zero)
            paddle.tensor.array_write(value * 2, zero, array)
            count_up(inner, three, again)
        count_up(outer, two, more)
    assert run(paddle.tensor.array_read(array, zero)) == [[64, 128, 192]]
    assert run(paddle.tensor.array_read(array, zero)) == [[64, 128, 192]]


def test_variables_of_loops_in_dicts_and_lists() -> None:
    x = static.data("x", [3])
    start = [paddle.zeros([1], "int64"), {"sum": x}, [[x]]]
    step, sums, nested = static.nn.while_loop(
        lambda i, d, n: i < 3, lambda i, d, n: [i + 1, {"sum": d["sum"] + n[0][0]}, n], start
    )
    assert run(step, sums["sum"], nested[0][0]) == [[3], [0, 4, 8], [0, 1, 2]]
    with pytest.raises(ValueError, match="another structure"):
        static.nn.while_loop(lambda i, d, n: i < 3, lambda i, d, n: [i + 1, d], start)


def test_the_condition_is_one_boolean() -> None:
    for condition in (paddle.full([2], True, "bool"), paddle.full([1], 1.0)):
        with pytest.raises(TypeError, match="cond"):
            While(condition)
