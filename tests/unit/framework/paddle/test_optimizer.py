"""Optimizers against numpy, their state, groups, clipping and schedules."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import jax
import numpy as np
import pytest

from framework import paddle
from framework.core.errors import ShapeError
from framework.paddle._kernel.tensor import Parameter, wrap
from framework.paddle.optimizer import lr

GRADS = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
START = np.array([1.0, -2.0, 0.5], np.float32)


def _run(make, steps=5, **attributes):
    parameter = Parameter(START, **attributes)
    optimizer = make([parameter])
    for grad in GRADS[:steps]:
        parameter._grad = paddle.Tensor(grad)
        optimizer.step()
        optimizer.clear_grad()
    return parameter.numpy(), optimizer


def _sgd(p, g, s, t):
    return p - 0.1 * (g + 0.5 * p)


def _momentum(p, g, s, t):
    s["v"] = 0.9 * s.get("v", 0) + g
    return p - 0.1 * (g + 0.9 * s["v"])


def _adam(p, g, s, t, decay=0.0):
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["n"] = 0.999 * s.get("n", 0) + 0.001 * g * g
    first, second = s["m"] / (1 - 0.9**t), s["n"] / (1 - 0.999**t)
    return p * (1 - 0.1 * decay) - 0.1 * first / (np.sqrt(second) + 1e-8)


def _adamax(p, g, s, t):
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["n"] = np.maximum(np.abs(g), 0.999 * s.get("n", 0) + 1e-8)
    return p - 0.1 / (1 - 0.9**t) * s["m"] / s["n"]


def _adagrad(p, g, s, t):
    s["n"] = s.get("n", 0.1) + g * g
    return p - 0.1 * g / (np.sqrt(s["n"]) + 1e-6)


def _adadelta(p, g, s, t):
    s["g"] = 0.95 * s.get("g", 0) + 0.05 * g * g
    step = np.sqrt((s.get("d", 0) + 1e-6) / (s["g"] + 1e-6)) * g
    s["d"] = 0.95 * s.get("d", 0) + 0.05 * step * step
    return p - 0.1 * step


def _rmsprop(p, g, s, t):
    s["n"], s["m"] = 0.95 * s.get("n", 0) + 0.05 * g * g, 0.95 * s.get("m", 0) + 0.05 * g
    s["v"] = 0.5 * s.get("v", 0) + 0.1 * g / np.sqrt(s["n"] - s["m"] ** 2 + 1e-6)
    return p - s["v"]


def _lamb(p, g, s, t):
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["n"] = 0.999 * s.get("n", 0) + 0.001 * g * g
    step = s["m"] / (1 - 0.9**t) / (np.sqrt(s["n"] / (1 - 0.999**t)) + 1e-6) + 0.01 * p
    return p - 0.1 * np.linalg.norm(p) / np.linalg.norm(step) * step


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("SGD", {"weight_decay": 0.5}, _sgd),
        ("Momentum", {"use_nesterov": True}, _momentum),
        ("Adam", {}, _adam),
        ("AdamW", {"weight_decay": 0.3}, lambda *a: _adam(*a, decay=0.3)),
        ("Adamax", {}, _adamax),
        ("Adagrad", {"initial_accumulator_value": 0.1}, _adagrad),
        ("Adadelta", {}, _adadelta),
        ("RMSProp", {"centered": True, "momentum": 0.5}, _rmsprop),
        ("Lamb", {}, _lamb),
    ],
)
def test_each_optimizer_equals_its_formula(name, options, expected):
    kind = getattr(paddle.optimizer, name)
    found, _ = _run(lambda ps: kind(learning_rate=0.1, parameters=ps, **options))
    value, state = START.astype(np.float64), {}
    for time, grad in enumerate(GRADS.astype(np.float64), 1):
        value = expected(value, grad, state, time)
    np.testing.assert_allclose(found, value, rtol=2e-4)  # 1 - float32(0.999) has four digits, as in Paddle


def test_state_has_paddles_names_and_continues():
    with paddle.utils.unique_name.guard():
        layer = paddle.nn.Linear(2, 1)
        optimizer = paddle.optimizer.Adam(lr.StepDecay(0.1, 2), parameters=layer.parameters())
        layer(paddle.ones([1, 2])).sum().backward()
        optimizer.step()
    state = optimizer.state_dict()
    assert list(state)[:2] == ["linear_0.w_0_moment1_0", "linear_0.b_0_moment1_0"]
    assert state["linear_0.w_0_beta1_pow_acc_0"].shape == [1]
    assert state["LR_Scheduler"] == {"last_epoch": 0, "last_lr": 0.1}
    with paddle.utils.unique_name.guard():
        other = paddle.nn.Linear(2, 1)
        other.set_state_dict(layer.state_dict())
        resumed = paddle.optimizer.Adam(lr.StepDecay(0.1, 2), parameters=other.parameters())
        resumed.set_state_dict(
            {k: v.numpy() if isinstance(v, paddle.Tensor) else v for k, v in state.items()}
        )
        for model, opt in ((layer, optimizer), (other, resumed)):
            opt.clear_grad()
            (model(paddle.ones([1, 2])) * 3).sum().backward()
            opt.step()
    np.testing.assert_array_equal(layer.weight.numpy(), other.weight.numpy())
    np.testing.assert_array_equal(
        resumed.state_dict()["linear_0.w_0_moment2_0"].numpy(),
        optimizer.state_dict()["linear_0.w_0_moment2_0"].numpy(),
    )


def test_state_of_another_shape_is_refused():
    _, optimizer = _run(lambda ps: paddle.optimizer.Momentum(0.1, parameters=ps))
    name = next(iter(optimizer.state_dict()))
    with pytest.raises(ShapeError, match="does not fit"):
        optimizer.set_state_dict({name: np.zeros(7, np.float32)})


def test_groups_attributes_and_regularizers():
    a, b, c = (Parameter(START) for _ in range(3))
    c.regularizer = paddle.regularizer.L1Decay(0.5)
    c.optimize_attr["learning_rate"] = 2.0
    grouped = paddle.optimizer.SGD(
        0.1,
        parameters=[{"params": [a]}, {"params": [b], "learning_rate": 0.5, "weight_decay": 0.2}],
        weight_decay=0.1,
    )
    plain = paddle.optimizer.SGD(0.1, parameters=[c], weight_decay=0.1)
    for p in (a, b, c):
        p._grad = paddle.Tensor(GRADS[0])
    grouped.step()
    plain.step()
    np.testing.assert_allclose(a.numpy(), START - 0.1 * (GRADS[0] + 0.1 * START), rtol=1e-6)
    np.testing.assert_allclose(b.numpy(), START - 0.05 * (GRADS[0] + 0.2 * START), rtol=1e-6)
    np.testing.assert_allclose(c.numpy(), START - 0.2 * (GRADS[0] + 0.5 * np.sign(START)), rtol=1e-6)
    with pytest.raises(ValueError, match="more than one group"):
        paddle.optimizer.SGD(0.1, parameters=[{"params": [a]}, {"params": [a]}])


def test_regularization_terms():
    parameter = Parameter(START.astype(np.float64))
    grad = paddle.Tensor(GRADS[0].astype(np.float64))
    optimizer = paddle.optimizer.SGD(0.1, parameters=[parameter])
    ((_, found),) = optimizer.append_regularization_ops([(parameter, grad)], paddle.regularizer.L2Decay(0.5))
    assert found.dtype == paddle.float64
    np.testing.assert_allclose(found.numpy(), GRADS[0].astype(np.float64) + 0.5 * START, rtol=1e-12)
    optimizer.apply_gradients([(parameter, found)])
    np.testing.assert_allclose(parameter.numpy(), START - 0.1 * found.numpy(), rtol=1e-7)


def test_clipping_passes_by_what_needs_none():
    a, b = Parameter(START), Parameter(START, need_clip=False)
    clip = paddle.nn.ClipGradByGlobalNorm(0.1)
    optimizer = paddle.optimizer.SGD(1.0, parameters=[a, b], grad_clip=clip)
    for p in (a, b):
        p._grad = paddle.Tensor(GRADS[0])
    optimizer.step()
    np.testing.assert_allclose(np.linalg.norm(START - a.numpy()), 0.1, rtol=1e-5)
    np.testing.assert_allclose(START - b.numpy(), GRADS[0], rtol=1e-5)


def test_a_users_own_clip_and_regularizer_are_called():
    class Halve:
        def __call__(self, pairs):
            return [(p, g * 0.5) for p, g in pairs]

    class Cubic(paddle.regularizer.L2Decay):
        def __call__(self, param, grad, block=None):
            return param * param * param

    found, _ = _run(
        lambda ps: paddle.optimizer.SGD(0.1, parameters=ps, weight_decay=Cubic(), grad_clip=Halve()), steps=1
    )
    np.testing.assert_allclose(found, START - 0.1 * (GRADS[0] / 2 + START**3), rtol=1e-6)


def test_float16_parameters_keep_a_float32_copy():
    parameter = Parameter(START.astype(np.float16))
    optimizer = paddle.optimizer.SGD(1e-5, parameters=[parameter], multi_precision=True)
    for _ in range(3):
        parameter._grad = paddle.Tensor(np.ones(3, np.float16))
        optimizer.step()
    (master,) = optimizer.state_dict()["master_weights"].values()
    assert parameter.dtype == paddle.float16 and master.dtype == paddle.float32
    np.testing.assert_allclose(master.numpy(), START - 3e-5, rtol=1e-6)  # float16 alone would stay at START


def test_minimize_gives_the_pairs_and_clear_grad_zeros():
    parameter = Parameter(START)
    optimizer = paddle.optimizer.SGD(0.1, parameters=[parameter])
    loss = (parameter * 2).sum()
    loss.backward()
    done, pairs = optimizer.minimize(loss)
    assert done == [] and pairs[0][0] is parameter
    np.testing.assert_allclose(parameter.numpy(), START - 0.2, rtol=1e-6)
    optimizer.clear_grad()
    np.testing.assert_array_equal(parameter.grad.numpy(), np.zeros(3))
    optimizer.clear_grad(set_to_zero=False)
    assert parameter.grad is None


def test_rates():
    parameter = Parameter(START)
    optimizer = paddle.optimizer.SGD(0.5, parameters=[parameter])
    optimizer.set_lr(0.25)
    assert optimizer.get_lr() == 0.25 == float(optimizer._learning_rate_tensor)
    schedule = lr.ExponentialDecay(1.0, 0.5)
    optimizer.set_lr_scheduler(schedule)
    schedule.step()
    assert optimizer.get_lr() == 0.5 == float(optimizer._learning_rate_tensor)
    with pytest.raises(RuntimeError, match="schedule"):
        optimizer.set_lr(0.1)
    with pytest.raises(TypeError):
        paddle.optimizer.SGD(1, parameters=[parameter])
    with pytest.raises(AttributeError):
        paddle.optimizer.SGD(0.1)


def test_a_step_works_under_a_trace_with_the_rate_as_data():
    parameter = Parameter(START)
    optimizer = paddle.optimizer.Momentum(0.5, parameters=[parameter])
    rate = optimizer._learning_rate_tensor

    @jax.jit
    def step(value, grad, lr_value, velocity):
        parameter._value, parameter._grad, rate._value = value, wrap(grad), lr_value
        state = optimizer._accumulator(
            "velocity", dict(optimizer._rule(parameter, {}).slots())["velocity"], parameter, parameter
        )
        state._value = velocity
        optimizer.step()
        return parameter._value, state._value

    value, velocity = parameter._value, np.zeros(3, np.float32)
    for lr_value, grad in ((0.5, GRADS[0]), (0.1, GRADS[1])):
        value, velocity = step(value, grad, np.float32(lr_value), velocity)
    expected = START - 0.5 * GRADS[0] - 0.1 * (0.9 * GRADS[0] + GRADS[1])
    np.testing.assert_allclose(value, expected, rtol=1e-5)


def test_lbfgs_finds_the_minimum():
    for search in (None, "strong_wolfe"):
        x = Parameter(np.array([-1.0, 1.5]))
        optimizer = paddle.optimizer.LBFGS(
            0.8 if search is None else 1.0, line_search_fn=search, parameters=[x]
        )

        def closure(x=x, optimizer=optimizer):
            optimizer.clear_grad()
            loss = (
                (x - paddle.to_tensor(np.array([2.0, -3.0]))) ** 2 * paddle.to_tensor(np.array([1.0, 10.0]))
            ).sum()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        np.testing.assert_allclose(x.numpy(), [2, -3], atol=1e-5)


def test_lbfgs_refuses_where_it_is_used():
    optimizer = paddle.optimizer.LBFGS(line_search_fn="None", parameters=[Parameter(np.ones(2))])
    with pytest.raises(RuntimeError, match="strong_wolfe"):
        optimizer.step(lambda: paddle.ones([1]))
    with pytest.raises(NotImplementedError, match="closure"):
        optimizer.minimize(paddle.ones([1]))


def test_parameters_have_sizes_above_zero():
    for make in (lambda: paddle.create_parameter([-1, 2], "float32"), lambda: paddle.nn.Linear(0, 2)):
        with pytest.raises(AssertionError, match="above 0"):
            make()
    weight = paddle.base.framework.EagerParamBase(
        dtype="float32", shape=[2, 3], lod_level=0, name="x", optimize_attr={"learning_rate": 0.5}
    )
    assert weight.tolist() == [[0, 0, 0], [0, 0, 0]] and weight.name == "x"
    assert weight.optimize_attr == {"learning_rate": 0.5}
    with pytest.raises(ValueError, match="needs a shape"):
        Parameter(shape=[2])


def _rates(schedule, count=6):
    found = []
    for _ in range(count):
        found.append(schedule())
        schedule.step()
    return found


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (lambda: lr.PiecewiseDecay([2, 4], [3.0, 2.0, 1.0]), [3, 3, 2, 2, 1, 1]),
        (lambda: lr.MultiStepDecay(1.0, [2, 3], 0.5), [1, 1, 0.5, 0.25, 0.25, 0.25]),
        (lambda: lr.StepDecay(1.0, 2, 0.5), [1, 1, 0.5, 0.5, 0.25, 0.25]),
        (lambda: lr.InverseTimeDecay(1.0, 1.0), [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6]),
        (lambda: lr.PolynomialDecay(1.0, 4, end_lr=0.0), [1, 0.75, 0.5, 0.25, 0, 0]),
        (lambda: lr.LambdaDecay(1.0, lambda t: 1 / 2**t), [1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32]),
        (lambda: lr.MultiplicativeDecay(1.0, lambda t: 0.5), [1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32]),
        (lambda: lr.LinearWarmup(lr.StepDecay(1.0, 2, 0.5), 2, 0.0, 1.0), [0, 0.5, 1, 1, 0.5, 0.5]),
        (lambda: lr.LinearLR(1.0, 2, 0.5), [0.5, 0.75, 1, 1, 1, 1]),
        (lambda: lr.CosineAnnealingDecay(1.0, 2), [1, 0.5, 0, 0.5, 1, 0.5]),
        (lambda: lr.CosineAnnealingWarmRestarts(1.0, 2), [1, 0.5, 1, 0.5, 1, 0.5]),
        (lambda: lr.CyclicLR(0.0, 1.0, 2), [0, 0.5, 1, 0.5, 0, 0.5]),
        (lambda: lr.NoamDecay(1, 2), [0, 2**-1.5, 2**-0.5, 3**-0.5, 4**-0.5, 5**-0.5]),
        (lambda: lr.OneCycleLR(1.0, 10, anneal_strategy="linear", phase_pct=0.3), [0.04, 0.52, 1.0]),
    ],
)
def test_schedules(schedule, expected):
    np.testing.assert_allclose(_rates(schedule(), len(expected)), expected, atol=1e-12)


def test_a_users_schedule_and_the_state_of_one():
    class Halving(lr.LRScheduler):
        def get_lr(self):
            return self.base_lr / 2**self.last_epoch

    schedule = Halving(8.0)
    schedule.step()
    state = schedule.state_dict()
    other = Halving(8.0)
    other.set_state_dict(state)
    other.step()
    assert state == {"last_epoch": 1, "last_lr": 4.0} and other() == 2.0
    with pytest.raises(RuntimeError):
        other.set_state_dict({})


def test_schedules_are_paddles_classes():
    """Made from the core's: pickled, subclassed, moved to a step, changed, checked."""
    schedule = pickle.loads(pickle.dumps(lr.StepDecay(1.0, step_size=2, gamma=0.5)))
    schedule.step(3)
    assert schedule() == 0.5 and schedule.step_size == 2
    schedule.gamma = 0.25
    schedule.step()
    assert schedule() == 0.0625

    class Mine(lr.ExponentialDecay):
        def __init__(self):
            super().__init__(2.0, 0.5)

    assert Mine()() == 2.0 and isinstance(Mine(), lr.LRScheduler)
    expected = "(learning_rate, step_size, gamma=0.1, last_epoch=-1, verbose=False)"
    assert str(inspect.signature(lr.StepDecay)) == expected
    for make in (
        lambda: lr.ExponentialDecay(1.0, 1.5),
        lambda: lr.MultiStepDecay(1.0, [3, 2]),
        lambda: lr.PiecewiseDecay([], [1.0]),
        lambda: lr.LinearLR(1.0, 3, start_factor=0.0),
    ):
        with pytest.raises(ValueError, match="is out of range"):
            make()
    with pytest.raises(TypeError):
        lr.ExponentialDecay(1.0)
    with pytest.raises(TypeError, match="step_size must be an int above 0"):
        lr.StepDecay(1.0, 2.5)


