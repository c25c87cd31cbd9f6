"""What static programs refuse, by Paddle's kinds of error, and what they assert."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from framework.paddle.static.nn.control_flow import Assert  # type: ignore[import-not-found]

from framework import paddle
from framework.paddle import base
from framework.paddle.distributed.entry_attr import EntryAttr


@pytest.fixture
def static():
    paddle.enable_static()
    with paddle.static.program_guard(paddle.static.Program()):
        yield
    paddle.disable_static()


def test_cond_refuses_what_is_no_function(static: None):
    pred = paddle.static.data("pred", [1], "bool")
    for args in ((None, list, list), (pred, list, set()), (pred, set(), list), (pred, list, list, set())):
        with pytest.raises(TypeError):
            paddle.static.nn.cond(*args)
    with pytest.raises(TypeError):
        paddle.static.nn.while_loop(lambda i: i < 1, lambda i: i, paddle.full([1], 0))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        paddle.static.CompiledProgram("program")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        paddle.static.Print([1])  # type: ignore[arg-type]


def test_sizes_that_branches_differ_in_are_not_known(static: None):
    pred = paddle.static.data("pred", [1], "bool")
    out = paddle.static.nn.cond(pred, lambda: paddle.ones([3, 2]), lambda: paddle.ones([3, 4]))
    assert out.shape == (3, -1)
    for flag in (True, False):
        (value,) = paddle.static.Executor().run(feed={"pred": np.array([flag])}, fetch_list=[out.sum()])
        assert value == (6 if flag else 12)


def test_assertions_of_programs(static: None):
    x = paddle.static.data("x", [2], "float32")
    Assert(paddle.max(x) < 3.0, [x], 1)
    executor = paddle.static.Executor()
    executor.run(feed={"x": np.zeros(2, "float32")}, fetch_list=[x])
    with pytest.raises(ValueError, match=r"x \[2\]: \[5.0\]"):
        executor.run(feed={"x": np.full(2, 5, "float32")}, fetch_list=[x])
    with pytest.raises(TypeError):
        Assert(x)
    Assert(x < 3.0)
    with pytest.raises(ValueError, match="one value"):
        executor.run(feed={"x": np.zeros(2, "float32")}, fetch_list=[x])


def test_variables_that_want_gradients_change_in_place(static: None):
    counter = paddle.full([1], 1.0)
    counter.stop_gradient = False
    paddle.increment(counter)
    (value,) = paddle.static.Executor().run(fetch_list=[counter])
    assert value.tolist() == [2]


def test_gradients_are_clipped_in_dynamic_mode():
    parameter = paddle.ones([2])
    parameter.grad = paddle.full([2], 3.0)
    with pytest.raises(ValueError, match="0 or more"):
        paddle.nn.utils.clip_grad_value_(parameter, -1)
    ((_, gradient),) = paddle.nn.ClipGradByValue(max=0, min=0)([(parameter, parameter.grad)])
    assert gradient.tolist() == [0, 0]
    paddle.enable_static()
    try:
        for clip in (paddle.nn.utils.clip_grad_norm_, paddle.nn.utils.clip_grad_value_):
            with pytest.raises(RuntimeError, match="dynamic mode"):
                clip(parameter, 1.0)
    finally:
        paddle.disable_static()


def test_a_guard_has_names_of_its_own():
    for _ in range(2):
        with base.dygraph.guard():
            paddle.nn.Linear(2, 2, weight_attr=paddle.ParamAttr(name="shared_by_no_one"))
    with pytest.raises(ValueError, match="taken"):
        for _ in range(2):
            paddle.nn.Linear(2, 2, weight_attr=paddle.ParamAttr(name="twice"))


def test_group_norm_needs_two_axes():
    for x in (paddle.ones([3]), paddle.to_tensor([], dtype="float32")):
        with pytest.raises(ValueError, match="2 axes"):
            paddle.static.nn.group_norm(x, 3)
    with pytest.raises(NotImplementedError):
        EntryAttr()._to_attr()


def test_startup_programs_say_how_parameters_begin(static: None):
    startup = paddle.static.Program()
    startup.random_seed = 7
    with paddle.static.program_guard(paddle.static.Program(), startup):
        layer = paddle.nn.Linear(2, 3)
        weight, bias = startup.global_block().ops
        assert (weight.type, bias.type) == ("uniform_random", "fill_constant")
        assert weight.attr("max") == pytest.approx((6 / 5) ** 0.5) and weight.attr("seed") == 7
        assert bias.attr("value") == 0 and weight.output("Out") == [layer.weight.name]
        assert weight.output_arg_names == [layer.weight.name] and weight.has_attr("min")
        (value,) = paddle.static.Executor().run(startup, fetch_list=[layer.weight.name])
    assert value.tolist() == layer.weight.tolist()


def test_blocks_share_parameters_and_say_how_they_begin():
    program = paddle.static.Program()
    block = program.global_block()
    for _ in range(2):
        block.create_parameter([4, 4], "float16", "shared", initializer=paddle.nn.initializer.Uniform())
    assert [op.type for op in block.ops] == ["uniform_random", "cast"]
    with pytest.raises(TypeError, match="float32, float64"):
        block.create_parameter([4, 4], "int32", "other", initializer=paddle.nn.initializer.Orthogonal())


def test_parameters_of_programs_are_checked(static: None):
    for args in ((1, "float32"), ([1.0, 2.0], "float32")):
        with pytest.raises(TypeError):
            paddle.create_parameter(*args)
    with pytest.raises(TypeError):
        paddle.create_parameter([2], "float32", default_initializer=np.zeros(2))


def test_recorded_operations_name_what_they_read_and_write(static: None):
    x, y = paddle.static.data("x", [2], "float32"), paddle.static.data("y", [2], "float32")
    out = paddle.add(x, y)
    op = paddle.static.default_main_program().global_block().ops[-1]
    assert op.input("X") == ["x"] and op.input("Y") == ["y"] and op.input_arg_names == ["x", "y"]
    assert op.output("Out") == op.output_arg_names == [out.name] and op.output_names == ["Out"]


def test_a_recorded_part_has_a_gradient_of_its_own(static: None):
    x = paddle.static.data("x", [2], "float32")
    x.stop_gradient = False
    out = paddle.static.nn.static_pylayer(lambda x: x * 2, [x], lambda gradient: gradient * 5)
    (gradient,) = paddle.static.gradients(out, [x])
    values = paddle.static.Executor().run(feed={"x": np.ones(2, "float32")}, fetch_list=[out, gradient])
    assert [value.tolist() for value in values] == [[2, 2], [5, 5]]
    with pytest.raises(ValueError, match="stop_gradient"):
        paddle.static.nn.static_pylayer(lambda x: x, [x])
    with pytest.raises(AssertionError, match="each input"):
        paddle.static.nn.static_pylayer(lambda x, y: x, [x, x], lambda gradient: gradient)


def test_methods_in_place_replace_nothing_in_programs(static: None):
    x = paddle.static.data("x", [2], "float32")
    with pytest.warns(UserWarning, match=r"ceil_\(\) is the same as ceil\(\)"):
        out = x.ceil_()
    values = paddle.static.Executor().run(feed={"x": np.array([0.5, 1.5], "float32")}, fetch_list=[x, out])
    assert [value.tolist() for value in values] == [[0.5, 1.5], [1, 2]]


def test_gradients_go_to_the_program_of_the_loss(static: None):
    program = paddle.static.Program()
    with paddle.static.program_guard(program, paddle.static.Program()):
        x = paddle.static.data("x", [2], "float32")
        x.stop_gradient = False
        loss = (paddle.static.nn.fc(x.reshape([1, 2]), 1) * 3).sum()
    paddle.static.append_backward(loss)
    paddle.optimizer.SGD(0.1).minimize(loss)
    assert not paddle.static.default_main_program().ops
    executor = paddle.static.Executor()
    (gradient,) = executor.run(program, feed={"x": np.ones(2, "float32")}, fetch_list=[x.grad_name])
    assert np.any(gradient != 0)


def test_unknown_sizes_are_those_of_the_other_inputs_of_a_stack(static: None):
    x, y = paddle.static.data("x", [2, 3]), paddle.static.data("y", [-1, 3])
    out = paddle.stack([x, y])
    assert out.shape == (2, 2, 3)
    feed = {"x": np.zeros((2, 3), "float32"), "y": np.ones((2, 3), "float32")}
    assert paddle.static.Executor().run(feed=feed, fetch_list=[out])[0].sum(axis=(1, 2)).tolist() == [0, 6]


def test_what_inference_models_are_saved_from(static: None, tmp_path: Path):
    x = paddle.static.data("x", [2, 3])
    out, executor = x + 1, paddle.static.Executor()
    save, prefix = paddle.static.save_inference_model, str(tmp_path / "model")
    for bad in ((None, x, out), (f"{prefix}/", x, out), (prefix, "x", out), (prefix, [x], ["out"])):
        with pytest.raises(ValueError, match="should be"):
            save(*bad, executor)  # type: ignore[arg-type]
    (tmp_path / "folder.pdmodel").mkdir()
    with pytest.raises(ValueError, match="existing directory"):
        save(str(tmp_path / "folder"), x, out, executor)
    for bad in ((None, x, out), (paddle.static.default_main_program(), "x", out)):
        with pytest.raises(TypeError, match="type must be"):
            paddle.static.normalize_program(*bad)  # type: ignore[arg-type]
    compiled = paddle.static.CompiledProgram(paddle.static.default_main_program())
    save(prefix, [x], [out], executor, program=compiled)
    program, names, fetches = paddle.static.load_inference_model(prefix, executor)
    feed = {names[0]: np.ones((2, 3), "float32")}
    assert executor.run(program, feed=feed, fetch_list=fetches)[0].tolist() == [[2, 2, 2], [2, 2, 2]]


def test_sizes_of_what_is_fed(static: None):
    x = paddle.static.data("x", [-1, 4])
    sizes = paddle.shape(x)
    outs = [
        sizes,
        paddle.numel(x),
        paddle.reshape(x, [sizes[0] * 2, 2]),
        paddle.arange(sizes[0]),
        paddle.cast(sizes[0], "float32") * x.sum(),
    ]
    assert [out.shape for out in outs] == [(2,), (), (-1, 2), (-1,), ()]
    run = paddle.static.Executor().run
    for rows in (3, 2):
        values = run(feed={"x": np.ones((rows, 4), "float32")}, fetch_list=outs)
        assert values[0].tolist() == [rows, 4] and values[1] == 4 * rows
        assert values[2].shape == (2 * rows, 2) and values[3].tolist() == list(range(rows))
        assert values[4] == 4 * rows * rows
    assert isinstance(paddle.shape(paddle.ones([2])), paddle.Tensor)


def test_models_that_ask_for_sizes_are_saved(static: None, tmp_path: Path):
    x = paddle.static.data("x", [-1, 4])
    out = paddle.reshape(x, [paddle.shape(x)[0], 2, 2]).sum(-1)
    executor, prefix = paddle.static.Executor(), str(tmp_path / "model")
    paddle.static.save_inference_model(prefix, [x], [out], executor)
    program, names, fetches = paddle.static.load_inference_model(prefix, executor)
    for rows in (3, 2):
        feed = {names[0]: np.ones((rows, 4), "float32")}
        assert executor.run(program, feed=feed, fetch_list=fetches)[0].shape == (rows, 2)


def test_variables_of_loops_may_change_their_shape(static: None):
    x = paddle.static.data("x", [-1, 5], "int32")
    count = paddle.shape(x)[0]
    start = [paddle.zeros([], "int32"), paddle.zeros([], "int32")]
    total, _ = paddle.static.nn.while_loop(lambda z, i: i < count, lambda z, i: [z + x[i], i + 1], start)
    feed = {"x": np.arange(10, dtype="int32").reshape(2, 5)}
    assert paddle.static.Executor().run(feed=feed, fetch_list=[total])[0].tolist() == [5, 7, 9, 11, 13]


def test_programs_are_cut_at_what_is_fed(static: None):
    x = paddle.static.data("x", [2, 3])
    hidden = x * 2
    total = (hidden + 1).sum()
    program = paddle.static.default_main_program()
    cut = program._prune_with_input([hidden.name], [total.name])
    assert len(cut.ops) == 2 and list(cut.data) == [hidden.name]
    feed = {hidden.name: np.ones((2, 3), "float32")}
    assert paddle.static.Executor().run(cut, feed=feed, fetch_list=[total])[0] == 12
    assert len(program._prune_with_input(["x"], [total]).ops) == 3
    with pytest.raises(ValueError, match="can only be str"):
        program._prune_with_input([2], [total])  # type: ignore[list-item]
