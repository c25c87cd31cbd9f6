"""Models that Paddle itself saved, as layers and as programs; programs as the bytes that Paddle reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import OarError
from framework.interop.graph.paddle import load as load_graph
from framework.paddle import static
from framework.paddle.static.program_description import ProgramDesc

SAVED = Path(__file__).parents[3] / "data" / "interop" / "network"


@pytest.fixture
def static_mode() -> Iterator[None]:
    paddle.enable_static()
    with static.program_guard(static.Program(), static.Program()):
        yield
    paddle.disable_static()


def inputs_and_outputs() -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """Inputs of the saved network, and what the core computes of them."""
    graph = load_graph(f"{SAVED}.pdmodel")
    random = np.random.RandomState(0)
    inputs = {
        one.name: random.rand(*(size if isinstance(size, int) else 2 for size in one.shape or ())).astype(
            "f4"
        )
        for one in graph.inputs
    }
    out = graph(**inputs)
    return inputs, [np.asarray(one) for one in (out if isinstance(out, tuple) else (out,))]


@pytest.mark.parametrize("ending", ["", ".pdmodel"])
def test_a_model_of_paddle_is_a_layer_that_trains(ending: str) -> None:
    inputs, expected = inputs_and_outputs()
    layer = paddle.jit.load(f"{SAVED}{ending}")
    assert not layer.training and [one.name for one in layer.input_spec()] == list(inputs)
    tensors = [paddle.to_tensor(value) for value in inputs.values()]
    results = layer(*tensors)
    for result, value in zip(results if isinstance(results, list) else [results], expected, strict=True):
        np.testing.assert_allclose(result.numpy(), value, rtol=1e-5, atol=1e-6)
    first = layer(*tensors)
    loss = ((first[0] if isinstance(first, list) else first) ** 2).sum()
    loss.backward()
    assert any(parameter.grad is not None for parameter in layer.parameters())
    names = {parameter for parameter in layer.state_dict()}
    assert names == {*dict(layer.named_parameters()), *dict(layer.named_buffers())}


def test_a_model_of_paddle_is_a_program(static_mode: None) -> None:
    inputs, expected = inputs_and_outputs()
    executor = static.Executor()
    files = [Path(f"{SAVED}{ending}") for ending in (".pdmodel", ".pdiparams")]
    for loaded in (
        static.load_inference_model(str(SAVED), executor),
        static.load_inference_model(
            str(SAVED.parent), executor, model_filename=files[0].name, params_filename=files[1].name
        ),
        static.load_inference_model(
            None, executor, model_filename=files[0].read_bytes(), params_filename=files[1].read_bytes()
        ),
    ):
        program, feeds, fetches = loaded
        assert feeds == list(inputs)
        found = executor.run(program, feed=inputs, fetch_list=fetches)
        for result, value in zip(found, expected, strict=True):
            np.testing.assert_allclose(result, value, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="bytes of the program"):
        static.load_inference_model(None, executor)
    with pytest.raises(OarError):
        static.load_inference_model(str(SAVED.parent / "nothing"), executor)


def test_a_program_as_bytes_says_what_is_fed_and_fetched(static_mode: None) -> None:
    x = static.data("x", [None, 3])
    y = cast("static.Variable", static.nn.fc(x, 2, activation="relu"))
    paddle.mean(y)
    executor = static.Executor()
    executor.run(static.default_startup_program())
    value = np.arange(6, dtype="float32").reshape(2, 3)
    expected = executor.run(feed={"x": value}, fetch_list=[y])[0]
    data = static.serialize_program([x], [y])
    parameters = static.serialize_persistables([x], [y], executor)
    description = ProgramDesc()
    description.parse_from_string(data)
    kinds = [one.type() for one in description.block(0).operators]
    assert kinds == ["feed", "mul", "elementwise_add", "relu", "fetch"]
    program = static.deserialize_program(data)
    static.deserialize_persistables(program, parameters, executor)
    np.testing.assert_array_equal(executor.run(program, feed={"x": value}, fetch_list=[y.name])[0], expected)
    loaded, feeds, fetches = static.load_inference_model(
        None, executor, model_filename=data, params_filename=parameters
    )
    assert feeds == ["x"] and [one.name for one in fetches] == [y.name]
    np.testing.assert_array_equal(executor.run(loaded, feed={"x": value}, fetch_list=fetches)[0], expected)
