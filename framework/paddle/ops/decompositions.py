"""Decompositions, solutions and functions of matrices: what `paddle.linalg` offers beside products and norms.

A matrix that has no decomposition (not positive definite, singular) gives NaN or inf instead of an error, which would
cost a look at values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dispatch import Array, Arrays, Key, operation
from framework.paddle._kernel.errors import AssertedError, KernelTypeError, ShapeError, require
from framework.paddle._kernel.settings import reads_values
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.ops.promotion import as_float, is_float, pair

__all__ = ["cholesky", "eigvalsh", "inverse"]  # the others are in paddle.linalg alone, and methods
METHODS_ONLY = (
    *("cholesky_solve", "cond", "corrcoef", "cov", "eig", "eigvals", "householder_product"),
    *("lstsq", "lu", "lu_unpack", "matrix_power", "multi_dot", "pca_lowrank", "pinv", "qr", "solve"),
)


def _matrices(x: jax.Array, where: str, square: bool = True) -> None:
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        raise ShapeError(
            "square matrices over the last two axes" if square else "matrices over the last two axes",
            where=f"paddle.linalg.{where}",
            received=f"shape {list(x.shape)}",
        )


def _adjoint(x: jax.Array) -> jax.Array:
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def _hermitian(x: jax.Array, upper: bool) -> jax.Array:
    """The matrix of one triangle; the gradient goes to both."""
    triangle = jnp.triu(x, 1) if upper else jnp.tril(x, -1)
    diagonal = jnp.eye(x.shape[-1], dtype=bool)
    whole = jnp.where(diagonal, x, triangle + _adjoint(triangle))
    return (x + _adjoint(x)) / 2 + lax.stop_gradient(whole - (x + _adjoint(x)) / 2)


@operation
def cholesky(x: Array, upper: bool = False, name: str | None = None) -> Array:
    """L of x = L L^H for positive definite x, of which one triangle is read; with `upper` U of x = U^H U."""
    _matrices(x, "cholesky")
    lower = lax.linalg.cholesky(_hermitian(x, upper), symmetrize_input=False)
    return _adjoint(lower) if upper else lower


def _broadcast_batch(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return jnp.broadcast_to(x, (*batch, *x.shape[-2:])), jnp.broadcast_to(y, (*batch, *y.shape[-2:]))


@operation
def cholesky_solve(x: Array, y: Array, upper: bool = False, name: str | None = None) -> Array:
    """z of A z = x, where y is the Cholesky factor of A."""
    _matrices(y, "cholesky_solve")
    require(x.ndim >= 2, "x has 2 or more axes", "paddle.linalg.cholesky_solve", x.shape)
    x, y = _broadcast_batch(*pair(x, y))
    first = lax.linalg.triangular_solve(
        y, x, left_side=True, lower=not upper, transpose_a=upper, conjugate_a=upper
    )
    return lax.linalg.triangular_solve(
        y, first, left_side=True, lower=not upper, transpose_a=not upper, conjugate_a=not upper
    )


@operation
def solve(x: Array, y: Array, name: str | None = None) -> Array:
    """z of x z = y for square x; y is a vector or a matrix of columns."""
    _matrices(x, "solve")
    x, y = pair(x, y)
    vector = y.ndim == 1 or (y.ndim == x.ndim - 1 and y.shape == x.shape[:-1])
    columns = y[..., None] if vector else y
    if columns.shape[-2] != x.shape[-1]:
        raise ShapeError(
            "as many rows on the right as columns on the left",
            where="paddle.linalg.solve",
            received=f"shapes {list(x.shape)} and {list(y.shape)}",
        )
    out = jnp.linalg.solve(*_broadcast_batch(x, columns))
    return out[..., 0] if vector else out


@operation
def triangular_solve(
    x: Array,
    y: Array,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    name: str | None = None,
) -> Array:
    """z of x z = y (or x^T z = y) for triangular x; `unitriangular`: ones are read on its diagonal."""
    _matrices(x, "triangular_solve")
    x, y = _broadcast_batch(*pair(x, y))
    return lax.linalg.triangular_solve(
        x, y, left_side=True, lower=not upper, transpose_a=transpose, unit_diagonal=unitriangular
    )


@operation
def inv(x: Array, name: str | None = None) -> Array:
    """The inverse of square matrices."""
    _matrices(x, "inv")
    return jnp.linalg.inv(as_float(x))


inverse = inv


@operation
def det(x: Array, name: str | None = None) -> Array:
    """The determinants of square matrices."""
    _matrices(x, "det")
    return jnp.linalg.det(x)


@operation
def slogdet(x: Array, name: str | None = None) -> Array:
    """The sign of the determinants and the logarithm of their size, stacked along a new first axis."""
    _matrices(x, "slogdet")
    return jnp.stack(jnp.linalg.slogdet(x))


@operation
def matrix_power(x: Array, n: int, name: str | None = None) -> Array:
    """The product of n matrices x; the inverse's for negative n."""
    _matrices(x, "matrix_power")
    return jnp.linalg.matrix_power(x, n)


