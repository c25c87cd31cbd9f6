"""`paddle.geometric`: messages along the edges of a graph, sums by segment, and samples of neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from framework.paddle._kernel.arguments import Integers
from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.random import default_generator
from framework.paddle._kernel.settings import reads_values
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.ops.joining import concat
from framework.paddle.ops.promotion import is_inexact, pair
from framework.paddle.ops.shaping import whole_number

__all__ = [
    "reindex_graph",
    "reindex_heter_graph",
    "sample_neighbors",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_sum",
    "send_u_recv",
    "send_ue_recv",
    "send_uv",
    "weighted_sample_neighbors",
]

_MESSAGES: dict[str, Callable[[jax.Array, jax.Array], jax.Array]] = {
    "add": jnp.add,
    "sub": jnp.subtract,
    "mul": jnp.multiply,
    "div": jnp.divide,
}
_REDUCTIONS = ("sum", "mean", "max", "min")


def _one_of(value: str, allowed: Sequence[str], what: str, where: str) -> None:
    if value not in allowed:
        raise ShapeError(f"unknown {what}", where=where, received=repr(value), allowed=", ".join(allowed))


def _reduced(rows: jax.Array, places: jax.Array, reduce: str, size: int) -> jax.Array:
    """rows [n, ...] reduced by their places [n] to [size, ...]; 0 where nothing goes."""
    empty = jnp.zeros((size, *rows.shape[1:]), rows.dtype)
    if reduce == "sum":
        return empty.at[places].add(rows)
    counts = jnp.zeros(size, jnp.int64).at[places].add(1).reshape(-1, *[1] * (rows.ndim - 1))
    if reduce == "mean":
        total = empty.at[places].add(rows)
        counts = jnp.maximum(counts, 1).astype(rows.dtype)
        return total / counts if is_inexact(rows) else total // counts
    fixed = lax.stop_gradient(rows)
    limits = jnp.finfo(rows.dtype) if is_inexact(rows) else jnp.iinfo(rows.dtype)
    if reduce == "max":
        found = jnp.full_like(empty, limits.min).at[places].max(fixed)
    else:
        found = jnp.full_like(empty, limits.max).at[places].min(fixed)
    found = jnp.where(counts > 0, found, 0)
    # The gradient goes to every row that is the greatest: scattering a maximum has none of its own.
    return found + empty.at[places].add(jnp.where(fixed == found[places], rows - fixed, 0))


@operation
def _segments(data: Array, segment_ids: Array, reduce: str, size: int) -> Array:
    return _reduced(data, segment_ids, reduce, size)


def _by_segment(data: Tensor, segment_ids: Tensor, reduce: str) -> Tensor:
    ids = segment_ids.numpy()
    if ids.ndim != 1 or data.ndim < 1 or ids.shape[0] != data.shape[0] or (np.diff(ids) < 0).any():
        raise ShapeError(
            "one segment for each row, in rising order",
            where=f"paddle.geometric.segment_{reduce}",
            received=f"data of shape {data.shape}, segment_ids of shape {list(ids.shape)}",
        )
    return _segments(data, segment_ids, reduce, int(ids[-1]) + 1 if ids.size else 0)


@reads_values
@checked
def segment_sum(data: Tensor, segment_ids: Tensor, name: str | None = None) -> Tensor:
    """The sums of the rows of each segment [n, ...] -> [segments, ...]. Looks at values of the ids, which rise."""
    return _by_segment(data, segment_ids, "sum")


@reads_values
@checked
def segment_mean(data: Tensor, segment_ids: Tensor, name: str | None = None) -> Tensor:
    """The means of the rows of each segment; 0 for a segment without rows."""
    return _by_segment(data, segment_ids, "mean")


@reads_values
@checked
def segment_max(data: Tensor, segment_ids: Tensor, name: str | None = None) -> Tensor:
    """The greatest elements of the rows of each segment; 0 for a segment without rows."""
    return _by_segment(data, segment_ids, "max")


@reads_values
@checked
def segment_min(data: Tensor, segment_ids: Tensor, name: str | None = None) -> Tensor:
    """The smallest elements of the rows of each segment; 0 for a segment without rows."""
    return _by_segment(data, segment_ids, "min")


def _size(x: Tensor, out_size: Any) -> int:
    size = 0 if out_size is None else whole_number(out_size)
    return size if size > 0 else x.shape[0]


@operation
def _send(x: Array, src: Array, dst: Array, reduce: str, size: int) -> Array:
    return _reduced(x[src], dst, reduce, size)


@checked
def send_u_recv(
    x: Tensor,
    src_index: Tensor,
    dst_index: Tensor,
    reduce_op: str = "sum",
    out_size: Integers | None = None,
    name: str | None = None,
) -> Tensor:
    """Row d of the result [out_size or n, ...] reduces the rows x[s] of the edges (s, d)."""
    _one_of(reduce_op, _REDUCTIONS, "reduction", "paddle.geometric.send_u_recv")
    return _send(x, src_index, dst_index, reduce_op, _size(x, out_size))


def _message(x: jax.Array, y: jax.Array, op: str) -> jax.Array:
    x, y = pair(x, y)
    # As many axes of features: missing ones come after the axis of the edges.
    ndim = max(x.ndim, y.ndim)
    x, y = (part.reshape(part.shape[0], *[1] * (ndim - part.ndim), *part.shape[1:]) for part in (x, y))
    return _MESSAGES[op](x, y)


@operation
def _send_with_edges(
    x: Array, y: Array, src: Array, dst: Array, message: str, reduce: str, size: int
) -> Array:
    return _reduced(_message(x[src], y, message), dst, reduce, size)


@checked
def send_ue_recv(
    x: Tensor,
    y: Tensor,
    src_index: Tensor,
    dst_index: Tensor,
    message_op: str = "add",
    reduce_op: str = "sum",
    out_size: Integers | None = None,
    name: str | None = None,
) -> Tensor:
    """Row d of the result reduces the messages x[s] + y[e] (or -, *, /) of the edges e = (s, d)."""
    _one_of(message_op, tuple(_MESSAGES), "message", "paddle.geometric.send_ue_recv")
    _one_of(reduce_op, _REDUCTIONS, "reduction", "paddle.geometric.send_ue_recv")
    return _send_with_edges(x, y, src_index, dst_index, message_op, reduce_op, _size(x, out_size))


@operation
def _between(x: Array, y: Array, src: Array, dst: Array, message: str) -> Array:
    return _message(x[src], y[dst], message)


@checked
def send_uv(
    x: Tensor,
    y: Tensor,
    src_index: Tensor,
    dst_index: Tensor,
    message_op: str = "add",
    name: str | None = None,
) -> Tensor:
    """Row e of the result is x[s] + y[d] (or -, *, /) of the edge e = (s, d)."""
    _one_of(message_op, tuple(_MESSAGES), "message", "paddle.geometric.send_uv")
    return _between(x, y, src_index, dst_index, message_op)


@reads_values
@checked
def reindex_graph(
    x: Tensor,
    neighbors: Tensor,
    count: Tensor,
    value_buffer: Tensor | None = None,
    index_buffer: Tensor | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The edges of sampled neighbours, nodes numbered from 0: their sources, their destinations, and the nodes (those
    of `x` first, then neighbours as they come). Looks at values; the buffers are not used."""
    nodes, around, counts = x.numpy().reshape(-1), neighbors.numpy().reshape(-1), count.numpy().reshape(-1)
    everyone, first, numbers = np.unique(
        np.concatenate([nodes, around]), return_index=True, return_inverse=True
    )
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    sources = rank[numbers.reshape(-1)[nodes.size :]].astype(nodes.dtype)
    # Several graphs one after the other: the counts begin again with the first node.
    owners = np.repeat(np.arange(counts.size) % max(nodes.size, 1), counts).astype(nodes.dtype)
    return Tensor(sources), Tensor(owners), Tensor(everyone[order])


