"""Where elements are, which are greatest, and in what order."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from framework.core.axes import normalize_axis
from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.checked import checked, tensors_only
from framework.paddle._kernel.dispatch import Array, Key, operation
from framework.paddle._kernel.dtypes import to_numpy
from framework.paddle._kernel.errors import ArgumentTypeError, OperandError, ShapeError, require
from framework.paddle._kernel.methods import is_variable, replace_value
from framework.paddle._kernel.random import default_generator
from framework.paddle._kernel.settings import reads_values, takes_variables
from framework.paddle._kernel.tensor import Tensor, as_array, wrap
from framework.paddle.ops.promotion import pair
from framework.paddle.ops.shaping import broadcast_to, parts_at, whole_number

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "bucketize",
    "kthvalue",
    "masked_select",
    "mode",
    "nonzero",
    "searchsorted",
    "sort",
    "topk",
    "unique",
    "unique_consecutive",
    "where",
    "where_",
]
METHODS_ONLY = ("top_p_sampling",)


def positions(values: np.ndarray) -> Tensor:
    """An int64 Tensor of positions that were found on the host."""
    return wrap(as_array(values, np.int64))


@operation
def _where(condition: Array, x: Array, y: Array) -> Array:
    x, y = jnp.asarray(x), jnp.asarray(y)
    if x.weak_type and y.weak_type:  # two Python numbers: numpy's types, as in Paddle
        kind = jnp.result_type(x, y)
        return jnp.where(condition, x.astype(kind), y.astype(kind))
    x, y = pair(x, y)
    return jnp.where(jnp.asarray(condition).astype(bool), x, y)


@checked
def where(
    condition: Any, x: TensorLike | None = None, y: TensorLike | None = None, name: str | None = None
) -> Any:
    """x where the condition holds, y elsewhere, all broadcast; without x and y `nonzero(condition, as_tuple=True)`.

    A Python number takes the type of the other value.
    """
    if x is None and y is None:
        return nonzero(condition, as_tuple=True)
    if x is None or y is None:
        raise ShapeError("x and y go together", where="paddle.where", received="one of them")
    return _where(condition, x, y)


def where_(
    condition: Tensor, x: Tensor | None = None, y: Tensor | None = None, name: str | None = None
) -> Tensor:
    """`where` that replaces x."""
    if not (isinstance(x, Tensor) and isinstance(y, Tensor)):
        received = f"{type(x).__name__}, {type(y).__name__}"
        raise ShapeError("x and y are needed, both Tensors", where="paddle.where_", received=received)
    result = broadcast_to(_where(condition, x, y), x.shape)
    return result if is_variable(x, "where_") else replace_value(x, result)


@reads_values
@checked
def nonzero(x: Tensor, as_tuple: bool = False) -> Any:
    """The positions of what is not zero: [count, ndim], or for each axis [count, 1]. Looks at values."""
    found = np.stack(np.nonzero(x.numpy()), 1) if x.ndim else np.zeros((int(bool(x)), 0))
    if as_tuple:
        return tuple(positions(found[:, axis : axis + 1]) for axis in range(x.ndim))
    return positions(found)


@reads_values
@checked
def masked_select(x: Tensor, mask: Tensor, name: str | None = None) -> Tensor:
    """The elements where the mask holds, in one dimension. Looks at values of the mask."""
    holds = isinstance(mask, Tensor) and mask.dtype.name == "bool"
    require(holds, "the mask is a Tensor of bool", "paddle.masked_select", mask)
    values = mask.numpy()
    shape = np.broadcast_shapes(tuple(x.shape), values.shape)
    chosen = np.flatnonzero(np.broadcast_to(values, shape))
    return parts_at(x if x._value.shape == shape else broadcast_to(x, list(shape)), chosen)


def _argument(find: Any, x: jax.Array, axis: Any, keepdim: bool, dtype: object, where: str) -> jax.Array:
    kind = None if dtype is None else to_numpy(dtype)
    if kind not in (np.int32, np.int64):
        raise ShapeError(
            "positions are integers", where=where, received=f"dtype={dtype}", allowed="int32, int64"
        )
    if isinstance(axis, float | str):
        raise ArgumentTypeError(
            "an axis is an integer", where=where, received=repr(axis), allowed="an integer, None"
        )
    if x.ndim == 0:
        return jnp.zeros((), kind)
    axis = None if axis is None else normalize_axis(whole_number(axis), x.ndim, where)
    return find(x, axis, keepdims=keepdim).astype(kind)


@operation(differentiable=False)
def argmax(
    x: Array,
    axis: int | None = None,
    keepdim: bool = False,
    dtype: object = "int64",
    name: str | None = None,
) -> Array:
    """The position of the greatest element along an axis (None: among all, flattened), the first of equals."""
    return _argument(jnp.argmax, x, axis, keepdim, dtype, "paddle.argmax")


@operation(differentiable=False)
def argmin(
    x: Array,
    axis: int | None = None,
    keepdim: bool = False,
    dtype: object = "int64",
    name: str | None = None,
) -> Array:
    """The position of the smallest element along an axis (None: among all, flattened), the first of equals."""
    return _argument(jnp.argmin, x, axis, keepdim, dtype, "paddle.argmin")


def _order(x: jax.Array, axis: int, descending: bool) -> jax.Array:
    return jnp.argsort(x, axis, stable=True, descending=descending).astype(jnp.int64)


@operation(differentiable=False)
def argsort(x: Array, axis: int = -1, descending: bool = False, name: str | None = None) -> Array:
    """The positions of the elements in order along an axis; equal elements keep theirs."""
    if x.ndim == 0:
        return jnp.zeros((), jnp.int64)
    return _order(x, normalize_axis(axis, x.ndim, "paddle.argsort"), descending)


@operation
def sort(x: Array, axis: int = -1, descending: bool = False, name: str | None = None) -> Array:
    """The elements in order along an axis."""
    if x.ndim == 0:
        return x
    place = normalize_axis(axis, x.ndim, "paddle.sort")
    return jnp.take_along_axis(x, _order(x, place, descending), place)


def _has(k: int, x: jax.Array, place: int, where: str) -> None:
    """The axis has k elements."""
    if not 1 <= k <= x.shape[place]:
        raise ShapeError(
            "there are not so many elements",
            where=where,
            received=f"k={k} on axis {place} of shape {list(x.shape)}",
            allowed=f"1 to {x.shape[place]}",
        )


@operation
def _topk(x: Array, k: int, axis: int | None, largest: bool) -> tuple[Array, Array]:
    if x.ndim == 0:
        return x, jnp.zeros((), jnp.int64)
    place = normalize_axis(-1 if axis is None else axis, x.ndim, "paddle.topk")
    _has(k, x, place, "paddle.topk")
    last = jnp.moveaxis(x, place, -1)
    if largest:
        order = lax.top_k(lax.stop_gradient(last), k)[1].astype(jnp.int64)
    else:
        order = _order(last, -1, False)[..., :k]
    values = jnp.take_along_axis(last, order, -1)
    return jnp.moveaxis(values, -1, place), jnp.moveaxis(order, -1, place)


@takes_variables
def topk(
    x: Tensor,
    k: TensorLike,
    axis: int | None = None,
    largest: bool = True,
    sorted: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The k greatest (or smallest) elements along an axis (None: the last) and their positions, best first; the first
    of equals first. They are in order whatever `sorted` says."""
    return _topk(x, whole_number(k), axis, bool(largest))


