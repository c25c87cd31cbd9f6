"""`paddle.sparse`: Tensors of which only some elements are kept. Functions of values keep the positions; gradients go
to the values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from framework import paddle
from framework.core.axes import normalize_axis
from framework.paddle._kernel.arguments import Integers
from framework.paddle._kernel.dispatch import freeze
from framework.paddle._kernel.dtypes import to_numpy
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.linalg import pca_lowrank as _pca_lowrank
from framework.paddle.ops.joining import concat as _concat
from framework.paddle.ops.shaping import parts_at, whole_numbers
from framework.paddle.sparse.tensor import (
    SparseCooTensor,
    SparseCsrTensor,
    SparseTensor,
    sparse_coo_tensor,
    sparse_csr_tensor,
    times_dense,
    to_sparse_coo,
)

__all__ = [
    "abs",
    "add",
    "addmm",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cast",
    "coalesce",
    "deg2rad",
    "divide",
    "expm1",
    "is_same_shape",
    "isnan",
    "log1p",
    "masked_matmul",
    "matmul",
    "multiply",
    "mv",
    "neg",
    "pca_lowrank",
    "pow",
    "rad2deg",
    "reshape",
    "sin",
    "sinh",
    "slice",
    "sparse_coo_tensor",
    "sparse_csr_tensor",
    "sqrt",
    "square",
    "subtract",
    "sum",
    "tan",
    "tanh",
    "transpose",
]


def _of_values(name: str) -> Callable[..., SparseTensor]:
    def apply(x: SparseTensor, name: str | None = None) -> SparseTensor:
        return x.like(function(x.values()))

    function = getattr(paddle, name)
    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"`paddle.{name}` of the values that are kept."
    return apply


abs, neg, sqrt, square = (_of_values(name) for name in ("abs", "neg", "sqrt", "square"))
sin, tan, asin, atan = (_of_values(name) for name in ("sin", "tan", "asin", "atan"))
sinh, tanh, asinh, atanh = (_of_values(name) for name in ("sinh", "tanh", "asinh", "atanh"))
deg2rad, rad2deg, expm1, log1p = (_of_values(name) for name in ("deg2rad", "rad2deg", "expm1", "log1p"))
isnan = _of_values("isnan")


def pow(x: SparseTensor, factor: float, name: str | None = None) -> SparseTensor:
    """The values to the power of a number."""
    return x.like(paddle.pow(x.values(), factor))


def cast(
    x: SparseTensor, index_dtype: object = None, value_dtype: object = None, name: str | None = None
) -> SparseTensor:
    """With positions and values of other types."""
    values = x.values() if value_dtype is None else x.values().astype(value_dtype)
    out = x.like(values)
    if index_dtype is None:
        return out
    kind = to_numpy(index_dtype)
    if isinstance(out, SparseCsrTensor):
        return SparseCsrTensor(out.compressed.astype(kind), out.columns.astype(kind), values, x.shape)
    coo = out.coo()
    return SparseCooTensor(coo.positions.astype(kind), values, x.shape, coo.is_coalesced())


def coalesce(x: SparseCooTensor, name: str | None = None) -> SparseCooTensor:
    """Positions in order, each once: values at equal positions are added."""
    return x.coalesce()


def is_same_shape(x: SparseTensor, y: SparseTensor) -> bool:
    """Whether both have one shape, sparse or not."""
    return x.shape == y.shape


def _as(layout: SparseTensor, out: SparseCooTensor) -> SparseTensor:
    return out.to_sparse_csr() if isinstance(layout, SparseCsrTensor) else out


def _same(x: SparseTensor, y: SparseTensor, where: str) -> None:
    if not (isinstance(x, SparseTensor) and type(x) is type(y)) or x.shape != y.shape:
        raise ShapeError(
            "two sparse Tensors of one layout and shape",
            where=f"paddle.sparse.{where}",
            received=f"{type(x).__name__} {x.shape} and {type(y).__name__} {y.shape}",
        )


def _together(x: SparseTensor, y: SparseTensor, sign: int, where: str) -> SparseTensor:
    _same(x, y, where)
    a, b = x.coo(), y.coo()
    values = _concat([a.values(), b.values() if sign > 0 else -b.values()])
    both = np.concatenate([a.positions, b.positions], 1)
    return _as(x, SparseCooTensor(both, values, x.shape).coalesce())


def add(x: SparseTensor, y: SparseTensor | Tensor, name: str | None = None) -> SparseTensor | Tensor:
    """x + y: an element is kept where one of them is. With a dense y the sum is dense."""
    return x.to_dense() + y if isinstance(y, Tensor) else _together(x, y, 1, "add")


def subtract(x: SparseTensor, y: SparseTensor, name: str | None = None) -> SparseTensor:
    """x - y: an element is kept where one of them is."""
    return _together(x, y, -1, "subtract")


def multiply(x: SparseTensor, y: SparseTensor | float, name: str | None = None) -> SparseTensor:
    """x * y: an element is kept where both are. `y` may be a number."""
    if isinstance(y, int | float):
        return x.like(x.values() * y)
    _same(x, y, "multiply")
    a, b = x.coo().coalesce(), y.coo().coalesce()
    _, left, right = np.intersect1d(a.flat(), b.flat(), return_indices=True)
    values = parts_at(a.values(), left, 0) * parts_at(b.values(), right, 0)
    return _as(x, SparseCooTensor(a.positions[:, left], values, x.shape, coalesced=True))


def divide(x: SparseTensor, y: SparseTensor | float, name: str | None = None) -> SparseTensor:
    """x / y with every element kept, 0 / 0 too (NaN); y may be a number, then the positions stay."""
    if isinstance(y, int | float):
        return x.like(x.values() / y)
    _same(x, y, "divide")
    every = np.indices(x.shape).reshape(x.ndim, -1)
    values = (x.to_dense() / y.to_dense()).reshape([-1])
    return _as(x, SparseCooTensor(every, values, x.shape, coalesced=True))


def matmul(x: Any, y: Any, name: str | None = None) -> Any:
    """The product of a sparse and a dense matrix (dense), or of two sparse ones (sparse)."""
    if isinstance(x, Tensor):
        return times_dense(transpose(y, [1, 0]), x.t()).t()
    if isinstance(y, Tensor):
        return times_dense(x, y)
    dense = times_dense(x, y.to_dense())
    return _as(x, to_sparse_coo(dense, dense.ndim))


def mv(x: SparseTensor, vec: Tensor, name: str | None = None) -> Tensor:
    """The product of a sparse matrix and a dense vector."""
    return times_dense(x, vec)


def addmm(
    input: Tensor, x: SparseTensor, y: Tensor, beta: float = 1.0, alpha: float = 1.0, name: str | None = None
) -> Tensor:
    """beta * input + alpha * x @ y for sparse x."""
    return input * beta + matmul(x, y) * alpha


def masked_matmul(x: Tensor, y: Tensor, mask: SparseTensor, name: str | None = None) -> SparseTensor:
    """The elements of the dense product x @ y at the positions of the sparse `mask`; the others are not computed."""
    rows, columns = mask.coo().positions
    return mask.like((parts_at(x, rows, 0) * parts_at(y.t(), columns, 0)).sum(-1))


def transpose(x: SparseTensor, perm: Sequence[int], name: str | None = None) -> SparseTensor:
    """Axis i of the result is axis perm[i] of x."""
    coo, order = x.coo(), [normalize_axis(axis, x.ndim, "paddle.sparse.transpose") for axis in perm]
    if len(coo.positions) != x.ndim or sorted(order) != list(range(x.ndim)):
        raise ShapeError(
            "perm names every axis once, and all axes are sparse",
            where="paddle.sparse.transpose",
            received=f"perm {list(perm)} for shape {x.shape} with {len(coo.positions)} sparse axes",
        )
    out = SparseCooTensor(coo.positions[order], coo.values(), [x.shape[axis] for axis in order])
    return _as(x, out)


def reshape(x: SparseTensor, shape: Sequence[int | Tensor], name: str | None = None) -> SparseTensor:
    """The same elements in another shape: 0 keeps a size, one -1 takes what is left."""
    coo = x.coo()
    sizes = [x.shape[i] if size == 0 else size for i, size in enumerate(whole_numbers(freeze(shape)))]
    if sizes.count(-1) == 1:
        known = math.prod(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = math.prod(x.shape) // max(known, 1)
    if math.prod(sizes) != math.prod(x.shape) or len(coo.positions) != x.ndim:
        raise ShapeError(
            "the shapes have different numbers of elements",
            where="paddle.sparse.reshape",
            received=f"shape {sizes} for {x.shape} with {len(coo.positions)} sparse axes",
        )
    positions = np.stack(np.unravel_index(coo.flat(), tuple(sizes))).astype(np.int64)
    return _as(x, SparseCooTensor(positions, coo.values(), sizes, coo.is_coalesced()))


def slice(
    x: SparseTensor, axes: Sequence[int], starts: Integers, ends: Integers, name: str | None = None
) -> SparseTensor:
    """From starts[i] to before ends[i] along axes[i]; negative numbers count from the end."""
    coo, sizes = x.coo(), x.shape
    positions, kept = coo.positions.copy(), np.ones(x.nnz(), bool)
    for axis, start, end in zip(
        axes, whole_numbers(freeze(starts)), whole_numbers(freeze(ends)), strict=True
    ):
        place = normalize_axis(axis, x.ndim, "paddle.sparse.slice")
        first, last, _ = np.s_[start:end].indices(x.shape[place])
        kept &= (positions[place] >= first) & (positions[place] < last)
        positions[place] -= first
        sizes[place] = max(last - first, 0)
    values = parts_at(coo.values(), np.flatnonzero(kept), 0)
    return _as(x, SparseCooTensor(positions[:, kept], values, sizes, coo.is_coalesced()))


def sum(
    x: SparseTensor,
    axis: int | Sequence[int] | None = None,
    dtype: object = None,
    keepdim: bool = False,
    name: str | None = None,
) -> SparseTensor:
    """The sums along axes (None: all, then of shape [1]), sparse again."""
    coo = x.coo()
    gone = (
        range(x.ndim)
        if axis is None
        else [normalize_axis(a, x.ndim, "paddle.sparse.sum") for a in np.ravel(axis).tolist()]
    )
    values = coo.values() if dtype is None else coo.values().astype(dtype)
    positions, sizes = coo.positions.copy(), x.shape
    dense = len(positions)  # the axis where values of several numbers begin
    if inner := [place - dense + 1 for place in gone if place >= dense]:
        values = values.sum(inner, keepdim=keepdim)
    for place in gone:
        sizes[place] = 1
        if place < dense:
            positions[place] = 0
    left = [place for place in range(x.ndim) if keepdim or place not in gone] or [0]
    rows = [place for place in left if place < dense]
    if not rows:  # what is left lies in the values of one point
        rows, left = [0], [0, *left]
    return _as(x, SparseCooTensor(positions[rows], values, [sizes[p] for p in left]).coalesce())


def pca_lowrank(
    x: SparseTensor, q: int | None = None, center: bool = True, niter: int = 2, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """`paddle.linalg.pca_lowrank` of the dense matrix."""
    return _pca_lowrank(x.to_dense(), q, center, niter)


_OPERATORS = {
    "__add__": add,
    "__sub__": subtract,
    "__mul__": multiply,
    "__truediv__": divide,
    "__matmul__": matmul,
    "__neg__": neg,
}
for _name, _function in _OPERATORS.items():
    setattr(SparseTensor, _name, _function)
for _name in ("abs", "sin", "sqrt", "tanh", "transpose", "reshape", "matmul", "cast", "pow", "sum"):
    setattr(SparseTensor, _name, globals()[_name])


from framework.paddle.sparse import nn as nn  # noqa: E402

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
