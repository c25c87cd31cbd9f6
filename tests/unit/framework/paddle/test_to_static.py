"""to_static: functions, layers and training steps as one program."""

from __future__ import annotations

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import TraceError
from framework.paddle.jit import not_to_static, to_static
from framework.paddle.jit.api import sot_mode_guard
from framework.paddle.jit.spec import InputSpec


class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = paddle.nn.Linear(4, 3)
        self.register_buffer("calls", paddle.to_tensor(np.zeros(1, np.float32)))

    def forward(self, x):
        with paddle.no_grad():
            self.calls = self.calls + 1.0
        hidden = self.linear(x)
        return hidden * hidden.detach()


def data(*shape, grad=False):
    array = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    return paddle.to_tensor(array, stop_gradient=not grad)


def gradients(net, x):
    net(x).sum().backward()
    found = [t.grad.numpy() for t in (net.linear.weight, net.linear.bias, x)]
    for tensor in (net.linear.weight, net.linear.bias, x):
        tensor.clear_grad()
    return found


def test_a_layer_keeps_its_gradients_and_buffers():
    net, x = Net(), data(2, 4, grad=True)
    expected = gradients(net, x)
    to_static(net)
    for found in (gradients(net, x), gradients(net, x)):
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)
    assert net.calls.numpy().tolist() == [3.0]
    assert len(net.forward.concrete_programs()) == 1


def test_a_training_step_is_one_program():
    def train(static):
        paddle.seed(0)
        net = Net()
        for parameter in net.parameters():
            parameter.set_value(
                np.linspace(-1, 1, parameter.size).reshape(parameter.shape).astype(np.float32)
            )
        schedule = paddle.optimizer.lr.StepDecay(0.1, 2, 0.5)
        optimizer = paddle.optimizer.Adam(schedule, parameters=net.parameters())

        def step(x):
            loss = net(x).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        run = to_static(step) if static else step
        losses = []
        for _ in range(5):
            losses.append(float(run(data(2, 4))))
            schedule.step()
        if static:
            assert len(run.concrete_programs()) == 1
        return losses

    np.testing.assert_allclose(train(True), train(False), rtol=1e-5)


def test_higher_derivatives_go_through():
    cube = to_static(lambda a, b: a * a * a * b)
    a, b = paddle.to_tensor(2.0, stop_gradient=False), paddle.to_tensor(3.0, stop_gradient=False)
    (first,) = paddle.grad(cube(a, b), [a], create_graph=True)
    assert float(first) == pytest.approx(36)
    assert float(paddle.grad(first, [a])[0]) == pytest.approx(36)


def test_random_numbers_are_new_in_each_call():
    noise = to_static(lambda x: x + paddle.rand([3]))
    x = data(3)
    assert not np.allclose(noise(x).numpy(), noise(x).numpy())


def test_the_mode_of_a_layer_is_a_part_of_the_program():
    layer = paddle.nn.Dropout(0.5)
    run = to_static(lambda x: layer(x))
    x = paddle.ones([64])
    assert (run(x).numpy() == 0).any()
    layer.eval()
    assert (run(x).numpy() == 1).all()


def test_a_kept_tensor_is_an_error_and_leaves_nothing_behind():
    kept, net = [], Net()

    @to_static(full_graph=True)
    def run(x):
        kept.append(net(x))
        return x

    with pytest.raises(TraceError, match="kept"):
        run(data(2, 4))
    kept.clear()
    assert net.calls.numpy().tolist() == [0.0]


def test_looking_at_values_names_the_line():
    @to_static(full_graph=True)
    def run(x):
        return x * float(np.asarray(x).sum())

    with pytest.raises(TraceError, match=r"np\.asarray\(x\)\.sum\(\)"):
        run(data(2))


def test_what_is_not_one_program_runs_as_python_and_says_so_once(caplog):
    calls = []

    def run(x):
        calls.append(1)
        return paddle.to_tensor(np.ones(int(np.asarray(x).sum())))

    static = to_static(run)
    for _ in range(2):
        assert static(paddle.to_tensor([3])).shape == [3]
    assert len(calls) == 3  # traced once, run twice
    assert [record.message for record in caplog.records if "runs as Python" in record.message][1:] == []
    with pytest.raises(TypeError, match="no values yet"):
        to_static(run, full_graph=True)(paddle.to_tensor([3]))
    with sot_mode_guard(False):
        whole = to_static(run)
    with pytest.raises(TraceError):
        whole(paddle.to_tensor([3]))


def test_numpy_and_item_give_the_tensor_in_a_compiled_function():
    @to_static
    def run(x):
        total = x * float(x.numpy().sum())
        for _ in range(x[0].astype("int32").item()):
            total = total + x.numpy()[1]
        return total if x.item(0) > 1 else -total

    assert run(paddle.to_tensor([2.0, 3.0])).numpy().tolist() == [16.0, 21.0]
    assert run(paddle.to_tensor([1.0, 3.0])).numpy().tolist() == [-7.0, -15.0]


def test_arguments_need_not_fit_their_input_spec():
    run = to_static(lambda x: x + 1, input_spec=[InputSpec([None, 4])])  # as in paddlepaddle 2.6.2
    assert run(data(3, 4)).shape == [3, 4]
    assert run(data(3, 5)).shape == [3, 5]
    assert run(data(3, 4).astype("int64")).dtype == paddle.int64


@not_to_static
def plain(x):
    return x if x.sum() > 0 else -x


def test_not_to_static_is_left_alone():
    with pytest.raises(TraceError):
        to_static(lambda x: plain(x), full_graph=True)(data(3))
    assert plain(paddle.ones([2])).numpy().tolist() == [1, 1]


def test_what_comes_after_a_python_value_that_decides_is_not_looked_at():
    def run(x, a):
        if x > 1 or a is None or a > 1:
            x = x - 1
        if x < 5 and a is not None and a > 0:
            x = x * 10
        return x

    static = to_static(run, full_graph=True)
    assert [float(static(paddle.to_tensor(0.0), a)) for a in (None, 1, 2)] == [-1.0, 0.0, -10.0]


def test_an_error_of_the_function_itself_is_raised_from_its_own_line():
    def run(x):
        return x.no_such_method()

    with pytest.raises(AttributeError, match="no_such_method") as caught:
        to_static(run)(paddle.ones([2]))
    assert any(entry.name == "run" and entry.path.name == "test_to_static.py" for entry in caught.traceback)
