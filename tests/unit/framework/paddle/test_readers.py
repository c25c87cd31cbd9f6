"""`paddle.base.reader` and `paddle.base.lod_tensor`: batches of generators; the values are those of Paddle 2.6.2."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from framework import paddle
from framework.paddle import base
from framework.paddle.base.core import EOFException
from framework.paddle.base.lod_tensor import create_lod_tensor, create_random_int_lodtensor
from framework.paddle.base.reader import DataLoader, PyReader


@pytest.fixture
def image() -> Iterator[paddle.static.Variable]:
    paddle.enable_static()
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        yield paddle.static.data("image", [None, 2], "float64")
    paddle.disable_static()


def samples() -> Iterator[tuple[np.ndarray]]:
    for number in range(5):
        yield (np.full(2, number / 3),)


def test_a_loader_gives_what_an_executor_is_fed_with(image: paddle.static.Variable) -> None:
    loader = DataLoader.from_generator([image], capacity=2)
    loader.set_sample_generator(samples, 2, places=paddle.CPUPlace())
    total = paddle.sum(image)
    executor = paddle.static.Executor()
    batches = list(loader())
    assert [batch[0]["image"].shape() for batch in batches] == [[2, 2], [2, 2]]
    totals = [executor.run(feed=batch, fetch_list=[total])[0] for batch in batches]
    np.testing.assert_allclose(totals, [2 / 3, 10 / 3], rtol=1e-15)


def test_a_program_reads_its_batches_itself(image: paddle.static.Variable) -> None:
    reader = PyReader([image], capacity=2, iterable=False)
    reader.decorate_batch_generator(lambda: iter([[np.ones((1, 2))], [np.ones((2, 2))]]))
    total = paddle.sum(image)
    executor = paddle.static.Executor()
    for _ in range(2):
        reader.start()
        assert [executor.run(fetch_list=[total])[0] for _ in range(2)] == [2, 4]
        with pytest.raises(EOFException, match="no next data"):
            executor.run(fetch_list=[total])
        reader.reset()


def test_dynamic_mode_gives_tensors() -> None:
    loader = DataLoader.from_generator(capacity=2, return_list=True)
    loader.set_sample_list_generator(lambda: iter([list(samples())]))
    ((batch,),) = list(loader)
    assert isinstance(batch, paddle.Tensor) and batch.shape == [5, 2] and batch.dtype == paddle.float64
    with pytest.raises(ValueError, match="give value to capacity"):
        DataLoader.from_generator()


def test_errors_of_a_generator_reach_the_caller() -> None:
    def failing() -> Iterator[list[np.ndarray]]:
        yield [np.ones(1)]
        raise KeyError("absent")

    loader = DataLoader.from_generator(capacity=2, return_list=True)
    with pytest.raises(SystemError, match="reader raises an exception: 'absent'"):
        list(loader.set_batch_generator(failing))
    with pytest.raises(SystemError, match="nested lists have different lengths"):
        list(loader.set_batch_generator(lambda: iter([[[[1], [1, 2]]]])))


def test_lengths_of_sequences() -> None:
    tensor = create_lod_tensor([[1, 2, 3], [4, 5]], [[3, 2]], base.CPUPlace())
    assert tensor.shape() == [5, 1] and tensor.lod() == [[0, 3, 5]]
    assert base.io.DataLoader is DataLoader  # type: ignore[attr-defined]
    tensor.set_recursive_sequence_lengths([[1, 1], [3, 2]])
    assert tensor.has_valid_recursive_sequence_lengths()
    with pytest.raises(ValueError, match="must add up"):
        tensor.set_recursive_sequence_lengths([[3], [3, 2]])
    with pytest.raises(AssertionError, match="do not match"):
        create_lod_tensor([[1, 2, 3]], [[2]], base.CPUPlace())
    assert paddle.to_tensor(tensor).dtype == paddle.int64
    drawn = create_random_int_lodtensor([[2, 3]], [4], None, 0, 1)
    assert drawn.shape() == [5, 4] and set(np.unique(drawn)) <= {0, 1}


def test_inputs_that_are_not_fed_come_from_the_scope(image: paddle.static.Variable) -> None:
    image.persistable = True
    total = paddle.sum(image)
    executor, scope = paddle.static.Executor(), paddle.static.global_scope()
    scope.var("image").get_tensor().set(np.ones((1, 2)), paddle.CPUPlace())
    assert executor.run(fetch_list=[total])[0] == 2
    executor.run(feed={"image": np.full((1, 2), 3.0)})  # a persistable input keeps what it is fed with
    assert executor.run(fetch_list=[total], scope=scope)[0] == 6
    with paddle.static.scope_guard(paddle.static.Scope()):
        assert paddle.static.global_scope().find_var("absent") is None
        with pytest.raises(ValueError, match="has no value in this run"):
            executor.run(fetch_list=[total])
    weight = paddle.static.create_parameter([2], "float32")
    assert weight is not None
    scope.var(weight.name).get_tensor().set(np.array([4, 5], np.float32), None)
    assert weight.tolist() == [4, 5]


def test_gradients_go_into_the_program_whose_variable_is_asked_for(image: paddle.static.Variable) -> None:
    image.stop_gradient = False
    squares = image * image
    clone = paddle.static.default_main_program().clone()
    y = clone.global_block().var(squares.name)
    start = clone.global_block().create_var("start", [1, 2], "float64", persistable=True)
    (gradient,) = paddle.static.gradients(y, clone.global_block().var("image"), start)
    feed = {"image": np.ones((1, 2)), "start": np.array([[1.0, 2.0]])}
    assert paddle.static.Executor().run(clone, feed, [gradient])[0].tolist() == [[2, 4]]


def test_constants_begin_anew_in_each_run(image: paddle.static.Variable) -> None:
    counter = paddle.zeros([1], "int64")
    paddle.increment(counter)
    executor = paddle.static.Executor()
    assert [executor.run(fetch_list=[counter])[0].item() for _ in range(2)] == [1, 1]
