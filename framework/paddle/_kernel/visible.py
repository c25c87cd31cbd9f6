"""Values that a check may look at before an operation runs."""

from __future__ import annotations

import jax
import numpy as np
from jax.core import Tracer

from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.tensor import Tensor

# So many values are looked at before a program runs; more, or those of another device, would make it wait.
_VISIBLE = 8192


def visible_integers(tensor: object) -> np.ndarray | None:
    """The values of a Tensor of integers where looking at them costs nothing; else None."""
    if not isinstance(tensor, Tensor) or mode.routed:
        return None
    value = tensor._value
    if (
        isinstance(value, Tracer)
        or value.dtype.kind not in "iu"
        or not 0 < value.size <= _VISIBLE
        or jax.default_backend() != "cpu"
    ):
        return None
    return np.asarray(value)
