"""paddle.base.variable_index: reading and setting elements of variables as functions."""

from __future__ import annotations

from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.ops.indexing import getitem as _getitem_static
from framework.paddle.ops.indexing import setitem as _set_elements

__all__ = ["_getitem_static", "_setitem_static"]


def _setitem_static(x: Tensor, indices: object, values: TensorLike) -> Tensor:
    """A variable like `x` with these values at the indices: a static program changes no variable in place."""
    return _set_elements(x, indices, values)


_complete(__name__)
