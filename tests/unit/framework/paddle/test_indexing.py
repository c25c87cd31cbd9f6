"""x[...] and x[...] = value of framework.paddle, against numpy and against gradients counted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import ShapeError, TraceError
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.ops import indexing

VALUES = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
MASK = VALUES % 3 == 0
ALL = slice(None)
# What numpy and Paddle read alike.
ALIKE = {
    "int": 0,
    "negative int": -1,
    "two ints": (1, 2),
    "slice": (ALL, slice(1, 3)),
    "to the end": (ALL, slice(1, 100)),
    "from the end": (ALL, slice(-2, -1)),
    "nothing": (ALL, slice(2, 1)),
    "backwards": (ALL, slice(None, None, -1)),
    "step": (..., slice(1, 5, 2)),
    "step back": (ALL, ALL, slice(3, 0, -2)),
    "int and slices": (1, slice(0, 2), ALL, slice(1, 4)),
    "ellipsis in the middle": (0, ..., slice(1, 3)),
    "new axes": (None, ALL, None, 0),
    "new axis last": (..., None),
    "list": [1, 0],
    "negative positions": np.array([-1, 0]),
    "two arrays": (np.array([0, 1]), np.array([2, 1])),
    "arrays apart": (np.array([0, 1]), ALL, np.array([2, 1])),
    "arrays broadcast": (np.array([[0], [1]]), np.array([0, 2, 1])),
    "array and slice": (ALL, np.array([1, 0]), slice(1, 3)),
    "mask of one axis": (ALL, np.array([True, False, True])),
    "mask and array": (ALL, np.array([True, False, True]), np.array([3, 0])),
    "mask of all": MASK,
    "mask last": (..., np.array([True, False, True, True, False])),
    "empty list": [],
}


def as_paddle(item: Any) -> Any:
    """Arrays as Tensors."""
    if isinstance(item, tuple):
        return tuple(as_paddle(part) for part in item)
    return Tensor(item) if isinstance(item, np.ndarray) else item


@pytest.mark.parametrize("case", ALIKE)
def test_reads_like_numpy_with_its_gradient(case: str) -> None:
    item = ALIKE[case]
    x = Tensor(VALUES, stop_gradient=False)
    part = x[as_paddle(item)]
    np.testing.assert_array_equal(part.numpy(), VALUES[item])
    weights = np.arange(part.size, dtype=np.float32).reshape(part.shape) + 1
    expected = np.zeros_like(VALUES)
    np.add.at(expected, item, weights)
    part.backward(Tensor(weights))
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), expected)


@pytest.mark.parametrize("case", ALIKE)
def test_assigns_like_numpy_with_both_gradients(case: str) -> None:
    item = ALIKE[case]
    new = VALUES[item] * 0.5 + 7
    expected = VALUES.copy()
    expected[item] = new
    leaf, value = Tensor(VALUES, stop_gradient=False), Tensor(new, stop_gradient=False)
    x = leaf * 1.0
    x[as_paddle(item)] = value
    np.testing.assert_array_equal(x.numpy(), expected)
    weights = np.arange(120, dtype=np.float32).reshape(VALUES.shape) + 1
    x.backward(Tensor(weights))
    assert leaf.grad is not None and value.grad is not None
    kept = weights.copy()
    kept[item] = 0
    np.testing.assert_array_equal(leaf.grad.numpy(), kept)
    np.testing.assert_array_equal(value.grad.numpy(), weights[item])


def test_single_positions_are_taken_before_arrays() -> None:
    # numpy would put the axis of the array first.
    np.testing.assert_array_equal(Tensor(VALUES)[0, :, [1, 2]].numpy(), VALUES[0][:, [1, 2]])


def test_positions_in_a_loop_are_one_program() -> None:
    x = Tensor(VALUES)
    before = len(indexing._getters)
    for i in range(2):
        np.testing.assert_array_equal(x[i, :, i : i + 2].numpy(), VALUES[i, :, i : i + 2])
    (plan,) = list(indexing._getters)[before:] or [indexing._plan(x, (0, ALL, slice(0, 2)))[0]]
    assert indexing._getters[plan].forward._cache_size() == 1  # type: ignore[attr-defined]


def test_assigning_through_a_mask_needs_no_positions_for_a_number() -> None:
    x, scale = Tensor([1.0, -2.0, 3.0, -4.0], stop_gradient=False), Tensor(5.0, stop_gradient=False)
    y = x * 1.0
    y[y < 0.0] = scale
    assert y.tolist() == [1.0, 5.0, 3.0, 5.0]
    y.backward()
    assert x.grad is not None and scale.grad is not None
    assert x.grad.tolist() == [1.0, 0.0, 1.0, 0.0]
    assert scale.grad.item() == 2.0


def test_values_take_the_type_of_the_tensor() -> None:
    x = Tensor(np.zeros(3, np.int64))
    x[0] = 2.7
    x[1:] = Tensor([1.5, -1.5])
    assert x.tolist() == [2, 1, -1]
    assert x.dtype == "int64"


def test_a_leaf_that_wants_gradients_is_not_changed() -> None:
    x = Tensor([1.0, 2.0], stop_gradient=False)
    with pytest.raises(RuntimeError, match="cannot be changed in place"):
        x[0] = 5.0
    assert x.tolist() == [1.0, 2.0]


def test_iterates_over_the_first_axis() -> None:
    rows = list(Tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert [row.tolist() for row in rows] == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(TypeError, match="0-D"):
        list(Tensor(1.0))


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (5, "axis 0 has 2 elements"),
        ((0, 0, 0, 0, 0), "there is no axis 4"),
        ([0, 7], "axis 0 has 2 elements"),
        (np.array([True, False, True]), "mask has another shape"),
    ],
)
def test_what_lies_outside_is_an_index_error(item: Any, message: str) -> None:
    with pytest.raises(IndexError, match=message):
        Tensor(VALUES)[as_paddle(item)]


def test_wrong_indices_and_values_say_what_came() -> None:
    with pytest.raises(ShapeError, match="this is no index"):
        Tensor(VALUES)[1.0]
    with pytest.raises(ShapeError, match=r"shape \[3\] for a part of shape \[3, 4, 5\]"):
        Tensor(VALUES)[0] = Tensor([1.0, 2.0, 3.0])


def test_a_mask_is_no_index_under_a_trace() -> None:
    import jax

    def select(values: jax.Array) -> jax.Array:
        x = paddle.Tensor(values)
        return x[x > 0.0]._value

    with pytest.raises(TraceError, match="no values yet"):
        jax.jit(select)(np.ones(3, np.float32))


def test_positions_of_no_numbers_gather_the_whole_for_each() -> None:
    """Source: Paddle 2.6.2, values and gradients."""
    x = paddle.to_tensor(np.arange(6, dtype=np.float32).reshape(2, 3), stop_gradient=False)
    picked = paddle.gather_nd(x, paddle.to_tensor(np.zeros((2, 0), np.int32)))
    np.testing.assert_array_equal(picked.numpy(), np.stack([x.numpy(), x.numpy()]))
    picked.sum().backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), np.full((2, 3), 2))
    assert paddle.gather_nd(x, paddle.to_tensor(np.zeros((0,), np.int32))).shape == [2, 3]