def test_plateau():
    schedule = lr.ReduceOnPlateau(1.0, factor=0.5, patience=1, cooldown=1)
    found = []
    for metric in (1.0, 1.0, 1.0, 1.0, 1.0, 0.5):
        schedule.step(metric)
        found.append(schedule())
    assert found == [1, 1, 0.5, 0.5, 0.5, 0.5]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_step_writes_into_the_memory_of_what_it_replaces_alone(compiled: bool) -> None:
    net = paddle.nn.Linear(64, 64)
    optimizer = paddle.optimizer.Adam(0.1, parameters=net.parameters())
    x = paddle.ones([2, 64])

    def train() -> None:
        net(x).sum().backward()
        optimizer.step()
        optimizer.clear_grad()

    step = paddle.jit.to_static(train) if compiled else train
    step()
    place = net.weight._value.unsafe_buffer_pointer()
    step()
    assert net.weight._value.unsafe_buffer_pointer() == place
    held, array = net.weight._value, np.asarray(net.bias._value)
    weight, bias = np.array(held), array.copy()
    step()  # neither who holds the array of jax nor a view of numpy sees it
    assert np.array_equal(held, weight) and np.array_equal(array, bias)
    assert not np.allclose(net.weight.numpy(), weight) and not np.allclose(net.bias.numpy(), bias)


