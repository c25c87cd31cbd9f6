"""Functions of numpy on variables of a static program: operations of the program."""

from __future__ import annotations

import numpy as np

from framework.paddle._kernel.tensor import Tensor

# What `array o variable` calls of the variable, by the name of numpy's function.
_REFLECTED = {
    **{name: f"__r{name}__" for name in ("add", "matmul")},
    **{"subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__", "power": "__rpow__"},
    **{"floor_divide": "__rfloordiv__", "remainder": "__rmod__"},
    **{"less": "__gt__", "less_equal": "__ge__", "greater": "__lt__", "greater_equal": "__le__"},
    **{"equal": "__eq__", "not_equal": "__ne__"},
}


def apply_ufunc(variable: Tensor, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
    """`np.log(variable)` is `variable.log()`, `array * variable` is `variable.__rmul__(array)`."""
    if method != "__call__" or options:
        return NotImplemented
    if len(inputs) == 1:
        return getattr(variable, ufunc.__name__, lambda: NotImplemented)()
    name = _REFLECTED.get(ufunc.__name__)
    return NotImplemented if name is None else getattr(variable, name)(inputs[0])
