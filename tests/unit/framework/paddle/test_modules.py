"""Names where Paddle 2.6.2 keeps them besides their public places; values are Paddle 2.6.2's."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from framework import paddle


@pytest.mark.parametrize(
    "module, name, public",
    [
        ("nn.layer.activation", "ReLU", "nn.ReLU"),
        ("nn.layer.conv", "Conv2DTranspose", "nn.Conv2DTranspose"),
        ("nn.functional.activation", "relu", "nn.functional.relu"),
        ("tensor.math", "add", "add"),
        ("tensor.manipulation", "concat", "concat"),
        ("base", "Program", "static.Program"),
        ("base.framework", "Variable", "static.Variable"),
        ("base.core", "CPUPlace", "CPUPlace"),
        ("optimizer.lr", "LRScheduler", "optimizer.lr.LRScheduler"),
        ("vision.datasets.cifar", "Cifar10", "vision.datasets.Cifar10"),
        ("metric.metrics", "Accuracy", "metric.Accuracy"),
        (
            "incubate.optimizer.functional.bfgs",
            "minimize_bfgs",
            "incubate.optimizer.functional.minimize_bfgs",
        ),
        ("common_ops_import", "LayerHelper", "base.layer_helper.LayerHelper"),
    ],
)
def test_modules_of_paddle_hold_its_public_objects(module: str, name: str, public: str) -> None:
    value: object = paddle
    for attribute in public.split("."):
        value = getattr(value, attribute)
    assert getattr(importlib.import_module(f"framework.paddle.{module}"), name) is value


def test_a_module_that_is_not_here_and_a_name_that_is_not() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("framework.paddle.nn.layer.nothing")
    with pytest.raises(AttributeError, match=r"paddle\.nn\.layer\.activation\.Nothing: no such name"):
        _ = importlib.import_module("framework.paddle.nn.layer.activation").Nothing


def test_names_in_a_module_can_be_listed() -> None:
    assert "ReLU" in vars(paddle.nn.layer.activation) and len(paddle.nn.__all__) == 132
    assert paddle.vision.datasets.__all__[0] == "DatasetFolder" and len(paddle.vision.models.__all__) == 51


def test_codes_of_types_are_the_types() -> None:
    codes = paddle.base.core.VarDesc.VarType
    assert codes.FP32 is paddle.float32 and isinstance(paddle.int64, codes)
    assert paddle.base.data_feeder.convert_dtype(np.float64) == "float64"


def test_checks_of_arguments_are_for_static_mode() -> None:
    check = paddle.base.data_feeder.check_type
    check(1, "x", str, "op")
    paddle.enable_static()
    try:
        with pytest.raises(TypeError, match="The type of 'x' in op must be"):
            check(1, "x", str, "op")
    finally:
        paddle.disable_static()


def test_a_program_seed_gives_equal_parameters_until_it_is_taken_back() -> None:
    paddle.framework.random._manual_program_seed(3)
    try:
        first, second = paddle.nn.Linear(2, 3), paddle.nn.Linear(2, 3)
        np.testing.assert_array_equal(first.weight.numpy(), second.weight.numpy())
    finally:
        paddle.framework.random._manual_program_seed(0)
    assert (paddle.nn.Linear(2, 3).weight.numpy() != paddle.nn.Linear(2, 3).weight.numpy()).any()


def test_an_executor_takes_what_paddles_does() -> None:
    paddle.enable_static()
    try:
        main = paddle.static.Program()
        with paddle.static.program_guard(main):
            x = paddle.static.data("x", [2], "float32")
            y = x + 1
        feed = {"x": np.ones(2, "float32"), "unused": np.ones(1, "float32")}
        (value,) = paddle.static.Executor().run(main, feed=feed, fetch_list=[[y]])
    finally:
        paddle.disable_static()
    np.testing.assert_array_equal(value, [2, 2])


def test_readers() -> None:
    reader = paddle.reader

    def numbers():
        return iter(range(5))

    assert list(reader.firstn(reader.buffered(numbers, 2), 3)()) == [0, 1, 2]
    assert list(reader.xmap_readers(lambda x: x * x, numbers, 2, 3)()) == [0, 1, 4, 9, 16]
    assert sorted(reader.shuffle(reader.chain(numbers, numbers), 4)()) == sorted([*range(5)] * 2)
    assert list(reader.compose(numbers, numbers)())[4] == (4, 4)
    with pytest.raises(reader.ComposeNotAligned):
        list(reader.compose(numbers, lambda: iter([1]))())
    assert sorted(reader.multiprocess_reader([numbers, numbers])()) == sorted([*range(5)] * 2)

    def fails():
        yield 1
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(reader.buffered(fails, 2)())


@pytest.mark.parametrize(
    "name",
    [
        *("audio.features.layers.MFCC", "audio.functional.window.get_window", "audio.datasets.esc50.ESC50"),
        *("quantization.quanters.abs_max.FakeQuanterWithAbsMaxObserver", "nn.quant.qat.conv.QuantedConv2D"),
        *("quantization.config.QuantConfig", "quantization.base_observer.BaseObserver", "nn.quant.stub.Stub"),
    ],
)
def test_what_a_package_defines_stands_in_the_modules_of_paddle_too(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    package = module.rpartition(".")[0]
    one = getattr(importlib.import_module(f"framework.paddle.{module}"), attribute)
    assert one is getattr(importlib.import_module(f"framework.paddle.{package}"), attribute)


def test_files_are_the_packages_and_modules_that_paddle_has() -> None:
    assert importlib.import_module("framework.paddle.static.amp.decorator")
    parallel = importlib.import_module("framework.paddle.distributed.parallel")
    assert parallel.ParallelEnv is paddle.distributed.ParallelEnv
    collate = importlib.import_module("framework.paddle.io.dataloader.collate")
    assert collate.default_collate_fn is paddle.io.default_collate_fn
    for name in ("InMemoryDataset", "QueueDataset", "nothing_of_the_kind", "ps"):
        hasattr(paddle.distributed.fleet, name)  # an AttributeError at most
        hasattr(paddle.distributed, name)
    with pytest.raises(AttributeError, match="no such name"):
        _ = paddle.static.io.nothing_of_the_kind


def test_masks_of_attention_become_what_is_added() -> None:
    from framework.paddle.nn.layer.transformer import _convert_attention_mask

    assert _convert_attention_mask(None, "float32") is None
    mask = paddle.to_tensor([[True, False]])
    np.testing.assert_array_equal(_convert_attention_mask(mask, "float32").numpy(), [[0, -1e9]])  # type: ignore[union-attr]
    added = paddle.to_tensor([[0.0, -5.0]])
    assert _convert_attention_mask(added, added.dtype) is added


def test_what_paddles_own_tests_import_of_its_private_modules() -> None:
    from framework.paddle import base, pir_utils
    from framework.paddle.base import backward, core, variable_index, wrapped_decorator
    from framework.paddle.base.dygraph.base import switch_to_static_graph
    from framework.paddle.base.framework import switch_main_program
    from framework.paddle.jit import api, translated_layer

    assert base.Scope is core.Scope and translated_layer.INFER_MODEL_SUFFIX == ".pdmodel"
    assert [int(t) for t in (core.VarDesc.VarType.FP32, paddle.bfloat16)] == [5, 22]
    assert core.grad_var_suffix() == "@GRAD" == backward._append_grad_suffix_("")
    named = wrapped_decorator.wrap_decorator(lambda function: lambda x: function(x) + 1)(abs)
    assert (named(-2), named.__name__) == (3, "abs")
    assert [backward._as_list(x) for x in (None, 1, (1, 2))] == [[], [1], [1, 2]]
    double = api.dygraph_to_static_func(lambda x: x * 2)
    with api.sot_mode_guard(False):
        assert double(paddle.to_tensor(2.0)).item() == 4.0

    @switch_to_static_graph
    def set_row() -> paddle.Tensor:
        program, other = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(program):
            result = variable_index._setitem_static(paddle.zeros([2, 2]), 0, 3.0)
            assert switch_main_program(other) is program and switch_main_program(program) is other
            return paddle.static.Executor().run(program, fetch_list=[result])[0]

    assert pir_utils.test_with_pir_api(set_row)().tolist() == [[3.0, 3.0], [0.0, 0.0]]
    assert paddle.in_dynamic_mode()


def test_a_compiled_function_switches_with_its_layer() -> None:
    layer = paddle.jit.to_static(paddle.nn.Linear(2, 2))
    layer.forward.train()
    with pytest.raises(RuntimeError, match="eval"):
        layer.forward.eval()
    paddle.jit.to_static(lambda x: x).eval()
