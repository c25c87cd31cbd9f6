"""Static programs: recorded, compiled, trained, saved."""

from __future__ import annotations

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import ShapeError, TraceError
from framework.paddle import static


@pytest.fixture(autouse=True)
def static_mode():
    paddle.enable_static()
    with static.program_guard(static.Program(), static.Program()):
        yield
    paddle.disable_static()


RNG = np.random.default_rng(0)
X = RNG.normal(size=(32, 4)).astype(np.float32)
Y = (X[:, :1] > 0).astype(np.int64)


def network():
    x = static.data("x", [None, 4])
    y = static.data("y", [None, 1], "int64")
    hidden = static.nn.batch_norm(static.nn.fc(x, 8, activation="relu"))
    scores = static.nn.fc(paddle.nn.functional.dropout(hidden, 0.2), 2)
    return x, y, scores, paddle.mean(paddle.nn.functional.cross_entropy(scores, y))


def test_shapes_are_known_as_far_as_they_are():
    x, _, scores, loss = network()
    assert not paddle.in_dynamic_mode()
    assert (x.shape, scores.shape, loss.shape) == ((-1, 4), (-1, 2), ())
    assert x.stop_gradient and not scores.stop_gradient
    with pytest.raises(TraceError, match="no values"):
        scores.numpy()


def test_training_moves_parameters_and_statistics():
    _, _, scores, loss = network()
    main = static.default_main_program()
    test = main.clone(for_test=True)
    _, pairs = paddle.optimizer.Adam(0.02).minimize(loss)
    assert [g.name for _, g in pairs] == [f"{p.name}@GRAD" for p, _ in pairs]
    executor = static.Executor()
    assert executor.run(static.default_startup_program()) == []
    losses = [float(executor.run(main, {"x": X, "y": Y}, [loss])[0]) for _ in range(30)]
    assert losses[-1] < 0.6 * losses[0]
    first = executor.run(test, {"x": X, "y": Y}, [scores.name])[0]
    again = executor.run(test, {"x": X, "y": Y}, [scores])[0]
    np.testing.assert_array_equal(first, again)  # no dropout
    assert (first.argmax(1) == Y[:, 0]).mean() > 0.8
    moving = [t for t in main.list_vars() if t.name == "batch_norm_0.w_1" or t.name.endswith(".w_1")]
    assert np.abs(moving[0].numpy()).sum() > 0


def test_gradients_of_any_variable():
    x = static.data("x", [3])
    x.stop_gradient = False
    y = x * x * x
    (first,) = static.gradients(y, x)
    (second,) = static.gradients(first, x)
    found = static.Executor().run(feed={"x": np.array([1, 2, 3], np.float32)}, fetch_list=[first, second])
    np.testing.assert_allclose(found[0], [3, 12, 27])
    np.testing.assert_allclose(found[1], [6, 12, 18])


def test_gradients_of_a_loss_are_found_by_their_names():
    x = static.data("x", [None, 4])
    x.stop_gradient = False
    hidden = paddle.square(x)
    loss = paddle.sum(static.nn.fc(hidden, 2, weight_attr=paddle.nn.initializer.Constant(0.5)))
    paddle.optimizer.SGD(0.0).minimize(loss)
    names = ["x@GRAD", hidden.grad_name]
    gradients = static.Executor().run(feed={"x": X}, fetch_list=names)
    np.testing.assert_allclose(gradients[0], 2 * X, rtol=1e-6)
    np.testing.assert_allclose(gradients[1], np.ones_like(X))
    assert static.default_main_program().global_block().var("x@GRAD").name == "x@GRAD"
    with pytest.raises(ValueError, match="no such variables"):
        static.Executor().run(feed={"x": X}, fetch_list=["other@GRAD"])


