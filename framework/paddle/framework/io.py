"""paddle.framework.io: helpers of `paddle.save` and `paddle.load` that packages call."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable

import numpy as np

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Tensor, as_array, wrap


def _parse_every_object(
    obj: object, condition_func: Callable[[object], bool], convert_func: Callable[[object], object]
) -> object:
    """`obj` with what the condition takes in it converted; lists and dicts change in place.

    Raises:
        TypeError: it holds another kind of collection.
    """
    if condition_func(obj):
        return convert_func(obj)
    if isinstance(obj, dict | list) and type(obj) in (dict, OrderedDict, list):
        for key in range(len(obj)) if isinstance(obj, list) else list(obj):
            obj[key] = _parse_every_object(obj[key], condition_func, convert_func)
        return obj
    if isinstance(obj, tuple | set) and type(obj) in (tuple, set):
        items = _parse_every_object(list(obj), condition_func, convert_func)
        return type(obj)(items)  # type: ignore[arg-type]
    if isinstance(obj, Iterable) and not isinstance(obj, str | np.ndarray | Tensor):
        raise TypeError(
            f"The iteratable objects supported are tuple, list, dict, OrderedDict, string. But received {type(obj)}."
        )
    return obj


def _transformed_from_lodtensor(obj: object) -> bool:
    """Whether something in a file was a Tensor of a program: it is an array there."""
    return isinstance(obj, np.ndarray)


def _to_LodTensor(ndarray: np.ndarray) -> Tensor:
    """A Tensor of an array, for a program. Raises: TypeError: it is none."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"Type of `ndarray` should be numpy.ndarray, but received {type(ndarray)}.")
    return wrap(as_array(ndarray))


_complete(__name__)
