"""What Paddle's tests of 2023 use of numpy 1 and numpy 2 does not have any more."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

import numpy as np


def install_numpy_names() -> None:
    """Let `np.reshape(x, newshape=…)` and names that numpy 2 dropped mean what they did, where they are missing."""
    if "newshape" not in inspect.signature(np.reshape).parameters:
        np.reshape = _with_new_shape(np.reshape)
    renamed = {"NINF": -np.inf, "PINF": np.inf, "bool8": np.bool_, "float_": np.float64, "cast": _Cast()}
    for name, value in renamed.items():
        if not hasattr(np, name):
            setattr(np, name, value)
    if not hasattr(np, "trapz"):
        np.trapz = np.trapezoid  # type: ignore[attr-defined]


def _with_new_shape(reshape: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    @functools.wraps(reshape)
    def call(*args: object, **kwargs: object) -> np.ndarray:
        if "newshape" in kwargs:
            kwargs["shape"] = kwargs.pop("newshape")
        return reshape(*args, **kwargs)

    return call


class _Cast:
    """np.cast["int32"](x)."""

    def __getitem__(self, dtype: str) -> Callable[[object], np.ndarray]:
        return lambda value: np.asarray(value).astype(dtype)