def _chosen(x: jax.Array, order: jax.Array, place: int, keepdim: bool) -> tuple[jax.Array, jax.Array]:
    values = jnp.take_along_axis(x, order, place)
    return (values, order) if keepdim else (values.squeeze(place), order.squeeze(place))


@operation
def kthvalue(
    x: Array, k: int, axis: int | None = None, keepdim: bool = False, name: str | None = None
) -> tuple[Array, Array]:
    """The k-th smallest element (counted from 1) along an axis (None: the last), and its position."""
    if x.ndim == 0:
        require(k == 1, "a 0-D Tensor has one element", "paddle.kthvalue", k)
        return x, jnp.zeros((), jnp.int64)
    place = normalize_axis(-1 if axis is None else axis, x.ndim, "paddle.kthvalue")
    _has(k, x, place, "paddle.kthvalue")
    order = lax.slice_in_dim(_order(x, place, False), k - 1, k, axis=place)
    return _chosen(x, order, place, keepdim)


@operation
def mode(x: Array, axis: int = -1, keepdim: bool = False, name: str | None = None) -> tuple[Array, Array]:
    """The most frequent element along an axis, of several the smallest, and its last position."""
    if x.ndim == 0:
        return x, jnp.zeros((), jnp.int64)
    place = normalize_axis(axis, x.ndim, "paddle.mode")
    last = jnp.moveaxis(x, place, -1)
    order = _order(last, -1, False)
    ordered = jnp.take_along_axis(lax.stop_gradient(last), order, -1)
    steps = jnp.arange(ordered.shape[-1])
    new = jnp.concatenate([jnp.ones_like(ordered[..., :1], bool), ordered[..., 1:] != ordered[..., :-1]], -1)
    first = lax.cummax(jnp.where(new, steps, 0), axis=ordered.ndim - 1)
    # The longest run ends where `length so far` is greatest, the first of equals.
    end = jnp.argmax(steps - first, -1, keepdims=True)
    chosen = jnp.moveaxis(jnp.take_along_axis(order, end, -1), -1, place)
    return _chosen(x, chosen, place, keepdim)


