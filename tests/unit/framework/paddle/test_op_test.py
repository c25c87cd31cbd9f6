"""Tests of Paddle's operators, written for its own `op_test`, run on ours: `pytest -p framework.paddle.op_test`."""

from __future__ import annotations

import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np
import pytest

from framework import paddle
from framework.paddle import static
from framework.paddle.op_test import (
    OpTest,
    convert_float_to_uint16,
    convert_uint16_to_float,
    paddle_static_guard,
)

X = np.random.RandomState(0).uniform(0.1, 1, (3, 4))


def _case(**attributes: object) -> OpTest:
    case = type("Case", (OpTest,), {"test": lambda self: None})("test")
    for name, value in attributes.items():
        setattr(case, name, value)
    return case


def _clip(**changes: object) -> OpTest:
    case = {
        "op_type": "clip",
        "python_api": paddle.clip,
        "inputs": {"X": X},
        "attrs": {"min": 0.3, "max": 0.7},
        "outputs": {"Out": np.clip(X, 0.3, 0.7)},
    }
    return _case(**(case | changes))


def test_outputs_and_gradients_are_checked_through_the_function():
    case = _clip()
    case.check_output()
    case.check_grad(["X"], "Out")
    inside = (X > 0.3) & (X < 0.7)
    case.check_grad(["X"], ["Out"], user_defined_grads=[inside / 12])


def test_wrong_values_and_gradients_are_told():
    with pytest.raises(AssertionError, match="output Out of clip"):
        _clip(outputs={"Out": X}).check_output()
    with pytest.raises(AssertionError, match="shape"):
        _clip(outputs={"Out": X[:2]}).check_output()
    with pytest.raises(AssertionError, match="gradient of X"):
        _clip().check_grad(["X"], "Out", user_defined_grads=[X])
    half = _clip(python_api=lambda x, low, high: x.detach() + x * 0.5, attrs={})
    half.check_grad(["X"], "Out", user_defined_grads=[np.full_like(X, 0.5 / 12)])
    with pytest.raises(AssertionError, match="along a direction"):
        half.check_grad(["X"], "Out")


def test_a_setting_may_be_an_input():
    case = _case(
        op_type="reshape2",
        python_api=paddle.reshape,
        python_out_sig=["Out"],
        inputs={"X": X, "Shape": np.array([4, 3], "int32")},
        attrs={},
        outputs={"Out": X.reshape(4, 3), "XShape": X},
    )
    case.check_output(no_check_set=["XShape"])


def test_a_slot_that_is_not_checked_leaves_out_the_arrays_of_its_list():
    case = _case(
        op_type="split",
        python_api=lambda x: paddle.split(x, 2, 1),
        python_out_sig=["first", "Out"],
        inputs={"X": X},
        outputs={"Out": [("first", X[:, 2:]), ("second", X[:, :2])]},
    )
    with pytest.raises(AssertionError):
        case.check_output()
    case.check_output(no_check_set=["Out"])


def test_lists_of_inputs_and_outputs_have_names():
    case = _case(
        op_type="split",
        python_api=lambda x, sections, axis: paddle.split(x, sections, axis),
        inputs={"X": X},
        attrs={"sections": [1, 3], "axis": 1},
        outputs={"Out": [("a", X[:, :1]), ("b", X[:, 1:])]},
    )
    case.check_output()
    case.check_grad(["X"], ["a", "b"])


def test_bfloat16_is_uint16():
    cut = convert_uint16_to_float(convert_float_to_uint16(X))
    assert np.abs(cut - X).max() < 0.01
    case = _clip(
        inputs={"X": convert_float_to_uint16(X)},
        outputs={"Out": convert_float_to_uint16(np.clip(cut, 0.3, 0.7))},
    )
    case.check_output()
    case.check_grad(["X"], "Out")


def test_an_operator_without_a_function_is_that_of_saved_programs():
    case = _case(
        op_type="affine_channel",
        inputs={"X": X[..., None, None], "Scale": X[0], "Bias": X[1]},
        attrs={},
        outputs={"Out": (X * X[0] + X[1])[..., None, None]},
    )
    case.check_output()
    case.check_grad(["X", "Scale", "Bias"], "Out")


