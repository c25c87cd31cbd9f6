"""Programs as data: descriptions, their bytes, blocks, names of operators and what is said of them."""

from __future__ import annotations

import numpy as np
import pytest

from framework.core.errors import OarError
from framework.interop.programs.pdmodel import read_pdmodel
from framework.interop.source import Source
from framework.paddle.base.core import AttrType, ProgramDesc, Scalar
from framework.paddle.base.framework import extract_plain_list, wrap_as_scalar, wrap_as_scalars
from framework.paddle.op_test import make_scalar_proto
from framework.paddle.op_test.helpers import paddle_static_guard
from framework.paddle.static.descriptions import attribute_type


@pytest.fixture(autouse=True)
def static_mode():
    with paddle_static_guard():
        yield


def test_scalars_tell_types_apart():
    assert (
        wrap_as_scalar(42) == 42 and wrap_as_scalar(42) != wrap_as_scalar(42.0) and wrap_as_scalar(True) != 1
    )
    assert wrap_as_scalar(np.float64(1e308)).value() == 1e308
    assert extract_plain_list(wrap_as_scalars(np.array([[1.5, 2.5]]))) == [1.5, 2.5]
    assert (
        repr(Scalar(1 + 2j)) == "Scalar(complex128(real:1 imag:2))"
        and repr(Scalar(True)) == "Scalar(bool(1))"
    )
    with pytest.raises(TypeError, match="abc"):
        wrap_as_scalar("abc")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="64 bits"):
        wrap_as_scalar(1 << 63)
    message = make_scalar_proto(1 + 2j)
    assert (message.c.r, message.c.i, message.type) == (1.0, 2.0, 4)


def test_bytes_of_a_description_hold_all_of_it():
    from framework import paddle

    program = ProgramDesc()
    block, body = program.block(0), program.append_block(program.block(0))
    reader, rows = block.var(b"reader"), block.var("rows")
    reader.set_type("VarType.READER")
    reader.set_shapes([[2, -1], [3]])
    reader.set_dtypes([paddle.int32, paddle.float64])
    reader.set_lod_levels([1, 2])
    rows.set_type("VarType.SELECTED_ROWS")
    rows.set_shape([5, 8])
    op = block.append_op()
    op.set_type("test")
    op.set_input("X", ["a", b"b"])
    op.set_output("Out", ["rows"])
    values = {
        "i": -1,
        "l": 1 << 40,
        "f": 0.5,
        "s": "é",
        "b": True,
        "is": [1, -2],
        "fs": [0.25],
        "bs": [True, False],
    }
    values |= {"ss": ["a", ""], "big": [1, 1 << 40], "none": []}
    for name, value in values.items():
        op._set_attr(name, value)
    op._set_float64_attr("d", 0.1)  # type: ignore[attr-defined]
    op._set_scalars_attr("scalars", [Scalar(True), Scalar(-3), Scalar(0.1), Scalar(1 - 2j)])
    op.set_block_attr("block", body)
    read = ProgramDesc()
    read.parse_from_string(program.serialize_to_string())
    again, operator = read.block(0), read.block(0).op(0)
    assert read.num_blocks() == 2 and read.block(1).parent == 0
    assert again.var("reader").shapes() == [[2, -1], [3]] and again.var("reader").lod_levels() == [1, 2]
    assert again.var("reader").dtypes() == reader.dtypes() and again.var("rows").shape() == [5, 8]
    assert operator.inputs() == {"X": ["a", "b"]} and operator.output("Out") == ["rows"]
    assert {name: operator.attr(name) for name in values} == values
    assert operator.attr("d") == 0.1 and operator.attr("scalars") == [True, -3, 0.1, 1 - 2j]
    assert operator._block_attr_id("block") == 1 and operator.attr_type("big") == AttrType.LONGS
    assert read.cached_hash_str() == program.cached_hash_str() and not read.need_update()
    with pytest.raises(ValueError, match="Failed to parse"):
        read.parse_from_string(b"abc")
    with pytest.raises(RuntimeError, match="nothing"):
        operator.attr("nothing")
    with pytest.raises(TypeError, match="one type"):
        attribute_type([1, "a"])


def _net():
    from framework import paddle

    program = paddle.static.Program()
    with paddle.utils.unique_name.guard(), paddle.static.program_guard(program, paddle.static.Program()):
        x = paddle.static.data("x", [3, 2])
        out = paddle.static.nn.fc(x, 4, activation="relu")
        paddle.mean(out * 2.0)
    return program, x


