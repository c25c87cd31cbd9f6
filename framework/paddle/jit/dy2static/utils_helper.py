"""Sizes that vary between the calls of a compiled function."""

from __future__ import annotations

from collections.abc import Sequence

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Tensor


def set_dynamic_shape(variable: Tensor, shape_list: Sequence[int]) -> None:
    """Accepted: each size is compiled for its own, and InputSpec says which of them a saved program leaves open."""


_complete(__name__)
