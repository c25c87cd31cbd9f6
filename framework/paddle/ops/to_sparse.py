"""Dense Tensors made sparse: methods that load `paddle.sparse` when they are first used."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.tensor import Tensor

if TYPE_CHECKING:
    from framework.paddle.sparse.tensor import SparseCooTensor, SparseCsrTensor

METHODS_ONLY = (
    *("coalesce", "cols", "crows", "indices", "nnz", "to_dense"),
    *("to_sparse_coo", "to_sparse_csr", "values"),
)


def to_sparse_coo(x: Tensor, sparse_dim: int) -> SparseCooTensor:
    """The elements (or parts of the last axes) that are not zero, by coordinates of the first axes."""
    from framework.paddle.sparse.tensor import to_sparse_coo

    return to_sparse_coo(x, sparse_dim)


def to_sparse_csr(x: Tensor) -> SparseCsrTensor:
    """The elements of a matrix or batch of matrices that are not zero, in compressed rows."""
    from framework.paddle.sparse.tensor import to_sparse_csr

    return to_sparse_csr(x)


def _of_sparse_only(name: str) -> Callable[[Tensor], None]:
    def refuse(x: Tensor) -> None:
        raise ShapeError(
            "only sparse Tensors have this",
            where=f"Tensor.{name}",
            received=f"a dense Tensor of shape {x.shape}",
            fix="make it sparse by to_sparse_coo() or to_sparse_csr()",
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Of sparse Tensors alone."
    return refuse


coalesce, cols, crows, indices, nnz, to_dense, values = map(
    _of_sparse_only, ("coalesce", "cols", "crows", "indices", "nnz", "to_dense", "values")
)
