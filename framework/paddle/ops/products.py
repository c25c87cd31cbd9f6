"""Products of Tensors, distances, norms and counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import lax

from framework.core.axes import normalize_axis
from framework.nn.functional.slopes import absolute
from framework.paddle._kernel.arguments import Integers
from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dispatch import Array, Arrays, freeze, operation
from framework.paddle._kernel.errors import AssertedError, OperandError, ShapeError, require
from framework.paddle._kernel.settings import reads_values
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.ops.equations import check_equation
from framework.paddle.ops.promotion import as_float, axes_of, is_float, pair
from framework.paddle.ops.shaping import whole_numbers

__all__ = [
    "bincount",
    "bmm",
    "cdist",
    "cross",
    "dist",
    "dot",
    "einsum",
    "histogram",
    "mv",
    "norm",
    "tensordot",
]


@operation
def dot(x: Array, y: Array, name: str | None = None) -> Array:
    """The sum of products over the last axis of vectors [n] or rows [m, n]."""
    x, y = pair(x, y)
    if x.shape != y.shape or x.ndim not in (1, 2):
        raise ShapeError(
            "two vectors, or two matrices of rows, of one shape",
            where="paddle.dot",
            received=f"shapes {list(x.shape)} and {list(y.shape)}",
        )
    return jnp.sum(x * y, -1, dtype=x.dtype)


@operation
def bmm(x: Array, y: Array, name: str | None = None) -> Array:
    """Products of the matrices [b, m, k] and [b, k, n]: [b, m, n]."""
    x, y = pair(x, y)
    if x.ndim != 3 or y.ndim != 3 or x.shape[0] != y.shape[0] or x.shape[2] != y.shape[1]:
        raise ShapeError(
            "bmm takes shapes [b, m, k] and [b, k, n]",
            where="paddle.bmm",
            received=f"shapes {list(x.shape)} and {list(y.shape)}",
            fix="use matmul for other numbers of dimensions",
        )
    return jnp.matmul(x, y)


@operation
def mv(x: Array, vec: Array, name: str | None = None) -> Array:
    """The product of a matrix [m, n] and a vector [n]."""
    x, vec = pair(x, vec)
    if x.ndim != 2 or vec.ndim != 1 or x.shape[1] != vec.shape[0]:
        raise ShapeError(
            "mv takes shapes [m, n] and [n]",
            where="paddle.mv",
            received=f"shapes {list(x.shape)} and {list(vec.shape)}",
        )
    return jnp.matmul(x, vec)


@operation
def cross(x: Array, y: Array, axis: int = 9, name: str | None = None) -> Array:
    """The vector product along an axis of size 3; 9 means the first such axis."""
    x, y = pair(x, y)
    if axis == 9 and 3 in x.shape:
        axis = x.shape.index(3)
    if axis != 9:
        axis = normalize_axis(axis, x.ndim, "paddle.cross")
    if x.shape != y.shape or axis >= x.ndim or x.shape[axis] != 3:
        raise ShapeError(
            "two Tensors of one shape with an axis of size 3",
            where="paddle.cross",
            received=f"shapes {list(x.shape)} and {list(y.shape)}, axis {axis}",
        )
    return jnp.cross(x, y, axis=axis)


@operation
def _tensordot(x: Array, y: Array, of_x: Sequence[int], of_y: Sequence[int]) -> Array:
    x, y = pair(x, y)
    # As in Paddle an axis of size 1 goes with any other.
    for a, b in zip(of_x, of_y, strict=True):
        if x.shape[a] == 1 and y.shape[b] != 1:
            y = y.sum(b, keepdims=True)
        elif y.shape[b] == 1 and x.shape[a] != 1:
            x = x.sum(a, keepdims=True)
    return jnp.tensordot(x, y, (tuple(of_x), tuple(of_y)))


@checked
def tensordot(x: Tensor, y: Tensor, axes: Integers = 2, name: str | None = None) -> Tensor:
    """The sum of products over axes: so many last ones of `x` and first ones of `y`, or lists of them for each."""
    axes = freeze(axes)
    if isinstance(axes, int):
        require(axes >= 0, "axes is 0 or more", "paddle.tensordot", axes, AssertedError)
        return _tensordot(x, y, range(x.ndim - axes, x.ndim), range(axes))
    if not axes or isinstance(axes[0], int):
        of_x = of_y = whole_numbers(axes)
    else:
        of_x = whole_numbers(axes[0])
        of_y = whole_numbers(axes[1]) if len(axes) > 1 else of_x
    # The shorter list goes on like the longer one.
    of_x, of_y = of_x + of_y[len(of_x) :], of_y + of_x[len(of_y) :]
    return _tensordot(x, y, of_x, of_y)


@operation
def _einsum(operands: Arrays, equation: str) -> Array:
    kind = jnp.result_type(*operands)
    return jnp.einsum(equation, *[x.astype(kind) for x in operands])


def einsum(equation: str, *operands: Tensor) -> Tensor:
    """Einstein's sums, as 'bij,bjk->bik'. Raises: AssertionError: the equation does not fit the operands."""
    parts = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    equation = equation.replace(" ", "")
    check_equation(equation, parts)
    return _einsum(parts, equation)


