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


def _trained(decorated, steps=2):
    """The losses of a program with a line, and the line's weight."""
    paddle.enable_static()
    try:
        program = paddle.static.Program()
        with paddle.static.program_guard(program):
            x = paddle.static.data("x", [2, 4])
            weight = paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(0.25))
            product = paddle.static.nn.fc(x, 3, weight_attr=weight, bias_attr=False)
            loss = paddle.mean(paddle.square(product))
            optimizer = decorated(paddle.optimizer.SGD(0.1))
            _, pairs = optimizer.minimize(loss)
            feed = {"x": np.ones((2, 4), np.float32)}
            run = paddle.static.Executor().run
            results = [run(program, feed=feed, fetch_list=[loss, product]) for _ in range(steps)]
        return optimizer, [r[0].item() for r in results], results[0][1].dtype, pairs[0][0].numpy()
    finally:
        paddle.disable_static()


def test_a_program_trains_in_16_bits(accelerator):
    plain = _trained(lambda optimizer: optimizer)
    for options in ({"dtype": "bfloat16"}, {"init_loss_scaling": 8.0}, {"use_pure_fp16": True}):
        mixed = _trained(lambda o, options=options: paddle.static.amp.decorate(o, **options))
        assert mixed[2].itemsize == 2 and plain[2] == np.float32
        np.testing.assert_allclose(mixed[1], plain[1], rtol=1e-2)
        np.testing.assert_allclose(mixed[3], plain[3], rtol=1e-2)
    assert mixed[0].get_loss_scaling().item() == 2.0**15
    black = paddle.static.amp.CustomOpLists(custom_black_list={"matmul_v2", "mul"})
    assert _trained(lambda o: paddle.static.amp.decorate(o, black))[2] == np.float32


def test_a_step_that_overflows_is_left_out(accelerator):
    decorated = _trained(lambda o: paddle.static.amp.decorate(o, init_loss_scaling=1e38), 1)
    np.testing.assert_array_equal(decorated[3], np.full((4, 3), 0.25, np.float32))
    assert decorated[0].get_loss_scaling().item() == pytest.approx(5e37)


def test_a_program_on_a_cpu_stays_in_32_bits():
    if casting.available():
        pytest.skip("there is an accelerator")
    plain, mixed = _trained(lambda o: o), _trained(paddle.static.amp.decorate)
    assert mixed[1] == plain[1] and mixed[2] == np.float32
    with pytest.raises(ValueError, match="level should be"):
        _trained(lambda o: paddle.static.amp.decorate(o, level="O3"))
    with pytest.raises(AssertionError, match="minimize"):
        _trained(lambda o: paddle.static.amp.decorate(o).get_loss_scaling())


def test_lists_of_programs_with_a_users_own():
    lists = paddle.static.amp.fp16_lists
    changed = paddle.static.amp.AutoMixedPrecisionLists({"exp"}, {"tanh"})
    assert changed.white_list == lists.white_list | lists._only_supported_fp16_list | {"exp"}
    assert changed.black_list == (lists.black_list | lists._extra_black_list | {"tanh"}) - {"exp"}
    assert changed.gray_list == lists.gray_list - {"tanh"}
    older = paddle.static.amp.bf16.AutoMixedPrecisionListsBF16(custom_fp32_list={"matmul_v2"})
    assert older.bf16_list == paddle.static.amp.bf16.amp_lists.bf16_list - {"matmul_v2"}
    for make in (
        paddle.static.amp.AutoMixedPrecisionLists,
        paddle.static.amp.bf16.AutoMixedPrecisionListsBF16,
    ):
        with pytest.raises(ValueError, match="overlap"):
            make({"lstm"}, {"lstm"})


def test_a_checker_knows_the_seed():
    paddle.seed(102)
    checker = paddle.amp.debugging.TensorCheckerConfig(enable=True)
    assert (checker.seed, checker.initial_seed) == (102, 102)


def test_the_steps_of_a_scaled_loss_by_name():
    amp_nn = paddle.static.amp.amp_nn
    gradient, scale = paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([2.0])
    given, infinite = amp_nn.check_finite_and_unscale([gradient], scale)
    assert given[0] is gradient and gradient.tolist() == [0.5, 1.0] and infinite.tolist() == [False]
    good, bad = paddle.to_tensor([3], "int32"), paddle.to_tensor([1], "int32")
    amp_nn.update_loss_scaling([gradient], paddle.to_tensor([True]), scale, good, bad, 4, 2, 2.0, 0.5)
    assert gradient.tolist() == [0.0, 0.0]  # and Paddle 2.6.2's numbers:
    assert [one.tolist() for one in (scale, good, bad)] == [[1.0], [0], [0]]
    with pytest.raises(ValueError, match="list of Tensors"):
        amp_nn.check_finite_and_unscale(gradient, scale)


def test_tensors_from_the_first_that_is_not_finite_on_are_times_zero():
    tensors = [paddle.to_tensor(one) for one in ([1.0, 2.0], [np.nan, 4.0], [6.0, 8.0])]
    _, infinite = paddle._C_ops.check_finite_and_unscale_(tensors, paddle.to_tensor([2.0]))
    assert infinite.tolist() == [True]
    np.testing.assert_equal([one.tolist() for one in tensors], [[0.5, 1.0], [np.nan, 0.0], [0.0, 0.0]])