def test_a_kernel_that_updates_its_inputs():
    case = _case(
        op_type="sgd",
        python_api=lambda p, lr, g, master=None, wide=False: (
            paddle._C_ops.sgd_(p, lr, g, master, wide) and None
        ),
        inputs={"Param": X, "Grad": X, "LearningRate": np.array([0.5])},
        attrs={},
        outputs={"ParamOut": X / 2},
    )
    case.check_output()


def test_the_plug_in_runs_a_file_of_paddles_tree(tmp_path: Path):
    (tmp_path / "op_test.py").write_text(
        "raise ImportError('the one of Paddle needs its C++ library')", encoding="utf-8"
    )
    (tmp_path / "test_relu.py").write_text(
        "import numpy as np, paddle\nfrom op_test import OpTest\n"
        "class TestRelu(OpTest):\n"
        "    def setUp(self):\n"
        "        self.op_type, self.python_api = 'relu', paddle.nn.functional.relu\n"
        "        self.inputs = {'X': np.array([[-1.0, 2.0]])}\n"
        "        self.outputs = {'Out': np.array([[0.0, 2.0]])}\n"
        "    def test_check_output(self):\n        self.check_output()\n"
        "    def test_check_grad(self):\n        self.check_grad(['X'], 'Out')\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "framework.paddle.op_test", "test_relu.py"]
    root = str(Path(__file__).resolve().parents[4])
    result = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": root, "PATH": ""},
        check=False,
    )
    assert "2 passed" in result.stdout, result.stdout + result.stderr


def test_float16_is_not_checked_on_a_cpu():
    case = _clip(inputs={"X": X.astype("float16")}, outputs={"Out": np.zeros(1, "float16")})
    case.check_output()
    case.check_grad(["X"], "Out")
    assert isinstance(case, unittest.TestCase)


def test_the_operator_runs_where_the_function_returns_none_of_the_outputs():
    one = np.ones(3, np.float32)
    slots = {"Param": one, "Grad": one, "Moment": one, "LearningRate": one[:1]}
    outputs = {"ParamOut": one - 1 / np.sqrt(np.float32(2)), "MomentOut": 2 * one}
    case = _case(op_type="adagrad", inputs=slots, outputs=outputs, attrs={}, python_out_sig=["Out"])
    case.python_api = lambda *arguments: arguments[0]
    case.check_output()
    arrays, names = case._calc_output(None)
    assert names == ["ParamOut", "MomentOut"] and arrays[1].tolist() == [2, 2, 2]


def test_kernels_are_operators_of_static_programs():
    with paddle_static_guard(), static.program_guard(static.Program(), static.Program()):
        x = static.data("x", [2, 3], "float32")
        block = static.default_main_program().global_block()
        names = ("velocity", "grad", "out", "new")
        velocity, grad, out, new = (block.create_var(name=n, shape=[2, 3], dtype="float32") for n in names)
        rate = block.create_var(name="rate", shape=[1], dtype="float32")
        inputs = {"Param": [x], "Grad": [grad], "Velocity": [velocity], "LearningRate": [rate]}
        block.append_op("merged_momentum", inputs, {"ParamOut": [out], "VelocityOut": [new]}, {"mu": 0.5})
        ones = np.ones([2, 3], np.float32)
        feed = {"x": ones, "grad": ones, "velocity": ones, "rate": np.array([2.0], np.float32)}
        results = static.Executor().run(feed=feed, fetch_list=[out, new])
        assert results[0].tolist() == [[-2] * 3] * 2 and results[1].tolist() == [[1.5] * 3] * 2


def test_a_variable_of_a_static_program_is_not_changed_in_place():
    with paddle_static_guard(), static.program_guard(static.Program(), static.Program()):
        x = static.data("x", [2, 3], "float32")
        with pytest.warns(UserWarning, match="does not perform inplace"):
            results = [x.exp_(), paddle.reshape_(x, [3, 2]), paddle.where_(x > 0, x, x)]
        assert tuple(x.shape) == (2, 3) and all(result is not x for result in results)
        with pytest.raises(RuntimeError, match="setitem"):
            x[0] = 1.0


def test_a_kernel_that_fills_a_tensor_gives_it_shape_and_type():
    out = paddle._C_ops.assign_value_(paddle.zeros([0]), [2, 1], int(paddle.int64), [3, 4])
    assert out.tolist() == [[3], [4]] and out.dtype == paddle.int64
    out = paddle._C_ops.full_(paddle.zeros([0]), [2], 5, paddle.float64, None)
    assert out.tolist() == [5, 5] and out.dtype == paddle.float64