@operation
def _multi_dot(x: Arrays) -> Array:
    return jnp.linalg.multi_dot(x)


@checked
def multi_dot(x: Sequence[Tensor], name: str | None = None) -> Tensor:
    """The product of several matrices in the order that costs least; the first and the last may be vectors."""
    if len(x) < 2:
        raise ShapeError("two matrices at least", where="paddle.linalg.multi_dot", received=f"{len(x)}")
    kinds = {matrix.dtype.name for matrix in x}
    require(len(kinds) == 1, "matrices of one type", "paddle.linalg.multi_dot", ", ".join(sorted(kinds)))
    return _multi_dot(x)


@operation
def svd(x: Array, full_matrices: bool = False, name: str | None = None) -> tuple[Array, Array, Array]:
    """U [..., m, k], S [..., k] in falling order, V^H [..., k, n] of x = U S V^H, k = min(m, n); with `full_matrices`
    U and V^H are square."""
    _matrices(x, "svd", square=False)
    u, s, vh = jnp.linalg.svd(x, full_matrices=full_matrices)
    return u, s, vh


@operation
def _qr(x: Array, mode: str) -> Any:
    _matrices(x, "qr", square=False)
    out = jnp.linalg.qr(x, mode=mode)
    return tuple(out) if isinstance(out, tuple) else out


@checked
def qr(x: Tensor, mode: str = "reduced", name: str | None = None) -> Any:
    """Q and R of x = Q R: 'reduced' [..., m, k] and [..., k, n], 'complete' with square Q, 'r' R alone."""
    if mode not in ("reduced", "complete", "r"):
        raise ShapeError(
            "unknown mode",
            where="paddle.linalg.qr",
            received=repr(mode),
            allowed="'reduced', 'complete', 'r'",
        )
    out = _qr(x, mode)
    return out if isinstance(out, Tensor) else tuple(out)


@operation
def eigh(x: Array, UPLO: str = "L", name: str | None = None) -> tuple[Array, Array]:
    """Eigenvalues in rising order and eigenvectors (columns) of hermitian matrices, of which one triangle is read."""
    return _eigh(x, UPLO, "eigh")


def _eigh(x: jax.Array, triangle: str, where: str) -> tuple[jax.Array, jax.Array]:
    _matrices(x, where)
    if triangle not in ("L", "U"):
        raise ShapeError(
            "unknown triangle", where=f"paddle.linalg.{where}", received=repr(triangle), allowed="'L', 'U'"
        )
    vectors, values = lax.linalg.eigh(_hermitian(x, triangle == "U"), symmetrize_input=False)
    return values, vectors


@operation
def eigvalsh(x: Array, UPLO: str = "L", name: str | None = None) -> Array:
    """The eigenvalues of hermitian matrices in rising order."""
    return _eigh(x, UPLO, "eigvalsh")[0]


@operation
def eig(x: Array, name: str | None = None) -> tuple[Array, Array]:
    """The complex eigenvalues and eigenvectors (columns) of square matrices. It runs on the CPU."""
    _matrices(x, "eig")
    require(
        x.dtype.kind in "fc", "floating or complex numbers", "paddle.linalg.eig", x.dtype, KernelTypeError
    )
    return _eig(x)


