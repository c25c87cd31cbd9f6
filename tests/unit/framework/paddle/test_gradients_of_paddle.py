"""Gradients where Paddle has them and jax alone has not: of integers, variables of programs, traced functions."""

from __future__ import annotations

import numpy as np
import pytest

from framework import paddle


@pytest.fixture
def static():
    paddle.enable_static()
    yield
    paddle.disable_static()


def test_integers_have_integer_gradients():
    x = paddle.to_tensor([1, 2, 3], dtype="int32", stop_gradient=False)
    y = x * 2
    y.retain_grads()
    (y**2).sum().backward()
    assert y.grad.dtype == x.grad.dtype == paddle.int32
    assert y.grad.tolist() == [4, 8, 12] and x.grad.tolist() == [8, 16, 24]
    fraction = paddle.grad((x.astype("float32") * 2.5).sum(), x)[0]
    assert fraction is not None and fraction.tolist() == [2, 2, 2]
    assert (x > 1).stop_gradient and paddle.argmax(x).stop_gradient


def test_gradients_do_not_pass_numbers_that_are_put_in():
    x = paddle.ones([2, 2])
    x.stop_gradient = False
    y = x * 0.5
    y.retain_grads()
    y.normal_()
    (y * 3).sum().backward()
    assert y.grad.tolist() == x.grad.tolist() == [[0, 0], [0, 0]]


def test_the_gradient_of_any_variable_has_a_name(static: None):
    program = paddle.static.Program()
    with paddle.static.program_guard(program):
        x = paddle.static.data("x", [2, 3], "float32")
        x.stop_gradient = False
        y = x * 2
        loss = (y * y).sum()
        paddle.static.append_backward(loss)
        names = [name + "@GRAD" for name in (x.name, y.name, loss.name)]
        found = paddle.static.Executor().run(feed={"x": np.ones([2, 3], "float32")}, fetch_list=names)
        block = program.global_block()
        assert block.has_var(names[0]) and block.var(names[1]).shape == (2, 3) and not block.has_var("z@GRAD")
        with pytest.raises(TypeError, match="fetch_list"):
            paddle.static.Executor().run(fetch_list=[23])  # type: ignore[list-item]
    assert [float(np.mean(value)) for value in found] == [8, 4, 1]


def test_gradients_of_a_traced_function_have_a_history():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)

    @paddle.jit.to_static
    def second(x):
        cube = x**3
        (first,) = paddle.grad(cube, x)
        assert first is not None
        (again,) = paddle.grad(first, x)
        (other,) = paddle.grad(cube.sum(), x)
        return again, other

    again, other = second(x)
    again.sum().backward()
    assert again.tolist() == [6, 12] and other.tolist() == [3, 12] and x.grad.tolist() == [6, 6]


def test_parameters_of_programs_have_tuples_as_shapes(static: None):
    with paddle.static.program_guard(paddle.static.Program()):
        weight = paddle.create_parameter([2, 3], "float32")
        assert weight.shape == (2, 3)
    paddle.disable_static()
    assert weight.shape == [2, 3]