def test_what_is_fed_to_a_tensor_that_stays_becomes_its_value():
    kept = static.create_global_var([2], 0.0, "float32", persistable=True, name="kept")
    total = kept + 1
    executor = static.Executor()
    for feed, expected in (({}, 1), ({"kept": np.full(2, 5.0)}, 6), ({}, 6)):
        np.testing.assert_array_equal(executor.run(feed=feed, fetch_list=[total])[0], [expected] * 2)
    with pytest.raises(ValueError, match="another shape"):
        executor.run(feed={"kept": np.zeros(3)}, fetch_list=[total])


def test_results_of_a_layer_with_a_name_have_it():
    x = static.data("x", [2, 4])
    for layer in (
        paddle.nn.Sigmoid(name="own"),
        paddle.nn.Linear(4, 4, name="own"),
        paddle.nn.ReLU(name="own"),
    ):
        assert layer(x).name.startswith("own.tmp_")
    assert paddle.nn.L1Loss(name="own")(x, x).name.startswith("own.tmp_")
    assert not paddle.nn.Tanh()(x).name.startswith("own")


def test_transforms_of_real_numbers_take_theirs():
    for transform, kind in (
        (paddle.fft.hfft, "float32"),
        (paddle.fft.irfftn, "float64"),
        (paddle.fft.rfft, "complex64"),
    ):
        with pytest.raises(TypeError, match="data types"):
            transform(static.data(f"x_{kind}", [4, 4], kind))


def test_branches_and_loops():
    x = static.data("x", [1])
    chosen = static.nn.cond(x > 1, lambda: x * 2, lambda: x - 5)
    i = paddle.full([1], 0, "int64")
    _, total = static.nn.while_loop(lambda i, s: i < 4, lambda i, s: [i + 1, s + x], [i, x * 0])
    picked = static.nn.switch_case(i, {0: lambda: x + 100, 1: lambda: x})
    executor = static.Executor()
    for value, expected in ((3.0, (6, 12, 103)), (0.5, (-4.5, 2, 100.5))):
        found = executor.run(feed={"x": np.array([value], np.float32)}, fetch_list=[chosen, total, picked])
        np.testing.assert_allclose([float(f[0]) for f in found], expected)


def test_branches_of_different_shapes_give_that_of_the_one_that_is_taken():
    x = static.data("x", [1])
    out = static.nn.cond(
        x < 0, lambda: (paddle.full([1, 2], 1, "int32"), x), lambda: (paddle.full([3], 2.0) * x, x + 1)
    )
    for value, shape, kind in ((-1.0, (1, 2), np.int32), (1.0, (3,), np.float32)):
        first, second = static.Executor().run(feed={"x": np.float32([value])}, fetch_list=list(out))
        assert (first.shape, first.dtype) == (shape, kind)
        assert second == (value if value < 0 else value + 1)


def test_saved_programs_give_the_same(tmp_path):
    x, _, scores, _ = network()
    executor = static.Executor()
    test = static.default_main_program().clone(for_test=True)
    static.save_inference_model(str(tmp_path / "m"), [x], [scores], executor, program=test)
    program, names, fetched = static.load_inference_model(str(tmp_path / "m"), executor)
    (found,) = executor.run(program, {names[0]: X[:5]}, fetched)
    (expected,) = executor.run(test, {"x": X[:5], "y": Y[:5]}, [scores])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_feeds_that_do_not_fit_are_said(caplog):
    x = static.data("x", [None, 4])
    y = x + 1
    executor = static.Executor()
    with pytest.raises(ShapeError, match="no value in this run"):
        executor.run(feed={"z": X}, fetch_list=[y])
    assert "the program has no inputs z" in caplog.text
    (value,) = executor.run(feed={"x": X[:, :2]}, fetch_list=[y])  # as Paddle's executor
    np.testing.assert_array_equal(value, X[:, :2] + 1)
    assert f"x is [-1, 4], and {list(X[:, :2].shape)} is fed" in caplog.text