def test_a_program_says_what_it_holds():
    program, x = _net()
    other, _ = _net()
    assert [op.type for op in program.global_block().ops] == [
        "mul",
        "elementwise_add",
        "relu",
        "scale",
        "reduce_mean",
    ]
    assert program.desc.cached_hash_str() == other.desc.cached_hash_str()
    assert program.clone().desc.cached_hash_str() == other.desc.cached_hash_str()
    assert not program.desc.need_update()
    program.global_block().ops[0]._set_attr("use_mkldnn", True)
    assert program.desc.need_update() and program.desc.cached_hash_str() != other.desc.cached_hash_str()
    x.desc.set_stop_gradient(False)
    assert not x.stop_gradient and program.desc.need_update()
    data = program.desc.serialize_to_string()
    read = read_pdmodel(Source("program", memoryview(data)))  # what reads Paddle's own files
    assert read.nodes[0].op == "mul" and set(read.parameters) == {"fc_0.w_0", "fc_0.b_0"}


def test_a_described_program_runs_its_operators(tmp_path):
    from framework import paddle

    program = paddle.static.Program()
    block = program.global_block()
    x, y = (block.create_var(name, [2, 2]) for name in "xy")
    out = block.create_var("out")
    op = block.append_op("elementwise_add", {"X": [x], "Y": [y]}, {"Out": [out]}, {"axis": -1})
    again = paddle.static.Program.parse_from_string(program.desc.serialize_to_string())
    feed = {"x": np.ones((2, 2), np.float32), "y": np.full((2, 2), 2, np.float32)}
    (value,) = paddle.static.Executor().run(again, feed=feed, fetch_list=["out"])
    np.testing.assert_array_equal(value, np.full((2, 2), 3, np.float32))
    (tmp_path / "net.pdmodel").write_bytes(
        program.desc.serialize_to_string()
    )  # what Paddle's static.save writes
    loaded = paddle.load(str(tmp_path / "net.pdmodel"))
    (value,) = paddle.static.Executor().run(loaded, feed=feed, fetch_list=["out"])
    np.testing.assert_array_equal(value, np.full((2, 2), 3, np.float32))
    assert op.desc.attr("axis") == -1 and op.attr_type("axis") == AttrType.INT
    recorded, _ = _net()
    described = paddle.static.Program.parse_from_string(recorded.desc.serialize_to_string())
    assert [op.type for op in described.global_block().ops] == [op.type for op in recorded.global_block().ops]
    with pytest.raises(OarError, match="save_inference_model"):
        paddle.static.Executor().run(
            described, feed={"x": np.ones((3, 2), np.float32)}, fetch_list=["fc_0.tmp_0"]
        )


def test_attributes_of_operators_change_what_runs():
    from framework import paddle

    program = paddle.static.Program()
    block = program.global_block()
    x, out = block.create_var("x", [2]), block.create_var("out")
    op = block.append_op("scale", {"X": [x]}, {"Out": [out]}, {"scale": 2.0})
    feed, run = {"x": np.ones(2, np.float32)}, paddle.static.Executor().run
    assert run(program, feed=feed, fetch_list=[out])[0].tolist() == [2, 2]
    op._set_attr("scale", 3.0)
    assert run(program, feed=feed, fetch_list=[out])[0].tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="NotFound"):
        op.attr("nothing")
    with pytest.raises(ValueError, match="integer"):
        program.random_seed = "seed"  # type: ignore[assignment]
    with pytest.raises(TypeError, match="source Program"):
        program._copy_param_info_from("program")  # type: ignore[arg-type]


def test_a_variable_is_created_once():
    from framework import paddle

    block = paddle.static.Program().global_block()
    variable = block.create_var("w", [2, 3], "float64")
    assert block.create_var("w") is variable and block.create_var("w", [2, 3], "float64") is variable
    for declared in ({"shape": [3, 2]}, {"dtype": "float32"}):
        with pytest.raises(ValueError, match="created before"):
            block.create_var("w", **declared)
    kinds = paddle.base.core.VarDesc.VarType
    assert variable.type == kinds.LOD_TENSOR and variable.to_string(True).startswith("name: w")
    scopes = block.create_var("scopes", type=kinds.STEP_SCOPES)
    assert scopes.type == kinds.STEP_SCOPES
    with pytest.raises(AssertionError, match="LOD_TENSOR"):
        scopes.detach()


def test_blocks_and_scopes_of_names():
    from framework import paddle

    program = paddle.static.Program()
    with paddle.static.program_guard(program):
        x = paddle.static.data("x", [2])
        with paddle.static.name_scope("first"), paddle.static.device_guard("cpu"):
            paddle.exp(x)
            with paddle.static.name_scope("inner"):
                paddle.exp(x)
        with paddle.static.name_scope("first"):
            paddle.exp(x)
        block = program._create_block()
        paddle.tanh(x)
        assert (block.idx, block.parent_idx, [op.type for op in block.ops]) == (1, 0, ["tanh"])
        program._rollback()
        paddle.abs(x)
    ops = program.global_block().ops
    assert [op.type for op in ops] == ["exp", "exp", "exp", "abs"] and program.num_blocks == 2
    assert [op.attr("op_device") for op in ops] == ["cpu", "cpu", "", ""]
    assert [op.desc.attr("op_namescope") for op in ops] == ["/first/", "/first/inner/", "/first_1/", "/"]
    for device in ("cpu1", "cpu:1"):
        with pytest.raises(ValueError), paddle.static.device_guard(device):
            pass


