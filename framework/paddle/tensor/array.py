"""paddle.tensor.array: lists of Tensors. In static mode they are those of static/tensor_array.py."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from framework.paddle._kernel.errors import ArgumentTypeError
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Tensor, as_array, wrap
from framework.paddle.ops.creation import assign
from framework.paddle.static.deferred import constant
from framework.paddle.static.program import Variable, default_main_program, in_dynamic_mode
from framework.paddle.static.tensor_array import TensorArray


def array_length(array: list[Tensor]) -> int | Tensor:
    """How many Tensors a list has; a variable in static mode."""
    _check(isinstance(array, list if in_dynamic_mode() else TensorArray), "array_length", "array", array)
    if isinstance(array, TensorArray) and array.variable is not None:
        return array.append_length()
    return len(array) if in_dynamic_mode() else wrap(as_array(np.array([len(array)], np.int64)))


def array_read(array: list[Tensor], i: Tensor) -> Tensor:
    """The Tensor at this position."""
    _check(isinstance(array, list if in_dynamic_mode() else TensorArray), "array_read", "array", array)
    position = _position(i, "array_read")
    if isinstance(array, TensorArray) and array.is_of_run(position):
        return array.append_read(i)
    assert position is not None
    return array[position]


def array_write(x: Tensor, i: Tensor, array: list[Tensor] | None = None) -> list[Tensor]:
    """Put a Tensor at this position of the list, or behind its last; returns the list, a new one by default."""
    _check(isinstance(x, Tensor), "array_write", "x", x)
    position = _position(i, "array_write")
    array = create_array(x.dtype) if array is None else array
    _check(isinstance(array, list if in_dynamic_mode() else TensorArray), "array_write", "array", array)
    if not isinstance(array, TensorArray):
        assert position is not None and position <= len(array), (
            f"array_write: position {position} is behind the end of a list of {len(array)} Tensors"
        )
        array[position : position + 1] = [x]
    elif array.is_of_run(position):
        array.append_write(x, i)
    else:
        assert position is not None
        array.put(position, assign(x))  # as it is now, whatever becomes of it
    return array


def create_array(dtype: object, initialized_list: Sequence[Tensor] | None = None) -> list[Tensor]:
    """A list of these Tensors.

    Raises:
        TypeError: they are no list or tuple of Tensors.
    """
    tensors = [] if initialized_list is None else initialized_list
    if not isinstance(tensors, list | tuple) or not all(isinstance(one, Tensor) for one in tensors):
        raise TypeError(
            f"Require type(initialized_list) should be list/tuple of Tensors, but received {tensors!r:.80}"
        )
    if in_dynamic_mode():
        return list(tensors)
    return TensorArray(tensors, dtype)


def _position(i: Tensor, function: str) -> int | None:
    """The position; None: it is not known before the program runs."""
    _check(isinstance(i, Tensor), function, "i", i)
    if in_dynamic_mode():
        assert i.shape == [1], f"{function}: the shape of 'i' must be [1] in dynamic mode, received {i.shape}"
    if not isinstance(i, Variable):
        return int(i.numpy().item())
    if i.dtype.name != "int64":
        raise ArgumentTypeError("'i' must be int64", where=function, received=i.dtype.name)
    number = constant(default_main_program(), i)
    return None if number is None else int(number.item())


def _check(fits: bool, function: str, name: str, value: object) -> None:
    if not fits and in_dynamic_mode():
        raise AssertionError(
            f"{function}: '{name}' must be a {'list' if name == 'array' else 'Tensor'}, received {type(value).__name__}"
        )
    if not fits:
        allowed = "what create_array gives" if name == "array" else "a variable"
        raise ArgumentTypeError(f"'{name}' must be {allowed}", where=function, received=type(value).__name__)


def tensor_array_to_tensor(
    input: list[Tensor], axis: int = 1, use_stack: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The Tensors of a list joined along an axis, or stacked at a new one, and their sizes at it."""
    from framework import paddle

    if isinstance(input, TensorArray) and input.variable is not None:
        return input.append_join(axis, use_stack)
    if in_dynamic_mode():
        assert isinstance(input, list), "The 'input' in tensor_array_to_tensor must be list"
    elif not isinstance(input, list) or not all(isinstance(one, Tensor) for one in input):
        raise ArgumentTypeError(
            "'input' must be a list of variables", where="tensor_array_to_tensor", received=f"{input!r:.60}"
        )
    sizes = np.array([int(one.shape[axis]) for one in input], np.int64 if in_dynamic_mode() else np.int32)
    return (paddle.stack if use_stack else paddle.concat)(input, axis), wrap(as_array(sizes))


_complete(__name__)
