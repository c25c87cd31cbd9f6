"""Sparse Tensors: the positions of the elements that are kept (int64, fixed) and their values (a Tensor with its
history). They are no `Tensor`s: dense operations refuse them, `to_dense()` makes one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import jax.numpy as jnp
import numpy as np

from framework.paddle._kernel.arguments import Integers, TensorLike
from framework.paddle._kernel.dispatch import Array, freeze, operation
from framework.paddle._kernel.dtypes import dtype as Dtype
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.printing import text_of
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.ops.gathering import gather_nd, scatter_nd
from framework.paddle.ops.shaping import whole_numbers


class SparseTensor:
    """What both layouts share. `shape` is that of the dense Tensor."""

    def __init__(self, values: Tensor, shape: Sequence[int]) -> None:
        self._values = values
        self._shape = [int(size) for size in shape]

    def copy_(self, other: Self, blocking: bool = True) -> Self:
        """Take positions, values and shape of another one of the same layout; returns itself."""
        self.__dict__.update(other.__dict__)
        return self

    @property
    def shape(self) -> list[int]:
        return list(self._shape)

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @property
    def dtype(self) -> Dtype:
        return self._values.dtype

    @property
    def place(self) -> object:
        return self._values.place

    @property
    def stop_gradient(self) -> bool:
        return self._values.stop_gradient

    @stop_gradient.setter
    def stop_gradient(self, stop: bool) -> None:
        self._values.stop_gradient = stop

    @property
    def is_leaf(self) -> bool:
        return self._values.is_leaf

    @property
    def grad(self) -> SparseTensor | None:
        """The gradients of the values, at the same positions."""
        return None if self._values.grad is None else self.like(self._values.grad)

    def retain_grads(self) -> None:
        """Keep the gradients of the values, which are computed ones."""
        self._values.retain_grads()

    def clear_gradient(self, set_to_zero: bool = True) -> None:
        """Forget the gradients of the values."""
        self._values.clear_gradient(set_to_zero)

    def backward(self, grad_tensor: SparseTensor | None = None, retain_graph: bool = False) -> None:
        """Gradients from the values on."""
        self._values.backward(None if grad_tensor is None else grad_tensor._values, retain_graph)

    def values(self) -> Tensor:
        """The values [nnz], or [nnz, ...] where the last axes are dense."""
        return self._values

    def nnz(self) -> int:
        """How many elements are kept."""
        return int(np.prod(self._values.shape[:1]))

    def like(self, values: Tensor) -> SparseTensor:
        """Other values at the same positions."""
        raise NotImplementedError

    def coo(self) -> SparseCooTensor:
        """The same in coordinates."""
        raise NotImplementedError

    def detach(self) -> SparseTensor:
        return self.like(self._values.detach())

    def numpy(self) -> np.ndarray:
        return self.to_dense().numpy()

    def to_dense(self) -> Tensor:
        """The dense Tensor; elements at equal positions are added."""
        coo = self.coo()
        return scatter_nd(Tensor(np.ascontiguousarray(coo.positions.T)), coo._values, self._shape)

    def is_sparse(self) -> bool:
        return True

    def is_sparse_coo(self) -> bool:
        return isinstance(self, SparseCooTensor)

    def is_sparse_csr(self) -> bool:
        return isinstance(self, SparseCsrTensor)

    def is_dense(self) -> bool:
        return False

    def is_same_shape(self, y: Tensor | SparseTensor) -> bool:
        return self.shape == y.shape

    def to_sparse_coo(self, sparse_dim: int) -> SparseCooTensor:
        return self.coo()

    def _text(self, **positions: np.ndarray) -> str:
        parts = {**positions, "values": self._values.numpy()}
        lines = [f"       {name}={text_of(array, len(name) + 9)}" for name, array in parts.items()]
        head = f"Tensor(shape={self.shape}, dtype=paddle.{self.dtype.name}, place={self.place}, "
        return head + f"stop_gradient={self.stop_gradient}, \n" + ", \n".join(lines) + ")"


class SparseCooTensor(SparseTensor):
    """Positions as coordinates [sparse axes, nnz]; axes after those are dense."""

    def __init__(
        self, positions: np.ndarray, values: Tensor, shape: Sequence[int], coalesced: bool = False
    ) -> None:
        super().__init__(values, shape)
        self.positions = positions
        self._coalesced = coalesced

    def indices(self) -> Tensor:
        """The coordinates [sparse axes, nnz]."""
        return Tensor(self.positions)

    def like(self, values: Tensor) -> SparseCooTensor:
        return SparseCooTensor(self.positions, values, self._shape, self._coalesced)

    def coo(self) -> SparseCooTensor:
        return self

    def flat(self) -> np.ndarray:
        """The positions as numbers in the order of the sparse axes."""
        sizes = self._shape[: len(self.positions)]
        strides = np.cumprod([1, *sizes[:0:-1]])[::-1]
        return (self.positions * strides[:, None]).sum(0)

    def coalesce(self, name: str | None = None) -> SparseCooTensor:
        """Positions in order, each once: values at equal positions are added."""
        if self._coalesced:
            return self
        sizes = tuple(self._shape[: len(self.positions)])
        flat, group = np.unique(self.flat(), return_inverse=True)
        values = scatter_nd(Tensor(group.reshape(-1, 1)), self._values, [len(flat), *self._values.shape[1:]])
        positions = np.stack(np.unravel_index(flat, sizes)).astype(np.int64)
        return SparseCooTensor(positions, values, self._shape, coalesced=True)

    def is_coalesced(self) -> bool:
        return self._coalesced

    def to_sparse_csr(self) -> SparseCsrTensor:
        """In compressed rows: of matrices, or of a batch of matrices."""
        own = self.coalesce()
        if len(own.positions) != self.ndim or self.ndim not in (2, 3):
            raise ShapeError(
                "compressed rows are of matrices or batches of them",
                where="to_sparse_csr",
                received=f"shape {self.shape} with {len(own.positions)} sparse axes",
            )
        batch, rows = (1, *self._shape)[-3:-1]
        row = own.positions[-2] + (own.positions[0] * rows if self.ndim == 3 else 0)
        counts = np.bincount(row, minlength=batch * rows).reshape(batch, rows)
        crows = np.zeros((batch, rows + 1), np.int64)
        crows[:, 1:] = np.cumsum(counts, 1)
        return SparseCsrTensor(crows.reshape(-1), own.positions[-1], own._values, self._shape)

    def __repr__(self) -> str:
        return self._text(indices=self.positions)


class SparseCsrTensor(SparseTensor):
    """Compressed rows: row r holds the columns cols[crows[r] : crows[r + 1]]; a batch has one crows after the other."""

    def __init__(self, rows: np.ndarray, columns: np.ndarray, values: Tensor, shape: Sequence[int]) -> None:
        super().__init__(values, shape)
        self.compressed, self.columns = rows, columns

    def crows(self) -> Tensor:
        """Where rows begin [rows + 1], for a batch one after the other."""
        return Tensor(self.compressed)

    def cols(self) -> Tensor:
        """The columns of the values [nnz]."""
        return Tensor(self.columns)

    def like(self, values: Tensor) -> SparseCsrTensor:
        return SparseCsrTensor(self.compressed, self.columns, values, self._shape)

    def coo(self) -> SparseCooTensor:
        rows = self._shape[-2]
        counts = np.diff(self.compressed.reshape(-1, rows + 1), axis=1).reshape(-1)
        row = np.repeat(np.arange(counts.size), counts)
        parts = [row, self.columns] if self.ndim == 2 else [row // rows, row % rows, self.columns]
        return SparseCooTensor(np.stack(parts).astype(np.int64), self._values, self._shape, coalesced=True)

    def to_sparse_csr(self) -> SparseCsrTensor:
        return self

    def __repr__(self) -> str:
        return self._text(crows=self.compressed, cols=self.columns)


def _leaf(values: TensorLike, dtype: object, stop_gradient: bool) -> Tensor:
    """The values as a Tensor; one that wants a gradient keeps its history."""
    if isinstance(values, Tensor) and not values.stop_gradient:
        return values if dtype is None else values.astype(dtype)
    return Tensor(values, dtype, stop_gradient=stop_gradient)


def _whole(values: TensorLike) -> np.ndarray:
    array = values.numpy() if isinstance(values, Tensor) else np.asarray(values)
    return array.astype(np.int64) if array.size == 0 or array.dtype.kind not in "iu" else array


def sparse_coo_tensor(
    indices: Any,
    values: Any,
    shape: Integers | None = None,
    dtype: object = None,
    place: object = None,
    stop_gradient: bool = True,
) -> SparseCooTensor:
    """A sparse Tensor of values at coordinates [sparse axes, nnz]; without `shape` the smallest that holds them."""
    positions, own = _whole(indices), _leaf(values, dtype, stop_gradient)
    sizes = None if shape is None else list(whole_numbers(freeze(shape)))
    if positions.ndim != 2 or own.ndim < 1 or positions.shape[1] != own.shape[0]:
        raise ShapeError(
            "coordinates [sparse axes, nnz] and as many values",
            where="paddle.sparse.sparse_coo_tensor",
            received=f"indices of shape {list(positions.shape)}, values of shape {own.shape}",
        )
    least = [*(positions.max(1, initial=-1) + 1).tolist(), *own.shape[1:]]
    if sizes is not None and (
        len(sizes) != len(least) or any(s < n for s, n in zip(sizes, least, strict=True))
    ):
        raise ShapeError(
            "the shape does not hold the positions",
            where="paddle.sparse.sparse_coo_tensor",
            received=f"shape {sizes}, positions that need {least}",
        )
    return SparseCooTensor(positions, own, sizes or least)


def sparse_csr_tensor(
    crows: Any,
    cols: Any,
    values: Any,
    shape: Integers,
    dtype: object = None,
    place: object = None,
    stop_gradient: bool = True,
) -> SparseCsrTensor:
    """A sparse matrix, or batch of matrices, in compressed rows."""
    rows, columns, own = _whole(crows), _whole(cols), _leaf(values, dtype, stop_gradient)
    sizes = list(whole_numbers(freeze(shape)))
    batch = sizes[0] if len(sizes) == 3 else 1
    if (
        len(sizes) not in (2, 3)
        or rows.shape != (batch * (sizes[-2] + 1),)
        or columns.shape != (own.shape[0],)
    ):
        raise ShapeError(
            "crows of rows + 1 starts (for each matrix of a batch), and as many columns as values",
            where="paddle.sparse.sparse_csr_tensor",
            received=f"crows {list(rows.shape)}, cols {list(columns.shape)}, values {own.shape}, shape {sizes}",
        )
    return SparseCsrTensor(rows, columns, own, sizes)


def to_sparse_coo(x: Tensor, sparse_dim: int) -> SparseCooTensor:
    """The elements (or parts of the last axes) that are not zero, by coordinates of the first axes. Looks at values."""
    values = x.numpy()
    kept = values.reshape(*values.shape[:sparse_dim], -1).any(-1) if sparse_dim < x.ndim else values != 0
    positions = np.stack(np.nonzero(kept)).astype(np.int64)
    picked = gather_nd(x, Tensor(np.ascontiguousarray(positions.T)))
    return SparseCooTensor(positions, picked, x.shape, coalesced=True)


def to_sparse_csr(x: Tensor) -> SparseCsrTensor:
    """The elements of a matrix or batch of matrices that are not zero, in compressed rows. Looks at values."""
    return to_sparse_coo(x, x.ndim).to_sparse_csr()


@operation
def _rows_times(values: Array, dense: Array, rows: Array, columns: Array, size: int) -> Array:
    """The product of a sparse matrix of `size` rows with a dense one or a vector."""
    values = values.reshape(-1, *[1] * (dense.ndim - 1))
    return jnp.zeros((size, *dense.shape[1:]), dense.dtype).at[rows].add(values * dense[columns])


def times_dense(x: SparseTensor, y: Tensor) -> Tensor:
    """A sparse matrix times a dense matrix or vector."""
    coo = x.coo()
    if len(coo.positions) != 2 or coo.ndim != 2 or y.ndim not in (1, 2) or x.shape[1] != y.shape[0]:
        raise ShapeError(
            "a sparse matrix [m, k] and a dense one [k, n] or vector [k]",
            where="paddle.sparse.matmul",
            received=f"shapes {x.shape} and {y.shape}",
            fix="use paddle.matmul(x.to_dense(), y) for batches",
        )
    rows, columns = coo.positions
    return _rows_times(coo.values(), y, rows, columns, x.shape[0])