def test_steps_of_optimizers_say_which_of_them_run():
    from framework import paddle

    program = paddle.static.Program()
    with paddle.static.program_guard(program, paddle.static.Program()):
        x = paddle.static.data("x", [2, 2])
        losses, steps = [], []
        for _ in range(2):
            losses.append(paddle.mean(paddle.static.nn.fc(x, 1)))
            steps.append(paddle.optimizer.SGD(0.5).minimize(losses[-1]))
        first, _, second, _ = program.all_parameters()
    run, feed = paddle.static.Executor().run, {"x": np.ones((2, 2), np.float32)}
    for step, moved in zip(steps, (first, second)):
        before = [first.numpy(), second.numpy()]
        assert len(run(program, feed=feed, fetch_list=[losses[0], step])) == 1
        now = [first.numpy(), second.numpy()]
        assert [(a != b).any() for a, b in zip(before, now)] == [moved is first, moved is second]
    pruned = program._prune([losses[0]])
    assert [op.type for op in pruned.ops] == ["mul", "elementwise_add", "reduce_mean"]
    assert "sgd" in [op.type for op in program.ops]
    with pytest.raises(TypeError, match="optimize_op"):
        run(program, feed=feed, fetch_list=[program.ops[0]])
    with pytest.raises(ValueError, match="All targets"):
        program._prune(None)  # type: ignore[arg-type]


def test_a_number_selects_what_is_given_on():

    from framework import paddle

    control_flow = paddle.static.nn.control_flow  # type: ignore[attr-defined]
    select_input, select_output = control_flow.select_input, control_flow.select_output

    program = paddle.static.Program()
    with paddle.static.program_guard(program, paddle.static.Program()):
        x, mask = paddle.static.data("x", [2]), paddle.static.data("mask", [1], "int32")
        x.stop_gradient = False
        outputs = [program.global_block().create_var(shape=[2]) for _ in range(3)]
        select_output(x, outputs, mask)
        y = select_input(outputs, mask)
        (gradient,) = paddle.static.gradients(y * y, x)
        wide = select_input([x, paddle.concat([x, x])], mask)
        with pytest.raises(TypeError, match="int32"):
            select_input([x, x], x)
        with pytest.raises(TypeError, match="list"):
            select_output(x, x, mask)  # type: ignore[arg-type]
    assert wide.shape == (-1,)
    run = paddle.static.Executor().run
    for number in range(2):
        feed = {"x": np.array([1, 2], np.float32), "mask": np.array([number], np.int32)}
        values = run(program, feed=feed, fetch_list=[y, gradient, outputs[1], wide])
        assert [value.tolist() for value in values[:3]] == [[1, 2], [2, 4], [1, 2] if number else [0, 0]]
        assert values[3].tolist() == [1, 2] * (number + 1)


def test_the_core_lists_operators_and_measures_them():
    from framework import paddle
    from framework.paddle.base import core

    program = paddle.static.Program()
    with paddle.static.program_guard(program, paddle.static.Program()):
        paddle.mean(paddle.ones([4, 4]))
    costs = core.CostModel().profile_measure(program, paddle.static.Program(), "cpu", ["time"])
    assert 0 < costs.get_op_time_ms(1) <= costs.get_whole_time_ms()
    phi, older = core._get_all_register_op_kernels("phi"), core._get_all_register_op_kernels("fluid")
    assert phi["sign"] and "sign" not in older and older["beam_search"]
    assert {"while", "beam_search", "sign"} <= set(core.get_all_op_names())
    with pytest.raises(ValueError, match="library"):
        core.get_all_op_names("other")
    scope, tensor = core.Scope(), core.LoDTensor([[2, 2]])
    tensor.set(np.ones((4, 1)), None)
    core.set_feed_variable(scope, tensor, "feed", 0)
    assert core.get_fetch_variable(scope, "feed", 0).recursive_sequence_lengths() == [[2, 2]]
    with pytest.raises(TypeError, match="main_program"):
        paddle.static.io.load_vars(None, "", "program")  # type: ignore[arg-type]
    block = program.global_block()
    for name, shape in (("x", [3]), ("x@GRAD", [1]), ("y@GRAD", [1])):
        block.create_var(name, shape)
    paddle.base.backward._infer_var_data_type_shape_("x@GRAD", block)
    assert block.var("x@GRAD").shape == (3,)
    with pytest.warns(UserWarning, match="FP32"):
        paddle.base.backward._infer_var_data_type_shape_("y@GRAD", block)
    with pytest.raises(TypeError, match="int8"):
        paddle.static.Print(block.create_var("z", [1], "int8"))