@jax.custom_vjp
def _eig(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    values, vectors = jnp.linalg.eig(x)
    return values, vectors


def _eig_forward(x: jax.Array) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, ...]]:
    values, vectors = _eig(x)
    return (values, vectors), (x, values, vectors)


def _eig_backward(
    residuals: tuple[jax.Array, ...], cotangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array]:
    """Paddle's gradient: of vectors whose length is 1. jax has none, since it does not ask that lengths be fixed."""
    x, values, vectors = residuals
    of_values, of_vectors = (g.conj() for g in cotangents)
    adjoint = _adjoint(vectors)
    inner = adjoint @ of_vectors
    lengths = jnp.diagonal(inner, axis1=-2, axis2=-1).real.astype(inner.dtype)[..., None, :]
    gaps = (values[..., None, :] - values[..., :, None]).conj()
    diagonal = jnp.eye(x.shape[-1], dtype=bool)
    inner = (inner - adjoint @ (vectors * lengths)) / jnp.where(diagonal, 1, gaps)
    inner = jnp.where(diagonal, of_values[..., None, :], inner)
    gradient = jnp.linalg.solve(adjoint, inner @ adjoint).conj()
    return ((gradient if jnp.iscomplexobj(x) else gradient.real).astype(x.dtype),)


_eig.defvjp(_eig_forward, _eig_backward)


@operation
def eigvals(x: Array, name: str | None = None) -> Array:
    """The complex eigenvalues of square matrices. It runs on the CPU."""
    _matrices(x, "eigvals")
    return jnp.linalg.eigvals(x)


@operation
def _lu(x: Array) -> tuple[Array, Array, Array]:
    _matrices(x, "lu", square=False)
    packed, pivots, _ = lax.linalg.lu(x)
    diagonal = jnp.diagonal(packed, axis1=-2, axis2=-1)
    first_zero = jnp.where((diagonal == 0).any(-1), jnp.argmax(diagonal == 0, -1) + 1, 0)
    return packed, pivots + 1, jnp.atleast_1d(first_zero.astype(jnp.int32))


@checked
def lu(x: Tensor, pivot: bool = True, get_infos: bool = False, name: str | None = None) -> tuple[Tensor, ...]:
    """L (below the diagonal, ones on it are left out) and U in one matrix, and the rows exchanged with, counted from 1;
    on request for each matrix the number of the first 0 on the diagonal of U, 0 where there is none."""
    if not pivot:
        raise ShapeError(
            "LU without exchange of rows is not offered", where="paddle.linalg.lu", received="pivot=False"
        )
    packed, pivots, infos = _lu(x)
    return (packed, pivots, infos) if get_infos else (packed, pivots)


@operation
def _lu_unpack(x: Array, y: Array) -> tuple[Array, Array, Array]:
    rows, columns = x.shape[-2:]
    inner = min(rows, columns)
    lower = jnp.tril(x[..., :, :inner], -1) + jnp.eye(rows, inner, dtype=x.dtype)
    upper = jnp.triu(x[..., :inner, :])
    order = lax.linalg.lu_pivots_to_permutation(y.astype(jnp.int32) - 1, rows)
    return jnp.swapaxes(jax.nn.one_hot(order, rows, dtype=x.dtype), -1, -2), lower, upper