def _extreme(
    sizes: jax.Array, of: Callable[..., jax.Array], axes: tuple[int, ...], keepdim: bool
) -> jax.Array:
    """The greatest or smallest number; of several equal ones each gets the whole gradient, where jax divides it."""
    extreme = of(lax.stop_gradient(sizes), axes, keepdims=True)
    change = jnp.where(sizes == extreme, sizes - lax.stop_gradient(sizes), 0)  # 0: only its gradient counts
    value = extreme + jnp.sum(jnp.where(jnp.isfinite(change), change, 0), axes, keepdims=True)
    return value if keepdim else jnp.squeeze(value, axes)


def power_norm(x: jax.Array, p: float, axes: tuple[int, ...], keepdim: bool) -> jax.Array:
    """(sum of |x|^p)^(1/p) over axes; the greatest or smallest |x| for p = inf or -inf, the count of what is not 0 for
    p = 0. Its gradient at 0 is 0."""
    sizes = absolute(as_float(x))
    if abs(p) == math.inf:
        return _extreme(sizes, jnp.max if p > 0 else jnp.min, axes, keepdim)
    if p == 0:
        return jnp.sum((sizes != 0).astype(sizes.dtype), axes, keepdims=keepdim)
    if p == 1:
        return jnp.sum(sizes, axes, keepdims=keepdim)
    if p == 2:  # |x|^2 without the root in |x|
        powers = jnp.real(x * jnp.conj(x)) if jnp.iscomplexobj(x) else as_float(x) ** 2
    else:
        powers = jnp.where(sizes <= 0, 0 if p > 0 else math.inf, jnp.where(sizes <= 0, 1, sizes) ** p)
    total = jnp.sum(powers, axes, keepdims=keepdim)
    safe = jnp.where(total <= 0, 1, total)  # NaN, which compares with nothing, stays NaN
    root = jnp.sqrt(safe) if p == 2 else safe ** (1 / p)
    return jnp.where(total <= 0, 0, root).astype(sizes.dtype)


@operation
def norm(
    x: Array,
    p: float | str = "fro",
    axis: int | Sequence[int] | None = None,
    keepdim: bool = False,
    name: str | None = None,
) -> Array:
    """(sum of |x|^p)^(1/p) over one, two or all axes (None); 'fro' is p = 2. As in Paddle also over two axes, where it
    is no norm of operators."""
    if isinstance(p, str) and p != "fro":
        raise ShapeError(
            "unknown norm",
            where="paddle.linalg.norm",
            received=repr(p),
            allowed="'fro', a number, float('inf'), float('-inf')",
            fix="for the sum of singular values use paddle.linalg.svd(x)[1].sum(-1)" if p == "nuc" else None,
        )
    axes = axes_of(None if axis is None else whole_numbers(axis), x.ndim, "paddle.linalg.norm")
    if axis is not None and len(axes) > 1:
        require(p != 0, "over two axes p is not 0", "paddle.linalg.norm", p)
    return power_norm(x, 2 if isinstance(p, str) else p, axes, keepdim)