@operation(differentiable=False)
def _nucleus(x: Array, ps: Array, threshold: Array | None, key: Key) -> tuple[Array, Array]:
    order = _order(x, -1, True)
    chances = jnp.take_along_axis(x, order, -1)
    before = jnp.cumsum(chances, -1) - chances
    kept = before < ps.reshape(-1, 1)
    if threshold is not None:
        kept &= (chances >= threshold.reshape(-1, 1)) | (jnp.arange(x.shape[-1]) == 0)
    chosen = jax.random.categorical(key, jnp.where(kept, jnp.log(chances), -jnp.inf))[:, None]
    return jnp.take_along_axis(chances, chosen, -1), jnp.take_along_axis(order, chosen, -1)


def top_p_sampling(
    x: Tensor, ps: Tensor, threshold: Tensor | None = None, seed: int | None = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """For each row of chances [batch, n] one of the greatest that together just pass ps [batch], drawn by its chance:
    the chance and its position, each [batch, 1]. Chances below `threshold` [batch] are left out."""
    if x.ndim != 2 or ps.size != x.shape[0]:
        raise ShapeError(
            "chances [batch, n] and a limit for each row",
            where="Tensor.top_p_sampling",
            received=f"shapes {x.shape} and {ps.shape}",
        )
    if seed is None or seed < 0:
        return _nucleus(x, ps, threshold)
    before = default_generator.get_state()
    default_generator.manual_seed(seed)
    try:
        return _nucleus(x, ps, threshold)
    finally:
        default_generator.set_state(before)


def _between(edges: jax.Array, values: jax.Array, out_int32: bool, right: bool) -> jax.Array:
    def search(edges: jax.Array, values: jax.Array) -> jax.Array:
        return jnp.searchsorted(edges, values, side="right" if right else "left")

    for _ in range(edges.ndim - 1):
        search = jax.vmap(search)
    return search(edges, values).astype(jnp.int32 if out_int32 else jnp.int64)


@operation(differentiable=False)
def searchsorted(
    sorted_sequence: Array,
    values: Array,
    out_int32: bool = False,
    right: bool = False,
    name: str | None = None,
) -> Array:
    """Where each value would go in the ordered last axis of `sorted_sequence`: [..., n], [..., m] -> [..., m]."""
    values = jnp.asarray(values)
    if sorted_sequence.ndim > 1 and sorted_sequence.shape[:-1] != values.shape[:-1]:
        raise ShapeError(
            "the leading axes must be equal",
            where="paddle.searchsorted",
            received=f"shapes {list(sorted_sequence.shape)} and {list(values.shape)}",
        )
    return _between(sorted_sequence, values, out_int32, right)


@tensors_only("x", "sorted_sequence", kind=OperandError)
@operation(differentiable=False)
def bucketize(
    x: Array,
    sorted_sequence: Array,
    out_int32: bool = False,
    right: bool = False,
    name: str | None = None,
) -> Array:
    """The number of the bucket between ordered edges that each element falls into."""
    if sorted_sequence.ndim != 1:
        raise ShapeError(
            "the edges have one dimension",
            where="paddle.bucketize",
            received=f"shape {list(sorted_sequence.shape)}",
        )
    return _between(sorted_sequence, jnp.asarray(x), out_int32, right)


def _results(
    x: Tensor,
    first: np.ndarray,
    inverse: np.ndarray | None,
    counts: np.ndarray | None,
    index: np.ndarray | None,
    axis: int | None,
    dtype: object,
) -> Any:
    outs = [parts_at(x.detach(), first, axis)]  # as in Paddle no gradient comes back
    outs.extend(
        Tensor(part.astype(to_numpy(dtype)).reshape(-1))
        for part in (index, inverse, counts)
        if part is not None
    )
    return outs[0] if len(outs) == 1 else tuple(outs)


@reads_values
@checked
def unique(
    x: Tensor,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    dtype: object = "int64",
    name: str | None = None,
) -> Any:
    """The different elements (or parts along an axis) in order; on request where each comes first, which of them each
    element is, and how often each comes. Looks at values."""
    axis = None if axis is None else normalize_axis(whole_number(axis), x.ndim, "paddle.unique")
    _, first, inverse, counts = np.unique(
        x.numpy(), return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    return _results(
        x,
        first,
        inverse if return_inverse else None,
        counts if return_counts else None,
        first if return_index else None,
        axis,
        dtype,
    )


@reads_values
@checked
def unique_consecutive(
    x: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    dtype: object = "int64",
    name: str | None = None,
) -> Any:
    """Without what equals the element (or the part along an axis) before it. Looks at values."""
    values = x.numpy()
    rows = values.reshape(-1, 1) if axis is None else np.moveaxis(values, axis, 0)
    rows = rows.reshape(rows.shape[0], math.prod(rows.shape[1:]))
    new = np.ones(rows.shape[0], bool)
    new[1:] = (rows[1:] != rows[:-1]).any(1)
    first = np.flatnonzero(new)
    inverse = np.cumsum(new) - 1
    counts = np.diff(np.append(first, rows.shape[0]))
    return _results(
        x, first, inverse if return_inverse else None, counts if return_counts else None, None, axis, dtype
    )
