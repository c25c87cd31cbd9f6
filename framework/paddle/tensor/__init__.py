"""paddle.tensor: operations by the places where Paddle keeps them: `paddle.tensor.full`, `paddle.tensor.math.add`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle import ops
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor as Tensor

globals().update(ops.discover())


def fill_constant(
    shape: object,
    dtype: object,
    value: object,
    force_cpu: bool = False,
    out: Tensor | None = None,
    name: str | None = None,
) -> Tensor:
    """A Tensor of one value, as `paddle.full`; `out` takes the values."""
    result = globals()["full"](shape, value, dtype)
    return result if out is None else globals()["assign"](result, out)


if not TYPE_CHECKING:
    _elsewhere = _resolver(__name__)

    def __getattr__(name: str) -> object:
        """In-place forms are methods of Tensor."""
        if name.endswith("_") and not name.startswith("_") and hasattr(Tensor, name):
            return getattr(Tensor, name)
        return _elsewhere(name)
