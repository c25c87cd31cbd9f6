"""Shapes, searches, gathering, joining of framework.paddle: what Paddle does and numpy does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import ShapeError
from framework.paddle._kernel.tensor import Tensor

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def x() -> Tensor:
    return Tensor(X)


def values(result: Any) -> Any:
    return [part.tolist() for part in result] if isinstance(result, list | tuple) else result.tolist()


SHAPES = [
    (lambda: paddle.reshape(x(), [0, -1]), [2, 12]),
    (lambda: paddle.reshape(x(), [Tensor([3]), Tensor(-1)]), [3, 8]),
    (lambda: paddle.reshape(Tensor(np.zeros((0, 3), np.float32)), [0, 0]), [0, 3]),
    (lambda: x().transpose([-1, 0, 1]), [4, 2, 3]),
    (lambda: paddle.squeeze(Tensor(np.zeros((1, 3, 1))), [0, 1]), [3, 1]),
    (lambda: paddle.unsqueeze(x(), [0, -1]), [1, 2, 3, 4, 1]),
    (lambda: paddle.flatten(x(), 1, 2), [2, 12]),
    (lambda: paddle.flatten(Tensor(1.0)), [1]),
    (lambda: paddle.unflatten(x(), -1, [2, -1]), [2, 3, 2, 2]),
    (lambda: paddle.expand(x(), [5, -1, 3, 4]), [5, 2, 3, 4]),
    (lambda: paddle.tile(x(), [2, 1, 1, 3]), [2, 2, 3, 12]),
    (lambda: paddle.split(x(), [1, -1], 1)[1], [2, 2, 4]),
    (lambda: paddle.concat([x(), x()], Tensor(-1)), [2, 3, 8]),
    (lambda: paddle.concat([x(), Tensor(np.zeros(0, np.float32))]), [2, 3, 4]),
    (lambda: paddle.stack([x(), x()], -1), [2, 3, 4, 2]),
    (lambda: paddle.slice(x(), [0, 2], [-1, 1], [100, -1]), [1, 3, 2]),
    (lambda: paddle.crop(x(), [1, -1, 2], [0, 1, 1]), [1, 2, 2]),
    (lambda: paddle.unfold(x(), -1, 2, 1), [2, 3, 3, 2]),
    (lambda: paddle.gather(x(), Tensor(1), axis=1), [2, 4]),
    (lambda: paddle.nonzero(x(), as_tuple=True)[2], [23, 1]),
    (lambda: paddle.view(x(), "uint8"), [2, 3, 16]),
    (lambda: paddle.view(Tensor(np.zeros((3, 4), np.float32)), "float64"), [3, 2]),
]


@pytest.mark.parametrize("case", range(len(SHAPES)))
def test_shape(case: int) -> None:
    call, shape = SHAPES[case]
    assert call().shape == shape


RESULTS = [
    (lambda: paddle.argmax(x()), "int64", 23),
    (lambda: paddle.argmax(x(), keepdim=True, dtype="int32"), "int32", [[[23]]]),
    (lambda: paddle.argsort(Tensor([1, 2, 1, 2]), descending=True), "int64", [1, 3, 0, 2]),
    (lambda: paddle.topk(Tensor([1.0, 3.0, 3.0, 2.0]), 3)[1], "int64", [1, 2, 3]),
    (lambda: paddle.topk(Tensor([1.0, 3.0, 1.0, 2.0]), 2, largest=False)[1], "int64", [0, 2]),
    (lambda: paddle.kthvalue(Tensor([3, 1, 2]), 2)[1], "int64", 2),
    (lambda: paddle.mode(Tensor([2.0, 1.0, 1.0, 2.0, 3.0]))[1], "int64", 2),
    (lambda: paddle.where(Tensor([True, False]), Tensor([1.0, 2.0]), 0), "float32", [1.0, 0.0]),
    (lambda: paddle.searchsorted(Tensor([1, 3, 5]), Tensor([3, 6]), right=True), "int64", [2, 3]),
    (lambda: paddle.masked_select(Tensor([1, 2, 3]), Tensor([True, False, True])), "int64", [1, 3]),
    (lambda: paddle.unique(Tensor([3, 1, 3]), return_inverse=True)[1], "int64", [1, 0, 1]),
    (lambda: paddle.unique_consecutive(Tensor([1, 1, 2, 1])), "int64", [1, 2, 1]),
    (lambda: paddle.unique_consecutive(paddle.zeros([0], "int32"), return_counts=True)[0], "int32", []),
    (lambda: paddle.unique_consecutive(paddle.zeros([0, 2]), axis=0), "float32", []),
    (lambda: paddle.repeat_interleave(Tensor([5, 6]), Tensor([2, 1])), "int64", [5, 5, 6]),
    (lambda: paddle.take(Tensor([[1, 2], [3, 4]]), Tensor([-1, 0])), "int64", [4, 1]),
    (lambda: paddle.masked_fill(Tensor([1, 2]), Tensor([True, False]), 2.7), "int64", [2, 2]),
    (lambda: paddle.bincount(Tensor([0, 2]), Tensor([0.5, 1.5]), 4), "float32", [0.5, 0.0, 1.5, 0.0]),
    (lambda: paddle.histogram(Tensor([1.0, 2.0, 2.0, 5.0]), 2, 1, 3), "int64", [1, 2]),
    (lambda: paddle.shard_index(Tensor([1, 12]), 20, 2, 0), "int64", [1, -1]),
    (lambda: paddle.tensordot(x(), x(), [0, 1, 2]), "float32", float((X**2).sum())),
]


@pytest.mark.parametrize("case", range(len(RESULTS)))
def test_result_and_type(case: int) -> None:
    call, dtype, expected = RESULTS[case]
    out = call()
    assert out.dtype == dtype
    assert out.tolist() == expected


def test_scatter_replaces_or_sums_the_rows_that_it_names() -> None:
    rows, index = Tensor([[1.0], [1.0], [1.0]]), Tensor([2, 2, 0])
    updates = Tensor([[5.0], [6.0], [7.0]], stop_gradient=False)
    assert paddle.scatter(rows, index, updates).tolist() == [[7.0], [1.0], [6.0]]
    summed = paddle.scatter(rows, index, updates, overwrite=False)
    assert summed.tolist() == [[7.0], [1.0], [11.0]]  # what was there is gone
    summed.backward()
    assert updates.grad is not None
    assert updates.grad.tolist() == [[1.0], [1.0], [1.0]]


@pytest.mark.parametrize(
    ("reduce", "include_self", "expected"),
    [
        ("assign", True, [3.0, 3.0]),
        ("add", True, [14.0, 3.0]),
        ("add", False, [4.0, 3.0]),
        ("mul", True, [30.0, 3.0]),
        ("amax", True, [10.0, 3.0]),
        ("amin", False, [1.0, 3.0]),
        ("mean", True, [14 / 3, 3.0]),
        ("mean", False, [2.0, 3.0]),
    ],
)
def test_put_along_axis_combines(reduce: str, include_self: bool, expected: list[float]) -> None:
    out = paddle.put_along_axis(
        Tensor([10.0, 3.0]), Tensor([0, 0]), Tensor([1.0, 3.0]), 0, reduce, include_self
    )
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)


def test_gather_sums_the_gradients_of_a_row_that_is_taken_twice() -> None:
    rows = Tensor([[1.0], [2.0]], stop_gradient=False)
    paddle.gather(rows, Tensor([1, 1, 0])).backward(Tensor([[1.0], [10.0], [100.0]]))
    assert rows.grad is not None
    assert rows.grad.tolist() == [[100.0], [11.0]]


def test_norm_has_gradient_zero_at_zero() -> None:
    zero = Tensor([0.0, 0.0], stop_gradient=False)
    paddle.norm(zero).backward()
    assert zero.grad is not None
    assert zero.grad.tolist() == [0.0, 0.0]
    assert paddle.norm(Tensor([[1.0, -2.0], [2.0, 4.0]]), p=float("inf"), axis=[0, 1]).item() == 4.0


def test_in_place_forms_replace_the_value() -> None:
    rows = x()
    rows.reshape_([4, 6]).unsqueeze_(0)
    assert rows.shape == [1, 4, 6]
    square = Tensor(np.zeros((3, 2), np.float32))
    square.fill_diagonal_(1.0)
    assert square.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    number = Tensor([1.0, 2.0])
    paddle.where_(Tensor([True, False]), number, Tensor([8.0, 9.0]))
    for pair in ((2.0, number), (number, 2.0), (number, None)):
        with pytest.raises(ValueError, match="both Tensors"):
            paddle.where_(Tensor([True, False]), *pair)
    assert number.tolist() == [1.0, 9.0]


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: paddle.reshape(x(), [5, -1]), r"an input of shape \[2, 3, 4\]"),
    (lambda: paddle.reshape(x(), [-1, -1]), "at most one size"),
    (lambda: paddle.transpose(x(), [0, 1]), r"perm \[0, 1\]"),
    (lambda: paddle.concat([x(), Tensor(X[0])]), r"shapes \[\[2, 3, 4\], \[3, 4\]\]"),
    (lambda: paddle.concat([x(), x().astype("float64")]), "float32, float64"),
    (lambda: paddle.stack([x(), Tensor(X[0])]), "all shapes must be equal"),
    (lambda: paddle.split(x(), 2, 1), "2 parts of axis 1 with 3 elements"),
    (lambda: paddle.expand(x(), [2, 3, 5]), r"shape \[2, 3, 5\]"),
    (lambda: paddle.squeeze(x(), 3), "axis 3 of 3 dimensions"),
    (lambda: paddle.topk(x(), 5), "k=5 on axis 2"),
    (lambda: paddle.gather(x(), Tensor([0.5])), "float32"),
    (lambda: paddle.take(x(), Tensor([24])), "24 to 24 of 24 elements"),
    (lambda: paddle.bmm(x(), x()), r"shapes \[2, 3, 4\] and \[2, 3, 4\]"),
]


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_wrong_shapes_say_what_was_received(case: int) -> None:
    call, message = WRONG[case]
    with pytest.raises(ShapeError, match=message):
        call()


def test_multiplex_gives_as_many_rows_as_it_has_indices() -> None:
    inputs = [paddle.zeros([3, 2]), paddle.ones([3, 2])]
    assert paddle.multiplex(inputs, paddle.to_tensor([[1], [0]])).tolist() == [[1, 1], [0, 0]]
