"""auto_cast by lists, decorate, and the scaler that leaves out steps which overflow."""

from __future__ import annotations

import numpy as np
import pytest

from framework import paddle
from framework.paddle._kernel.tensor import Parameter
from framework.paddle.amp import casting


@pytest.fixture
def accelerator(monkeypatch):
    """AMP does nothing on a CPU: act as if there were something better."""
    monkeypatch.setattr(casting, "available", lambda: True)


def test_nothing_happens_on_a_cpu():
    if casting.available():
        pytest.skip("there is an accelerator")
    with paddle.amp.auto_cast():
        assert paddle.matmul(paddle.ones([2, 2]), paddle.ones([2, 2])).dtype == paddle.float32
    scaler = paddle.amp.GradScaler()
    assert not scaler.is_enable() and scaler.state_dict() == {}
    assert not paddle.amp.is_float16_supported()


def test_operations_are_cast_by_their_list(accelerator):
    x, w = paddle.ones([2, 2]), Parameter(np.ones((2, 2), np.float32))
    with paddle.amp.auto_cast(dtype="bfloat16"):
        product = paddle.matmul(x, w)
        assert product.dtype == paddle.bfloat16
        assert paddle.exp(product).dtype == paddle.float32
        assert (product + product).dtype == paddle.bfloat16
        assert (product + x).dtype == paddle.float32
        assert paddle.matmul(paddle.ones([2, 2], "int64"), paddle.ones([2, 2], "int64")).dtype == paddle.int64
        loss = product.mean()
    assert paddle.matmul(x, w).dtype == paddle.float32
    loss.backward()
    assert w.grad.dtype == paddle.float32
    np.testing.assert_allclose(w.grad.numpy(), np.full((2, 2), 0.5), rtol=1e-2)


def test_custom_lists_take_paddles_names(accelerator):
    x = paddle.ones([2, 2])
    with paddle.amp.auto_cast(custom_white_list=["elementwise_add"], custom_black_list=["matmul_v2"]):
        assert (x + x).dtype == paddle.float16 and paddle.matmul(x, x).dtype == paddle.float32
    with (
        pytest.raises(ValueError, match="both lists"),
        paddle.amp.auto_cast(custom_white_list=["add"], custom_black_list=["elementwise_add"]),
    ):
        pass


def test_decorate_casts_all_but_norms_and_keeps_copies(accelerator):
    net = paddle.nn.Sequential(paddle.nn.Linear(2, 2), paddle.nn.BatchNorm1D(2))
    optimizer = paddle.optimizer.Adam(0.1, parameters=net.parameters())
    net, optimizer = paddle.amp.decorate(net, optimizer, level="O2", save_dtype="float32")
    assert net[0].weight.dtype == paddle.float16 and net[1].weight.dtype == paddle.float32
    assert net.state_dict()["0.weight"].dtype == paddle.float32
    net[0].weight._grad = paddle.ones([2, 2], "float16")
    optimizer.step()
    assert list(optimizer.state_dict()["master_weights"]) == [net[0].weight.name]


def test_the_scaler_grows_shrinks_and_skips(accelerator):
    parameter = Parameter(np.ones(2, np.float32))
    optimizer = paddle.optimizer.SGD(0.5, parameters=[parameter])
    scaler = paddle.amp.GradScaler(init_loss_scaling=8.0, incr_every_n_steps=2)
    scales = []
    for factor in (1.0, np.inf, 1.0, 1.0):
        with paddle.amp.auto_cast():
            loss = (parameter * paddle.to_tensor(np.float32(factor))).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.clear_grad()
        scales.append(float(scaler.state_dict()["scale"][0]))
    assert scales == [8.0, 4.0, 4.0, 8.0]
    np.testing.assert_allclose(parameter.numpy(), 1 - 3 * 0.5)
    other = paddle.amp.GradScaler()
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()


def test_unscale_once_before_a_step(accelerator):
    parameter = Parameter(np.ones(2, np.float32))
    optimizer = paddle.optimizer.SGD(0.5, parameters=[parameter])
    scaler = paddle.amp.GradScaler(init_loss_scaling=8.0)
    with paddle.amp.auto_cast():
        loss = parameter.sum()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    np.testing.assert_allclose(parameter.grad.numpy(), np.ones(2))
    with pytest.raises(RuntimeError, match="unscaled"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="stepped"):
        scaler.step(optimizer)


def test_debugging(capsys):
    with paddle.amp.debugging.collect_operator_stats():
        paddle.exp(paddle.ones([2]))
    assert "exp" in capsys.readouterr().out
    counts, values = paddle.amp.debugging.check_numerics(
        paddle.to_tensor([1.0, 0.0, np.inf]), "op", "x", paddle.amp.debugging.DebugMode.CHECK_NAN_INF
    )
    assert counts.tolist() == [0, 1, 1] and values.tolist()[1] == 0.0
    config = paddle.amp.debugging.TensorCheckerConfig(enable=True)
    paddle.amp.debugging.enable_tensor_checker(config)
    try:
        with pytest.raises(RuntimeError, match="exp, input 0: 1 NaN"):
            paddle.exp(paddle.to_tensor([float("nan")]))
    finally:
        paddle.amp.debugging.disable_tensor_checker()
    paddle.exp(paddle.to_tensor([float("nan")]))