@pytest.mark.parametrize(
    ("sparse", "lazy_mode", "stays"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_lazy_adam_leaves_rows_that_were_not_read(sparse, lazy_mode, stays):
    # Paddle 2.6.2: a table that is read with sparse=True keeps rows without a gradient, their averages too.
    table = paddle.nn.Embedding(4, 2, sparse=sparse)
    optimizer = paddle.optimizer.Adam(0.1, parameters=table.parameters(), lazy_mode=lazy_mode)
    values = []
    for ids in ([1, 2], [2, 3]):
        table(paddle.to_tensor(ids)).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
        values.append(table.weight.numpy())
    assert (values[1][1] == values[0][1]).all() == stays
    assert (values[1][2] != values[0][2]).all()
    average = optimizer._get_accumulator("moment1", table.weight).numpy()[:, 0]
    np.testing.assert_allclose(average, [0, 0.1 if stays else 0.09, 0.19, 0.1], rtol=1e-5)


@pytest.mark.parametrize(
    "setting", [{"T_0": 1.0}, {"T_0": -1}, {"T_0": 1, "T_mult": 1.0}, {"T_0": 1, "T_mult": -1}]
)
def test_periods_of_warm_restarts_that_are_no_counts_are_value_errors(setting: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="an int above 0"):
        paddle.optimizer.lr.CosineAnnealingWarmRestarts(0.5, **setting)


def _powers(optimizer: paddle.optimizer.Adam, parameters: list[paddle.Tensor]) -> list[float]:
    return [float(optimizer._get_accumulator("beta1_pow_acc", p)) for p in parameters]


def test_powers_are_computed_once_and_follow_each_parameter() -> None:
    """Parameters that began together share their powers; one that rests, or begins later, has its own."""
    parameters = [paddle.create_parameter([2, i + 1], "float32") for i in range(3)]
    optimizer = paddle.optimizer.Adam(0.1, beta1=0.5, parameters=parameters)
    for moved in ([0, 1], [0], [0, 1, 2]):
        paddle.add_n([(parameters[i] * parameters[i]).sum() for i in moved]).backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
    assert _powers(optimizer, parameters) == [0.5**4, 0.5**3, 0.5**2]
    first = [optimizer._get_accumulator(name, parameters[0]) for name in ("beta1_pow_acc", "beta2_pow_acc")]
    assert len({id(tensor._value) for tensor in first}) == 2

    again = paddle.optimizer.Adam(0.1, beta1=0.5, parameters=parameters)
    again.set_state_dict(
        {name.replace("_acc_0", "_acc_1"): value for name, value in optimizer.state_dict().items()}
    )
    (parameters[0].sum() + parameters[1].sum() + parameters[2].sum()).backward()
    again.step()
    assert _powers(again, parameters) == [0.5**5, 0.5**4, 0.5**3]


def test_loaded_powers_that_are_equal_are_shared() -> None:
    parameters = [paddle.create_parameter([3], "float32") for _ in range(2)]
    optimizer = paddle.optimizer.Adam(0.1, parameters=parameters)
    (parameters[0].sum() + parameters[1].sum()).backward()
    optimizer.step()
    arrays = [optimizer._get_accumulator("beta1_pow_acc", p)._value for p in parameters]
    assert arrays[0] is arrays[1]
    optimizer.set_state_dict({name: value.numpy() for name, value in optimizer.state_dict().items()})
    loaded = [optimizer._get_accumulator("beta1_pow_acc", p)._value for p in parameters]
    assert loaded[0] is loaded[1] is not arrays[0]


@pytest.mark.parametrize("shapes", [[(3,)] * 5, [(3,), (4, 2)]], ids=["of one shape", "of two"])
def test_both_forms_of_compiling_a_step_move_parameters_equally(shapes: list[tuple[int, ...]]) -> None:
    """Shapes decide about XLA's options, not about values."""
    rng = np.random.default_rng(0)
    start = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    parameters = [paddle.create_parameter(list(s.shape), "float32") for s in start]
    for parameter, value in zip(parameters, start, strict=True):
        parameter.set_value(value)
    optimizer = paddle.optimizer.Adam(0.1, parameters=parameters)
    paddle.add_n([(p * p).sum() for p in parameters]).backward()
    optimizer.step()
    for parameter, value in zip(parameters, start, strict=True):
        np.testing.assert_allclose(parameter.numpy(), value - 0.1 * np.sign(value), rtol=0, atol=1e-6)