def test_numpy_functions_of_variables_are_operations():
    x = static.data("x", [2])
    array = np.array([1.0, 2.0], np.float32)
    results = [np.log(x), array - x, array / x, array < x, x * array]
    values = static.Executor().run(feed={"x": array * 2}, fetch_list=results)
    for value, expected in zip(
        values, (np.log(array * 2), -array, array * 0 + 0.5, [True, True], array * array * 2), strict=True
    ):
        np.testing.assert_allclose(value, expected, rtol=1e-6)
    with pytest.raises(TypeError):
        np.hypot(array, x)


def test_a_second_run_of_the_startup_program_begins_anew():
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [None, 4])
        loss = paddle.mean(static.nn.batch_norm(static.nn.fc(x, 2)) ** 3)
        optimizer = paddle.optimizer.Adam(0.1)
        optimizer.minimize(loss)
    weight, bias = main.all_parameters()[:2]
    statistics = {one.name: one.numpy() for one in main.all_parameters()[2:]}
    executor, first = static.Executor(), weight.numpy()
    executor.run(startup)
    np.testing.assert_array_equal(weight.numpy(), first)
    executor.run(main, feed={"x": X})
    assert any(np.any(one.numpy() != statistics[one.name]) for one in main.all_parameters()[2:])
    trained = weight.numpy()
    executor.run(startup)
    assert np.all(weight.numpy() != first) and np.all(weight.numpy() != trained) and not bias.numpy().any()
    for one in main.all_parameters()[2:]:
        np.testing.assert_array_equal(one.numpy(), statistics[one.name])
    state = optimizer.state_dict()
    moments = [one for name, one in state.items() if "moment" in name]
    powers = [one.item() for name, one in state.items() if "beta1_pow" in name]
    assert moments and not any(one.numpy().any() for one in moments)
    np.testing.assert_allclose(powers, 0.9)


def test_a_startup_program_with_a_seed_draws_the_same_values_again():
    main, startup = static.Program(), static.Program()
    startup.random_seed = 7
    with static.program_guard(main, startup):
        static.nn.fc(static.data("x", [None, 4]), 2)
        kept = static.create_global_var([2], 3.0, "float32", persistable=True)
    weight, executor = main.all_parameters()[0], static.Executor()
    executor.run(startup)
    first = weight.numpy()
    weight.set_value(np.zeros_like(first))
    kept.set_value(np.zeros(2, np.float32))
    executor.run(startup)
    np.testing.assert_array_equal(weight.numpy(), first)
    np.testing.assert_array_equal(kept.numpy(), [3, 3])


def test_startup_programs_of_one_seed_begin_alike():
    """As Paddle's do, whatever was drawn before; each parameter begins with the seed."""

    def weights(seed: int) -> list[np.ndarray]:
        main, startup = static.Program(), static.Program()
        startup.random_seed = seed
        with static.program_guard(main, startup):
            hidden = static.nn.fc(static.data("x", [None, 4]), 4)
            static.nn.fc(hidden, 4)
        static.Executor().run(startup)
        return [one.numpy() for one in main.all_parameters() if len(one.shape) == 2]

    first, again, other = weights(7), weights(7), weights(8)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first[0], first[1])
    assert not np.array_equal(first[0], other[0])


def test_the_size_of_a_variable_is_a_number_and_a_method():
    program = static.Program()
    with static.program_guard(program):
        x, known = static.data("x", [None, 3]), static.data("known", [2, 3])
        sizes = [x.size(), known.size()]
        assert x.size == -1 and known.size == 6
    fed = {"x": np.zeros((5, 3), np.float32), "known": np.zeros((2, 3), np.float32)}
    np.testing.assert_array_equal(static.Executor().run(program, fed, sizes), [15, 6])


def test_parameters_are_in_the_block_of_the_program_that_reads_them():
    program = static.Program()
    with static.program_guard(program):
        static.nn.fc(static.data("x", [2, 3]), 2)
    for parameter in program.all_parameters():
        assert parameter.block.idx == 0 and parameter.block.program is program
