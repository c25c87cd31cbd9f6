"""The sizes that a Tensor of a traced function holds: of `paddle.shape(x)`, and of what is computed from it.

Its values are the trace's, which Python cannot read. So what has looked at sizes carries them along as numbers, or as
sizes that are free in a saved program (`Tensor._sizes`), through the few operations that programs apply to them; a
setting that decides a shape takes them from there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import numpy as np
from jax.core import Tracer
from jax.errors import InconclusiveDimensionOperation

from framework.paddle._kernel.compiled import Compiled
from framework.paddle._kernel.free_sizes import is_free_size
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.tensor import Tensor

_MOST = 64  # elements that are carried along


def _concat(*arrays: np.ndarray, axis: int) -> np.ndarray:
    joined = [array for array in arrays if array.shape != (0,)]  # an empty Tensor [0] goes with every shape
    return np.concatenate(joined or arrays, axis)


def _stack(*arrays: np.ndarray, axis: int) -> np.ndarray:
    return np.stack(arrays, axis)


def _as_it_is(array: np.ndarray, *others: np.ndarray) -> np.ndarray:
    return array


_JOINING = ("concat", "stack")  # along an axis, which is a setting
_FUNCTIONS: dict[str, Callable[..., object]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "neg": operator.neg,
    "concat": _concat,
    "stack": _stack,
    **dict.fromkeys(("cast", "assign", "reshape", "squeeze", "unsqueeze", "flatten"), _as_it_is),
}


def hold_sizes(tensor: Tensor, sizes: Sequence[object]) -> Tensor:
    """Let a Tensor of a traced function carry the sizes that it holds along."""
    if mode.watcher is not None and mode.recorder is None:
        tensor._sizes = np.array([*sizes, None], object)[:-1].reshape(tensor._array.shape)
    return tensor


def hold_integers(tensor: Tensor, numbers: object) -> Tensor:
    """As `hold_sizes`, of a Tensor that Python's or numpy's integers were made into."""
    if mode.watcher is None or isinstance(numbers, Tensor) or tensor._array.dtype.kind not in "iu":
        return tensor
    listed = numbers if isinstance(numbers, list | tuple) else np.asarray(numbers).ravel().tolist()
    fits = len(listed) == tensor._array.size <= _MOST and all(isinstance(n, int) for n in listed)
    return hold_sizes(tensor, listed) if fits else tensor


def carry_sizes(compiled: Compiled, args: Sequence[object], out: Tensor) -> None:
    """Give the result of an operation the sizes that it has by those of its inputs, where they are known."""
    function = _FUNCTIONS.get(compiled.name)
    if function is None or not any(isinstance(arg, Tensor) and arg._sizes is not None for arg in args):
        return
    numbers = [_numbers(arg) for arg in args]
    if any(one is None for one in numbers) or out._array.size > _MOST:
        return
    settings = {"axis": np.asarray(compiled.settings["axis"]).item()} if compiled.name in _JOINING else {}
    try:
        if out._array.dtype.kind == "f":  # as the program computes: half of a size may be a fraction
            numbers = [_rounded(one, out._array.dtype) for one in numbers if one is not None]
        sizes = _rounded(np.asarray(function(*numbers, **settings), object), out._array.dtype)
        out._sizes = sizes.reshape(out._array.shape)
    except (ArithmeticError, TypeError, ValueError, InconclusiveDimensionOperation):
        return  # such as half of a free size: it is no size


def _rounded(numbers: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Numbers as an array of the type holds them; sizes that are free stay."""
    rounded = [n if is_free_size(n) else dtype.type(n).item() for n in numbers.ravel()]
    return np.array([*rounded, None], object)[:-1].reshape(numbers.shape)


def _numbers(arg: object) -> np.ndarray | None:
    if isinstance(arg, Tensor):
        if arg._sizes is not None or isinstance(arg._array, Tracer) or arg._array.size > _MOST:
            return arg._sizes
        return np.asarray(arg._array).astype(object)
    return np.array(arg, object) if isinstance(arg, int | float | np.generic) else None
