"""Creation, types, random numbers and attributes of framework.paddle."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import ShapeError
from framework.paddle._kernel.tensor import Tensor


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ([1, 2], "int64"),
        ([1, 2.5], "float32"),
        (True, "bool"),
        (1 + 2j, "complex64"),
        (np.ones(2), "float64"),
        (np.float64(3.0), "float64"),
        ([np.float32(1.0)], "float32"),
        (np.int32(3), "int32"),
        (2**40, "int64"),
        ([], "float32"),
        ([Tensor([1, 2]), Tensor([3, 4])], "int64"),
    ],
)
def test_to_tensor_gives_paddles_types(value: object, dtype: str) -> None:
    assert paddle.to_tensor(value).dtype == dtype


def test_to_tensor_copies_and_stops_gradients_unless_told() -> None:
    x = paddle.to_tensor([1.0], stop_gradient=False)
    y = paddle.to_tensor(x * 2)
    assert not x.stop_gradient and y.stop_gradient and y.tolist() == [2.0]
    third = paddle.to_tensor([1 / 3], dtype="float64")  # not by way of float32
    assert third.item() == 1 / 3
    with pytest.raises(ShapeError, match="different lengths"):
        paddle.to_tensor([[1], [2, 3]])


@pytest.mark.parametrize(
    ("make", "values", "dtype"),
    [
        (lambda: paddle.arange(5), [0, 1, 2, 3, 4], "int64"),
        (lambda: paddle.arange(1, 2, 0.25), [1.0, 1.25, 1.5, 1.75], "float32"),
        (lambda: paddle.arange(5, 1, -2, dtype="int32"), [5, 3], "int32"),
        (lambda: paddle.arange(Tensor(3)), [0, 1, 2], "int64"),
        (lambda: paddle.linspace(0, 10, 5), [0.0, 2.5, 5.0, 7.5, 10.0], "float32"),
        (lambda: paddle.linspace(0, 10, 4, "int64"), [0, 3, 6, 10], "int64"),
        (lambda: paddle.logspace(0, 2, 3), [1.0, 10.0, 100.0], "float32"),
        (lambda: paddle.full([2], True), [1.0, 1.0], "float32"),
        (lambda: paddle.full([2], Tensor(3), "int32"), [3, 3], "int32"),
        (lambda: paddle.full_like(Tensor([1, 2]), 2.5), [2, 2], "int64"),
        (lambda: paddle.zeros([Tensor(1), 2]), [[0.0, 0.0]], "float32"),
        (lambda: paddle.eye(2, 3), [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], "float32"),
        (lambda: paddle.tril_indices(2, 2), [[0, 1, 1], [0, 0, 1]], "int64"),
        (lambda: paddle.diag(Tensor([1, 2]), 1, 9), [[9, 1, 9], [9, 9, 2], [9, 9, 9]], "int64"),
        (lambda: paddle.diag(Tensor([[1, 2], [3, 4]]), -1), [3], "int64"),
        (lambda: paddle.diag_embed(Tensor([[1.0, 2.0]])), [[[1.0, 0.0], [0.0, 2.0]]], "float32"),
        (lambda: paddle.shape(paddle.ones([2, 3])), [2, 3], "int32"),
        (lambda: paddle.numel(paddle.ones([2, 3])), 6, "int64"),
        (lambda: paddle.vander(Tensor([2, 3]), 3), [[4, 2, 1], [9, 3, 1]], "int64"),
        (lambda: paddle.combinations(Tensor([1, 2, 3])), [[1, 2], [1, 3], [2, 3]], "int64"),
        (lambda: paddle.renorm(Tensor([[3.0, 4.0]]), 2.0, 0, 1.0), [[0.6, 0.8]], "float32"),
    ],
)
def test_creation(make: Callable[[], Tensor], values: list, dtype: str) -> None:
    made = make()
    assert made.dtype == dtype
    np.testing.assert_allclose(made.numpy(), values, rtol=1e-6)


def test_meshgrid_and_assign_pass_gradients() -> None:
    x, y = Tensor([1.0, 2.0], stop_gradient=False), Tensor([3.0, 4.0, 5.0])
    rows, columns = paddle.meshgrid(x, y)
    assert rows.shape == columns.shape == [2, 3]
    rows.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3.0, 3.0]
    target = paddle.zeros([2])
    paddle.assign(x * 2, target)
    assert target.tolist() == [2.0, 4.0] and not target.stop_gradient


def test_cast_cuts_off_and_keeps_the_history() -> None:
    x = Tensor([1.7, -1.7], stop_gradient=False)
    assert x.astype("int32").tolist() == [1, -1]
    x.astype(paddle.float64).sum().backward()
    assert x.grad is not None and (x.grad.dtype, x.grad.tolist()) == (paddle.float32, [1.0, 1.0])
    assert x.to("float16").dtype == paddle.float16
    assert x.to("cpu", dtype="int64").dtype == paddle.int64


def test_random_numbers_repeat_and_have_their_moments() -> None:
    paddle.seed(7)
    first = paddle.rand([3])
    paddle.seed(7)
    assert paddle.rand([3]).tolist() == first.tolist() != paddle.rand([3]).tolist()
    normal = paddle.normal(Tensor([1.0, 100.0]), Tensor([0.5, 2.0]))
    assert normal.shape == [2] and normal[1] > 50
    many = paddle.randn([4000]).numpy()
    assert abs(many.mean()) < 0.1 and abs(many.std() - 1) < 0.1
    assert paddle.uniform([2], seed=3).tolist() == paddle.uniform([2], seed=3).tolist()
    whole = paddle.randint(-2, 3, [500])
    assert (whole.dtype, sorted(set(whole.tolist()))) == (paddle.int64, [-2, -1, 0, 1, 2])
    assert sorted(paddle.randperm(6).tolist()) == [0, 1, 2, 3, 4, 5]
    assert paddle.bernoulli(Tensor([0.0, 1.0])).tolist() == [0.0, 1.0]
    assert abs(paddle.poisson(paddle.full([2000], 3.0)).numpy().mean() - 3) < 0.3
    draws = paddle.multinomial(Tensor([[0.0, 1.0, 1.0]]), 2)
    assert sorted(draws[0].tolist()) == [1, 2]
    with pytest.raises(ShapeError, match="replacement"):
        paddle.multinomial(Tensor([1.0, 1.0]), 3)
    with pytest.raises(ShapeError, match="empty range"):
        paddle.randint(3, 3)


def test_random_numbers_in_place() -> None:
    x = paddle.zeros([2000])
    assert 0.4 < x.exponential_(2.0).mean() < 0.6
    assert x.uniform_(2.0, 3.0).min() >= 2.0
    assert 4.9 < x.normal_(5.0, 0.1).mean() < 5.1
    assert x.cauchy_().shape == [2000] and x.geometric_(0.5).min() > 0.0


def test_attributes_and_whole_values() -> None:
    x = paddle.ones([2, 3])
    assert x.T.shape == [3, 2] and x.dim() == x.ndimension() == 2 and x.element_size() == 4
    assert str(x.place) == "Place(cpu)" and x.strides == [3, 1] and x.is_contiguous()
    assert x.cpu() is x and paddle.is_floating_point(x) and not paddle.is_integer(x)
    assert x.fill_(2.0).tolist() == [[2.0] * 3] * 2 and x.zero_().sum() == 0.0 and x.inplace_version == 2
    x.set_value(np.ones([2, 3], np.float32))
    assert x.sum() == 6.0
    with pytest.raises(ShapeError, match="keeps the shape"):
        x.set_value(np.ones([3], np.float32))
    y = paddle.zeros([2], "int32")
    assert y.copy_(Tensor([1.5, 2.5])).tolist() == [1, 2] and y.dtype == paddle.int32
    assert paddle.tensor.math.add is paddle.add


def test_tensors_are_pickled_and_copied() -> None:
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    for other in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert other is not x and other.tolist() == [1.0, 2.0] and not other.stop_gradient
    half = pickle.loads(pickle.dumps(paddle.ones([2], "bfloat16")))
    assert half.dtype == paddle.bfloat16


def test_copies_are_named_after_what_they_copy() -> None:
    # Measured on Paddle 2.6.2, whose optimizer states are keyed by these names.
    with paddle.utils.unique_name.guard():
        layer = copy.deepcopy(paddle.nn.Linear(2, 2))
        assert [p.name for p in layer.parameters()] == ["linear_0.w_0_deepcopy_0", "linear_0.b_0_deepcopy_1"]
        assert copy.deepcopy(layer).weight.name == "linear_0.w_0_deepcopy_0_deepcopy_2"


@pytest.mark.parametrize(
    ("kind", "name"), [(bool, "bool"), (int, "int64"), (float, "float32"), (complex, "complex64")]
)
def test_types_of_python_are_types_of_paddle(kind: type, name: str) -> None:
    assert paddle.zeros([1], dtype=kind).dtype == getattr(paddle, name)


def test_sizes_may_be_tensors_of_one_axis() -> None:
    sizes = (paddle.to_tensor([2]), paddle.to_tensor([3]))
    assert paddle.uniform(shape=sizes).shape == [2, 3]
    assert paddle.zeros(list(sizes)).shape == [2, 3]


def test_one_tensor_becomes_another() -> None:
    x = paddle.to_tensor([2.0], stop_gradient=False)
    target = paddle.zeros([3])
    assert target._inplace_assign(x * x) is target  # type: ignore[attr-defined]
    target.sum().backward()
    assert (target.shape, x.grad.tolist()) == ([1], [4.0])  # type: ignore[union-attr]
