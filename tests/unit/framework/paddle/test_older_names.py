"""Names and checks that programs of Paddle's older interface use; the values are those of Paddle 2.6.2."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from framework import paddle
from framework.paddle.base import default_scope_funcs
from framework.paddle.hapi.logger import setup_logger
from framework.paddle.jit.spec import _compatible_non_tensor_spec
from framework.paddle.nn.layer.rnn import rnn
from framework.paddle.optimizer.lr import counted


@pytest.fixture
def static() -> Iterator[None]:
    paddle.enable_static()
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        yield
    paddle.disable_static()


def test_rates_count_the_runs_of_a_program(static: None) -> None:
    rates = [
        counted.noam_decay(4, 2),
        counted.exponential_decay(1.0, 2, 0.5),
        counted.exponential_decay(1.0, 2, 0.5, staircase=True),
        counted.inverse_time_decay(1.0, 2, 0.5),
        counted.polynomial_decay(1.0, 2, 0.2),
        counted.polynomial_decay(1.0, 2, 0.2, cycle=True),
        counted.piecewise_decay([1, 3], [0.3, 0.2, 0.1]),
        counted.cosine_decay(1.0, 1, 4),
        counted.linear_lr_warmup(1.0, 2, 0.0, 0.5),
    ]
    executor = paddle.static.Executor()
    runs = [[value.item() for value in executor.run(fetch_list=rates)] for _ in range(4)]
    # One counter, as in Paddle: noam_decay asked for it first, and counts from 1.
    steps = np.arange(1, 5)
    np.testing.assert_allclose(
        np.array(runs).T,
        np.array(
            [
                0.5 * np.minimum(steps**-0.5, 2**-1.5 * steps),
                0.5 ** (steps / 2),
                0.5 ** (steps // 2),
                1 / (1 + 0.5 * steps / 2),
                0.8 * (1 - np.minimum(steps, 2) / 2) + 0.2,
                0.8 * (1 - steps / (2 * np.ceil(steps / 2))) + 0.2,
                [0.2, 0.2, 0.1, 0.1],
                [0.5 * (math.cos(step * math.pi / 4) + 1) for step in steps],
                [0.25, 1, 1, 1],
            ]
        ),
        rtol=1e-5,
        atol=1e-7,
    )


def test_dynamic_mode_gives_schedulers() -> None:
    assert isinstance(counted.noam_decay(4, 2), paddle.optimizer.lr.NoamDecay)
    assert paddle.optimizer.lr.piecewise_decay is counted.piecewise_decay
    with pytest.raises(ValueError, match="one more than boundaries, received 1 and 1"):
        counted.piecewise_decay([1], [1.0])


def test_scopes_in_a_stack() -> None:
    default_scope_funcs.var("outer").get_tensor().set(np.ones(1), None)

    def inner() -> None:
        default_scope_funcs.var("inner")
        assert default_scope_funcs.find_var("outer") is not None

    default_scope_funcs.scoped_function(inner)
    assert default_scope_funcs.find_var("inner") is None


def test_a_log_goes_to_a_file(tmp_path: Path) -> None:
    setup_logger(str(tmp_path / "out"), "oar_test_log").info("written")
    assert "INFO - written" in (tmp_path / "out" / "log.txt").read_text(encoding="utf-8")


def test_layers_and_state() -> None:
    cell = paddle.nn.GRUCell(2, 3)
    outputs, state = rnn(cell, paddle.ones([1, 4, 2]), time_major=False)
    assert outputs.shape == [1, 4, 3] and isinstance(state, paddle.Tensor)
    average = paddle.incubate.ModelAverage(0.5, cell.parameters())
    outputs.sum().backward()
    average.step()
    parameter = cell.parameters()[0]
    np.testing.assert_array_equal(average._get_accumulator("sum_1", parameter), parameter)
    with pytest.raises(KeyError, match="Accumulator absent does not exist"):
        average._get_accumulator("absent", parameter)
    assert paddle.tensor.random.gaussian([2], dtype="float64").dtype == paddle.float64
    sparse, other = (paddle.to_tensor(rows).to_sparse_coo(2) for rows in ([[1.0, 0.0]], [[2.0, 3.0]]))
    assert sparse.copy_(other, True).to_dense().tolist() == [[2, 3]]
    assert _compatible_non_tensor_spec([1, [2]], [1, [2]]) and not _compatible_non_tensor_spec([1], [2])


@pytest.mark.parametrize(
    ("equation", "count", "problem"),
    [
        ("ij", 0, "At least one operand"),
        ("i->j->k", 1, "multiple `->` were found"),
        ("ij", 2, "number of operands is 2, but found 1 segments"),
        ("i", 1, "label string 'i' misses dimensions"),
        ("i_", 1, "_ is not a valid label"),
        ("i..j", 1, "outside of an ellipsis"),
        ("i...->i", 1, "missing ellipsis"),
        ("i...->i...i", 1, "duplicate output labels"),
        ("ij,ji", 2, "label j corresponds to non-broadcastable dimensions"),
    ],
)
def test_equations(equation: str, count: int, problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        paddle.einsum(equation, *[paddle.ones([2, 3])] * count)


def test_labels_that_stand_twice_in_a_term() -> None:
    """Diagonals, as Paddle 2.6.2 has them."""
    x = paddle.arange(9, dtype="float32").reshape([3, 3])
    assert paddle.einsum("ii->i", x).tolist() == [0, 4, 8] and paddle.einsum("ii", x).item() == 12
    y = paddle.arange(18, dtype="float32").reshape([2, 3, 3])
    assert paddle.einsum("...ii->...i", y).tolist() == [[0, 4, 8], [9, 13, 17]]
    assert paddle.einsum("ijj,j->i", y, paddle.ones([3])).tolist() == [12, 39]
    assert paddle.einsum("ii,ij->ij", x, x).tolist() == [[0, 0, 0], [12, 16, 20], [48, 56, 64]]
    with pytest.raises(ValueError, match="of axes of one size"):
        paddle.einsum("...ii->...i", paddle.ones([2, 3]))
    with pytest.raises(ValueError, match="of axes of one size"):
        paddle.einsum("ii->i", paddle.ones([1, 3]))


def test_arguments_that_fit_nothing() -> None:
    x = paddle.ones([3])
    with pytest.raises(AssertionError, match="outputs must be a Tensor or a list"):
        paddle.grad(None, x)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="as many grad_outputs as outputs, received 1 and 2"):
        paddle.grad([x, x], x, [x])
    with pytest.raises(ValueError, match=r"axis 1 of \[3\]"):
        paddle.nn.functional.normalize(x)
    with pytest.raises(ValueError, match="between 0 and 1"):
        paddle.quantile(x, [0.2, -0.3])
    x.stop_gradient = False
    (gradient,) = paddle.grad([x], [x], create_graph=True)
    assert gradient is not None and not gradient.stop_gradient


def test_functions_of_static_programs_refuse_what_is_no_variable(static: None) -> None:
    tensor = paddle.base.create_lod_tensor(np.ones((1, 1)), [[1]], paddle.CPUPlace())
    for function in (paddle.static.nn.batch_norm, paddle.static.nn.layer_norm, paddle.concat):
        with pytest.raises(TypeError):
            function(tensor)


def test_names_of_the_internals() -> None:
    from framework.paddle.base.backward import _strip_grad_suffix_
    from framework.paddle.base.reader import use_pinned_memory
    from framework.paddle.dataset.common import _check_exists_and_download
    from framework.paddle.nn.clip import _allow_pure_fp16_global_norm_clip

    assert [_strip_grad_suffix_(n) for n in ("x@GRAD", "y@GRAD@RENAME@1", "grad/z@GRAD")] == ["x", "y", "z"]
    assert use_pinned_memory() is None and use_pinned_memory(True) is None and use_pinned_memory() is True
    assert not _allow_pure_fp16_global_norm_clip(True) and _allow_pure_fp16_global_norm_clip(False)
    assert _check_exists_and_download(__file__, "", "", "") == __file__
    with pytest.raises(ValueError, match="auto download disabled"):
        _check_exists_and_download(None, "", "", "", download=False)
    with pytest.raises(TypeError, match="must be a Tensor"):
        paddle.is_integer(np.ones(1))  # type: ignore[arg-type]


def test_sizes_may_be_tensors_of_one_element() -> None:
    size = paddle.full([1], 2, "int32")
    assert paddle.zeros([size, 3]).shape == [2, 3]  # type: ignore[list-item]
    images = paddle.arange(8, dtype="float32").reshape([1, 1, 2, 2, 2])
    area = paddle.nn.functional.interpolate(images, [1, 2, 1], mode="area", data_format="NCDHW")
    assert area.flatten().tolist() == [2.5, 4.5]


def test_losses_refuse_an_unknown_reduction_first(static: None) -> None:
    with pytest.raises(ValueError, match="reduction"):
        paddle.nn.functional.hinge_embedding_loss(np.ones(2), np.ones(2), reduction="reduce_mean")


def test_random_numbers_refuse_shapes_and_types_in_static_programs(static: None) -> None:
    with pytest.raises(TypeError, match="'shape' of paddle"):
        paddle.randn(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="'dtype' of paddle"):
        paddle.uniform([2], "int32")
    assert paddle.normal(0.0, 1.0).shape == (1,)


def test_optimizers_know_the_type_of_their_parameters() -> None:
    assert paddle.optimizer.Adam(parameters=paddle.nn.Linear(1, 1).parameters())._dtype == paddle.float32


def test_constants_among_the_specs_of_a_saved_layer(tmp_path: Path) -> None:
    class Scaled(paddle.nn.Layer):
        def forward(self, inputs: dict, scaled: bool = False, factor: int = 1) -> paddle.Tensor:
            return inputs["x"] * factor if scaled else inputs["x"]

    spec = paddle.static.InputSpec([None, 2], name="x")
    layer = paddle.jit.to_static(Scaled(), input_spec=[{"x": spec}, True, 3])
    paddle.jit.save(layer, str(tmp_path / "scaled"))
    assert paddle.jit.load(str(tmp_path / "scaled"))(paddle.ones([1, 2])).tolist() == [[3, 3]]
    with pytest.raises(ValueError, match="False is not True"):
        paddle.jit.save(layer, str(tmp_path / "other"), input_spec=[{"x": spec}, False, 3])


def test_schedules_refuse_settings_of_another_class() -> None:
    with pytest.raises(TypeError, match="lr_lambda must be a function"):
        paddle.optimizer.lr.LambdaDecay(0.1, "test")
    with pytest.raises(TypeError, match="step_size must be an int"):
        paddle.optimizer.lr.StepDecay(0.1, "test")


def test_results_of_inner_layers() -> None:
    from framework.paddle.vision.models._utils import IntermediateLayerGetter

    class Small(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.head = paddle.nn.Conv2D(1, 2, 1), paddle.nn.Linear(8, 3)
            self.unused = paddle.nn.Linear(5, 5)

    found = IntermediateLayerGetter(Small(), {"conv": "features", "head": "scores"})(
        paddle.ones([1, 1, 2, 2])
    )
    assert {name: value.shape for name, value in found.items()} == {
        "features": [1, 2, 2, 2],
        "scores": [1, 3],
    }
    with pytest.raises(ValueError, match="not present in model: absent"):
        IntermediateLayerGetter(Small(), {"absent": "x"})


def test_buffers_are_no_parameters_and_have_names() -> None:
    layer = paddle.nn.Linear(1, 1)
    for name, kind, problem in ((1, TypeError, "should be a string"), ("", KeyError, "can not be empty")):
        with pytest.raises(kind, match=f"name of buffer {problem}"):
            layer.register_buffer(name, paddle.ones([1]))  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="name of buffer can not contain"):
        layer.register_buffer("a.b", paddle.ones([1]))
    with pytest.raises(TypeError, match=r"buffer should be a Paddle\.Tensor"):
        layer.register_buffer("other", layer.weight)
    holder = paddle.nn.Sequential(paddle.nn.ReLU())
    for name in ("0", "forward"):
        with pytest.raises(KeyError, match=f"'{name}' already exists"):
            holder.register_buffer(name, paddle.ones([1]))
        with pytest.raises(KeyError, match=f"'{name}' already exists"):
            holder.add_parameter(name, layer.weight)


def test_a_sublayer_may_have_the_name_of_an_attribute() -> None:
    layer = paddle.nn.Layer()
    layer.head = None
    assert layer.add_sublayer("head", paddle.nn.Linear(1, 1)) is layer.sublayers()[0]
    assert layer.head is None and list(layer.state_dict()) == ["head.weight", "head.bias"]


def test_tuning_is_recorded() -> None:
    from framework.paddle.incubate import autotune

    autotune.set_config({"layout": {"enable": True}})
    assert autotune.use_layout_autotune() and paddle.base.core.use_layout_autotune()  # type: ignore[attr-defined]
    with pytest.warns(UserWarning, match="`enable` should be bool, but received int"):
        autotune.set_config({"layout": {"enable": 1}})
    with pytest.warns(UserWarning, match="Load config error"):
        autotune.set_config("absent.json")
    autotune.disable_layout_autotune()
    assert not autotune.use_layout_autotune()


def test_gradients_stop_at_one_tensor() -> None:
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    y = x * 2
    (gradient,) = paddle.grad([y * x], [x], no_grad_vars=y)
    assert gradient is not None and gradient.tolist() == [2, 4]


def test_clipping_leaves_out_what_has_no_gradient(static: None) -> None:
    block = paddle.static.default_main_program().global_block()
    assert block.create_parameter([2], "float32", "weight") is block.var("weight")
    paddle.disable_static()
    weight, other = paddle.nn.Linear(1, 1).parameters()
    pairs = paddle.nn.ClipGradByValue(0.5)([(weight, paddle.ones([1, 1])), (other, None)])
    assert [(parameter.name, gradient.item()) for parameter, gradient in pairs] == [(weight.name, 0.5)]


def test_the_memory_of_a_tensor_is_read_and_set_through_its_value() -> None:
    tensor = paddle.to_tensor([[1.0, 2.0]])
    memory = tensor.value().get_tensor()
    assert np.array(memory).tolist() == [[1, 2]] and memory.shape() == [1, 2] and memory._is_initialized()
    assert memory._dtype() == paddle.float32
    memory.set(np.array([[5, 6]], np.float32), paddle.CPUPlace())
    assert tensor.numpy().tolist() == [[5, 6]]
    assert tensor.block.idx == paddle.nn.Linear(2, 3).weight.block.idx == 0