@operation
def dist(x: Array, y: Array, p: float = 2, name: str | None = None) -> Array:
    """The p-norm of the broadcast difference."""
    x, y = pair(x, y)
    difference = x - y
    return power_norm(difference, p, tuple(range(difference.ndim)), False)


@operation
def cdist(
    x: Array,
    y: Array,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
    name: str | None = None,
) -> Array:
    """Distances between all rows: [..., m, d] and [..., n, d] to [..., m, n]."""
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-1] or p < 0:
        raise AssertedError(
            "rows of one length, and p >= 0",
            where="paddle.cdist",
            received=f"shapes {list(x.shape)} and {list(y.shape)}, p={p}",
        )
    modes = {
        "use_mm_for_euclid_dist": True,
        "donot_use_mm_for_euclid_dist": False,
        "use_mm_for_euclid_dist_if_necessary": x.shape[-2] > 25 or y.shape[-2] > 25,
    }
    if compute_mode not in modes:
        raise ShapeError(
            "unknown way to compute",
            where="paddle.cdist",
            received=repr(compute_mode),
            allowed=", ".join(modes),
        )
    x, y = pair(x, y)
    if p == 2 and modes[compute_mode]:
        squares = jnp.sum(x * x, -1)[..., :, None] + jnp.sum(y * y, -1)[..., None, :]
        squares = squares - 2 * jnp.matmul(x, jnp.swapaxes(y, -1, -2))
        return jnp.where(squares <= 0, 0, jnp.sqrt(jnp.where(squares <= 0, 1, squares)))
    return power_norm(x[..., :, None, :] - y[..., None, :, :], p, (-1,), False)


@operation(differentiable=False)
def _histogram(input: Array, bins: int, min: Array, max: Array) -> Array:
    values = input.reshape(-1).astype(jnp.float64)
    low, high = jnp.asarray(min, jnp.float64), jnp.asarray(max, jnp.float64)
    if input.size:
        of_data = (low == 0) & (high == 0)
        low, high = jnp.where(of_data, values.min(), low), jnp.where(of_data, values.max(), high)
    low, high = jnp.where(low == high, low - 1, low), jnp.where(low == high, high + 1, high)
    place = jnp.floor((values - low) * bins / (high - low)).astype(jnp.int64)
    inside = (values >= low) & (values <= high)
    return jnp.zeros(bins, jnp.int64).at[jnp.clip(place, 0, bins - 1)].add(inside.astype(jnp.int64))


@checked
def histogram(
    input: Tensor, bins: int = 100, min: float = 0, max: float = 0, name: str | None = None
) -> Tensor:
    """How many elements lie in each of so many equal bins between min and max (both 0: those of the elements).

    Raises:
        ShapeError: min is above max.
    """
    require(bins > 0, "bins is above 0", "paddle.histogram", bins)
    if isinstance(min, int | float) and isinstance(max, int | float) and min > max:
        raise ShapeError("min is above max", where="paddle.histogram", received=f"min={min}, max={max}")
    return _histogram(input, bins, min, max)


@operation(differentiable=False)
def _bincount(x: Array, weights: Array | None, length: int) -> Array:
    if weights is None:
        return jnp.zeros(length, jnp.int64).at[x].add(1)
    kind = weights.dtype if is_float(weights) else jnp.float64
    return jnp.zeros(length, kind).at[x].add(weights.astype(kind))


@reads_values
@checked
def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0, name: str | None = None) -> Tensor:
    """How often each of 0, 1, 2 ... comes in `x` [n], or the sum of the weights where it does. Looks at values."""
    values = x.numpy()
    require(values.dtype.kind in "iu", "x is of integers", "paddle.bincount", x.dtype, OperandError)
    if values.ndim != 1 or values.dtype.kind not in "iu" or (values.size and values.min() < 0):
        raise ShapeError(
            "bincount takes whole numbers from 0 on, in one dimension",
            where="paddle.bincount",
            received=f"{x.dtype} {x.shape}" + (f" from {values.min()} on" if values.size else ""),
        )
    length = max(int(values.max()) + 1 if values.size else 0, int(minlength))
    return _bincount(x, weights, length)