@checked
def lu_unpack(
    x: Tensor, y: Tensor, unpack_ludata: bool = True, unpack_pivots: bool = True, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """P, L and U of P L U from what `lu` gives; what is not asked for is an empty Tensor."""
    permutation, lower, upper = _lu_unpack(x, y)
    empty = Tensor(np.zeros(0, x.numpy().dtype)) if not (unpack_ludata and unpack_pivots) else None
    return (
        permutation if unpack_pivots or empty is None else empty,
        lower if unpack_ludata or empty is None else empty,
        upper if unpack_ludata or empty is None else empty,
    )


@operation
def householder_product(x: Array, tau: Array, name: str | None = None) -> Array:
    """The first columns of the product of Householder matrices, as LAPACK's geqrf stores them."""
    shapes = f"shapes {list(x.shape)} and {list(tau.shape)}, types {x.dtype} and {tau.dtype}"
    holds = x.ndim >= 2 and tau.ndim == x.ndim - 1 and x.shape[-2] >= x.shape[-1] >= tau.shape[-1]
    holds = holds and x.shape[:-2] == tau.shape[:-1] and x.dtype == tau.dtype
    where = "paddle.linalg.householder_product"
    require(holds, "x [..., m, n] and tau [..., k] of one type, m >= n >= k", where, shapes, AssertedError)
    return lax.linalg.householder_product(x, tau)


@operation(differentiable=False)
def matrix_rank(
    x: Array, tol: Array | None = None, hermitian: bool = False, name: str | None = None
) -> Array:
    """How many singular values are greater than `tol` (None: the greatest times max(m, n) times the precision)."""
    _matrices(x, "matrix_rank", square=hermitian)
    sizes = jnp.abs(_eigh(x, "L", "matrix_rank")[0]) if hermitian else jnp.linalg.svd(x, compute_uv=False)
    if tol is None:
        tol = sizes.max(-1) * max(x.shape[-2:]) * jnp.finfo(x.dtype).eps
    return (sizes > jnp.asarray(tol)[..., None]).sum(-1).astype(jnp.int32)


@operation
def pinv(x: Array, rcond: Array = 1e-15, hermitian: bool = False, name: str | None = None) -> Array:  # type: ignore[assignment]
    """The pseudo-inverse; singular values up to `rcond` times the greatest count as 0."""
    _matrices(x, "pinv", square=hermitian)
    if hermitian:
        values, vectors = _eigh(x, "L", "pinv")
        left, right = vectors, _adjoint(vectors)
    else:
        left, values, right = jnp.linalg.svd(x, full_matrices=False)
    sizes = jnp.abs(values)
    kept = sizes > jnp.asarray(rcond)[..., None] * sizes.max(-1, keepdims=True)
    inverse = jnp.where(kept, 1 / jnp.where(kept, values, 1), 0).astype(values.dtype)
    return jnp.matmul(_adjoint(right) * inverse[..., None, :], _adjoint(left))


@operation(differentiable=False)
def _lstsq(x: Array, y: Array, rcond: Array | None) -> tuple[Array, Array, Array, Array]:
    x, y = _broadcast_batch(*pair(x, y))
    rows, columns = x.shape[-2:]
    left, values, right = jnp.linalg.svd(x, full_matrices=False)
    limit = jnp.finfo(x.dtype).eps * max(rows, columns) if rcond is None else rcond
    kept = values > limit * values.max(-1, keepdims=True)
    inverse = jnp.where(kept, 1 / jnp.where(kept, values, 1), 0).astype(values.dtype)
    solution = jnp.matmul(_adjoint(right), inverse[..., None] * jnp.matmul(_adjoint(left), y))
    residuals = jnp.sum(jnp.abs(jnp.matmul(x, solution) - y) ** 2, -2)
    return solution, residuals, kept.sum(-1).astype(jnp.int32), values


@reads_values
@checked
def lstsq(
    x: Tensor, y: Tensor, rcond: float | None = None, driver: str | None = None, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """z that makes |x z - y| smallest, the squared residuals (where x has more rows than columns), the rank of x and
    its singular values (for the drivers 'gelss' and 'gelsd'). Every driver computes with singular values here."""
    drivers = (None, "gels", "gelsy", "gelsd", "gelss")
    if driver not in drivers:
        raise ShapeError(
            "unknown driver", where="paddle.linalg.lstsq", received=repr(driver), allowed=str(drivers[1:])
        )
    if x.ndim < 2 or y.ndim < 2 or x.shape[-2] != y.shape[-2]:
        raise ShapeError(
            "matrices with as many rows",
            where="paddle.linalg.lstsq",
            received=f"shapes {x.shape} and {y.shape}",
        )
    require(x.dtype == y.dtype, "x and y of one type", "paddle.linalg.lstsq", f"{x.dtype} and {y.dtype}")
    solution, residuals, rank, values = _lstsq(x, y, rcond)
    if x.shape[-2] <= x.shape[-1] or bool((rank.numpy() < x.shape[-1]).any()):
        residuals = Tensor(np.zeros(0, residuals.numpy().dtype))
    if driver == "gels":
        rank = Tensor(np.zeros(0, np.int32))
    if driver not in ("gelsd", "gelss"):
        values = Tensor(np.zeros(0, values.numpy().dtype))
    return solution, residuals, rank, values


@operation
def cond(x: Array, p: float | str | None = None, name: str | None = None) -> Array:
    """The condition number of matrices in a norm: None or 2, -2, 'fro', 'nuc', 1, -1, inf, -inf."""
    square = p not in (None, 2, -2)
    _matrices(x, "cond", square=square)
    if p in (None, 2, -2):
        values = jnp.linalg.svd(x, compute_uv=False)
        return values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
    if p not in ("fro", "nuc", 1, -1, np.inf, -np.inf):
        raise ShapeError(
            "unknown norm",
            where="paddle.linalg.cond",
            received=repr(p),
            allowed="None, 2, -2, 'fro', 'nuc', 1, -1, inf, -inf",
        )

    def size(matrix: jax.Array) -> jax.Array:
        return jnp.linalg.norm(matrix, ord=p, axis=(-2, -1))  # type: ignore[arg-type]

    return size(x) * size(jnp.linalg.inv(x))


@operation
def cov(
    x: Array,
    rowvar: bool = True,
    ddof: bool = True,
    fweights: Array | None = None,
    aweights: Array | None = None,
    name: str | None = None,
) -> Array:
    """The covariances of the rows (`rowvar`) or columns; `fweights` say how often each observation counts, `aweights`
    how much; `ddof` divides by one less."""
    if x.ndim > 2:
        raise ShapeError(
            "two dimensions at most", where="paddle.linalg.cov", received=f"shape {list(x.shape)}"
        )
    count = x.shape[-1] if rowvar or x.ndim < 2 else x.shape[0]
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is not None:
            problem = f"{name} has a weight for each observation"
            require(weights.shape == (count,), problem, "paddle.linalg.cov", weights.shape)
    return jnp.cov(as_float(x), rowvar=rowvar, ddof=int(ddof), fweights=fweights, aweights=aweights)


@operation
def corrcoef(x: Array, rowvar: bool = True, name: str | None = None) -> Array:
    """The correlations of the rows (`rowvar`) or columns."""
    if x.ndim > 2 or not (is_float(x) or jnp.iscomplexobj(x)):
        raise ShapeError(
            "fractions of two dimensions at most",
            where="paddle.linalg.corrcoef",
            received=f"{x.dtype} {list(x.shape)}",
        )
    return jnp.corrcoef(x, rowvar=rowvar)


@operation
def _pca_lowrank(x: Array, q: int, center: bool, niter: int, key: Key) -> tuple[Array, Array, Array]:
    if center:
        x = x - x.mean(-2, keepdims=True)
    start = jax.random.normal(key, (*x.shape[:-2], x.shape[-1], q), x.dtype)
    basis = jnp.linalg.qr(jnp.matmul(x, start))[0]
    for _ in range(niter):
        basis = jnp.linalg.qr(jnp.matmul(_adjoint(x), basis))[0]
        basis = jnp.linalg.qr(jnp.matmul(x, basis))[0]
    u, s, vh = jnp.linalg.svd(jnp.matmul(_adjoint(basis), x), full_matrices=False)
    return jnp.matmul(basis, u), s, _adjoint(vh)


def pca_lowrank(
    x: Tensor, q: int | None = None, center: bool = True, niter: int = 2, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """U, S, V of about x = U S V^T with q columns (None: 6, or all), the columns of x centred: random
    projections."""
    require(isinstance(x, Tensor), "x is a Tensor", "paddle.linalg.pca_lowrank", type(x).__name__)
    most = min(x.shape[-2:])
    q = min(6, most) if q is None else q
    if not 0 <= q <= most or niter < 0:
        raise ShapeError(
            "q is at most the smaller size of the matrix",
            where="paddle.linalg.pca_lowrank",
            received=f"q={q}, niter={niter} for shape {x.shape}",
            allowed=f"0 to {most}",
        )
    return _pca_lowrank(x, q, center, niter)
