"""Functions of static programs whose results have as many rows as values say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from framework import paddle
from framework.paddle.static import Executor, Program, data, program_guard


@pytest.fixture(autouse=True)
def static_mode() -> Iterator[None]:
    paddle.enable_static()
    yield
    paddle.disable_static()


NUMBERS = np.array([[1.0, 0.0], [0.0, 3.0], [4.0, 0.0]], np.float32)
COUNTS = np.array([1, 2, 2, 4], np.int64)
BOXES = np.array([[0, 0, 10, 10], [0, 0, 9, 9], [20, 20, 30, 30]], np.float32)


@pytest.mark.parametrize(
    ("function", "array", "shapes", "expected"),
    [
        (paddle.nonzero, NUMBERS, [(-1, 2)], [[[0, 0], [1, 1], [2, 0]]]),
        (lambda x: paddle.where(x > 2), NUMBERS, [(-1, 1)] * 2, [[[1], [2]], [[1], [0]]]),
        (lambda x: paddle.masked_select(x, x > 0.5), NUMBERS, [(-1,)], [[1, 3, 4]]),
        (lambda x: x[x > 0.5], NUMBERS, [(-1,)], [[1, 3, 4]]),
        (lambda x: x[x[:, 0] > 0.5, :1], NUMBERS, [(-1, 1)], [[[1], [4]]]),
        (paddle.bincount, COUNTS, [(-1,)], [[0, 1, 2, 0, 1]]),
        (lambda x: paddle.unique(x, return_counts=True), COUNTS, [(-1,)] * 2, [[1, 2, 4], [1, 2, 1]]),
        (paddle.unique_consecutive, COUNTS, [(-1,)], [[1, 2, 4]]),
        (
            paddle.nn.functional.sequence_mask,
            COUNTS,
            [(-1, -1)],
            [np.tri(5, dtype=int)[COUNTS - 1, :4].tolist()],
        ),
        (lambda x: paddle.vision.ops.nms(x, 0.5), BOXES, [(-1,)], [[0, 2]]),
        (lambda x: paddle.masked_select(x, x > 2).sum() * 2, NUMBERS, [()], [14]),
    ],
)
def test_results_have_the_rows_that_values_say(
    function: Callable[..., Any], array: np.ndarray, shapes: list[tuple[int, ...]], expected: list[object]
) -> None:
    with program_guard(Program()):
        x = data("x", [None, *array.shape[1:]], str(array.dtype))
        results = function(x)
        results = list(results) if isinstance(results, list | tuple) else [results]
        assert [tuple(result.shape) for result in results] == shapes
        fetched = Executor().run(feed={"x": array}, fetch_list=results)
        assert [one.tolist() for one in fetched] == expected
        Executor().run(feed={"x": array[:1]}, fetch_list=results)  # other rows, the same program


def test_training_goes_through_a_mask() -> None:
    with program_guard(Program()):
        x, mask = data("x", [None, 3], "float32"), data("mask", [None], "bool")
        loss = paddle.masked_select(paddle.static.nn.fc(x, 1).squeeze(-1), mask).square().mean()
        paddle.optimizer.SGD(0.1).minimize(loss)
        feed = {"x": np.eye(3, dtype="float32"), "mask": np.array([True, False, True])}
        losses = [float(Executor().run(feed=feed, fetch_list=[loss])[0]) for _ in range(3)]
    assert losses[2] < losses[1] < losses[0]


def test_wrong_arguments_are_told_when_they_are_recorded() -> None:
    with program_guard(Program()):
        with pytest.raises(TypeError, match=r"paddle\.bincount"):
            paddle.bincount(data("x", [4], "float32"))
        with pytest.raises(ValueError):
            paddle.bincount(data("y", [4, 2], "int64"))


def test_parameters_belong_to_the_program_before_an_operation_reads_them() -> None:
    with program_guard(program := Program()):
        layer = paddle.nn.Linear(2, 3)
    assert program.all_parameters() == [layer.weight, layer.bias]
    variable = paddle.static.global_scope().find_var(layer.weight.name)
    assert variable is not None
    variable.get_tensor().set(np.full((2, 3), 2, "float32"), paddle.CPUPlace())
    np.testing.assert_array_equal(np.asarray(layer.weight._value), np.full((2, 3), 2, "float32"))


@pytest.mark.parametrize("time_major", [False, True])
def test_recurrent_layers_begin_with_zeros_for_a_batch_of_unknown_size(time_major: bool) -> None:
    array = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    with program_guard(Program()):
        lstm = paddle.nn.LSTM(4, 5, 2, time_major=time_major)
        cell = paddle.nn.GRUCell(4, 5)
        x = data("x", [None, None, 4], "float32")
        results = [lstm(x)[0], cell(x[0])[0]]
        fetched = Executor().run(feed={"x": array}, fetch_list=results)
    paddle.disable_static()
    expected = [lstm(paddle.to_tensor(array))[0], cell(paddle.to_tensor(array[0]))[0]]
    for one, other in zip(fetched, expected, strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-5, atol=1e-6)