@checked
def reindex_heter_graph(
    x: Tensor,
    neighbors: Sequence[Tensor],
    count: Sequence[Tensor],
    value_buffer: Tensor | None = None,
    index_buffer: Tensor | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """`reindex_graph` for neighbours in several graphs with the same nodes `x`."""
    return reindex_graph(x, concat(list(neighbors)), concat(list(count)))


def _sampled(
    row: Tensor,
    colptr: Tensor,
    weights: np.ndarray | None,
    input_nodes: Tensor,
    sample_size: int,
    eids: Tensor | None,
    return_eids: bool,
    where: str,
) -> tuple[Tensor, ...]:
    if return_eids and eids is None:
        raise ShapeError("return_eids needs eids", where=where, received="eids=None")
    rows, ends = row.numpy().reshape(-1), colptr.numpy().reshape(-1)
    generator = np.random.default_rng(np.asarray(default_generator.next_key()))
    edges: list[np.ndarray] = []
    for node in input_nodes.numpy().reshape(-1):
        own = np.arange(int(ends[node]), int(ends[node + 1]))
        if 0 <= sample_size < own.size:
            chances = None if weights is None else weights[own] / weights[own].sum()
            own = generator.choice(own, sample_size, replace=False, p=chances)
        edges.append(own)
    chosen = np.concatenate(edges) if edges else np.zeros(0, np.int64)
    counts = np.asarray([own.size for own in edges], np.int32)
    outs = (Tensor(rows[chosen]), Tensor(counts))
    return (*outs, Tensor(eids.numpy().reshape(-1)[chosen])) if return_eids and eids is not None else outs


@reads_values
@checked
def sample_neighbors(
    row: Tensor,
    colptr: Tensor,
    input_nodes: Tensor,
    sample_size: int = -1,
    eids: Tensor | None = None,
    return_eids: bool = False,
    perm_buffer: Tensor | None = None,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """Up to `sample_size` (-1: all) neighbours of each node, and how many of each, and on request the ids of the edges.
    The neighbours of node n are row[colptr[n] : colptr[n + 1]]. Looks at values."""
    where = "paddle.geometric.sample_neighbors"
    return _sampled(row, colptr, None, input_nodes, sample_size, eids, return_eids, where)


@checked
def weighted_sample_neighbors(
    row: Tensor,
    colptr: Tensor,
    edge_weight: Tensor,
    input_nodes: Tensor,
    sample_size: int = -1,
    eids: Tensor | None = None,
    return_eids: bool = False,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """`sample_neighbors` with chances in proportion to the weights of the edges."""
    where = "paddle.geometric.weighted_sample_neighbors"
    weights = edge_weight.numpy().reshape(-1).astype(np.float64)
    return _sampled(row, colptr, weights, input_nodes, sample_size, eids, return_eids, where)


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
