"""ONNX operators that read and write at indices."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from framework.core.errors import ShapeError
from framework.interop.graph.onnx.elementwise import namespace
from framework.interop.graph.operator import Call, Table, registrar
from framework.interop.graph.values import Array, Dim, Item, Value, is_known
from framework.nn import functional as F
from framework.nn.functional.boxes import pick_boxes
from framework.vision import boxes as host_boxes

OPERATORS: Table = {}
operator = registrar(OPERATORS)


def positive(index: Array, size: int) -> Array:
    """Indices counted from the front."""
    return namespace(index).where(index < 0, index + size, index)


def _check(call: Call, index: Array, size: Dim) -> None:
    if isinstance(index, Tracer) or not isinstance(size, int) or not index.size:
        return
    index = np.asarray(index)
    if index.min() < -size or index.max() >= size:
        raise call.error(
            "an index is outside of the axis",
            ShapeError,
            received=f"{index.min()} to {index.max()}",
            allowed=f"{-size} to {size - 1}",
        )


@operator("Gather", folds=True, weights=(0,))
def _gather(call: Call, x: Array, index: Array) -> Array:
    axis = call.axis(call.attr("axis", 0), x.ndim)
    if is_known(x, index):
        try:
            return np.take(x, index.astype(np.int64), axis)
        except IndexError:
            _check(call, index, x.shape[axis])
            raise
    _check(call, index, x.shape[axis])
    if (
        x.shape[axis] == 0 and 0 in index.shape
    ):  # there jnp.take gives x itself, whatever the axes of the index
        return jnp.zeros((*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]), x.dtype)
    return jnp.take(x, positive(index, x.shape[axis]), axis, mode="clip")


@operator("GatherElements", folds=True)
def _gather_elements(call: Call, x: Array, index: Array) -> Array:
    axis = call.axis(call.attr("axis", 0), x.ndim)
    _check(call, index, x.shape[axis])
    cuts = tuple(slice(0, n) if i != axis else slice(None) for i, n in enumerate(index.shape))
    return namespace(x, index).take_along_axis(x[cuts], positive(index, x.shape[axis]), axis)


@operator("GatherND", folds=True)
def _gather_nd(call: Call, x: Array, index: Array) -> Array:
    skipped, depth = call.attr("batch_dims", 0), index.shape[-1]
    xp = namespace(x, index)
    batch = []
    for axis in range(skipped):
        shape = [1] * (index.ndim - 1)
        shape[axis] = x.shape[axis]
        batch.append(xp.arange(x.shape[axis]).reshape(shape))
    positions = [positive(index[..., i], x.shape[skipped + i]) for i in range(depth)]
    if not batch and not positions:  # the whole for each position, as Paddle's gather_nd has it
        return xp.broadcast_to(x, (*index.shape[:-1], *x.shape))
    return x[(*batch, *positions)]


def _combine(target: Array, positions: tuple | Array, updates: Array, mode: str) -> Array:
    if isinstance(target, np.ndarray):
        result = np.array(target)
        if mode == "none":
            result[positions] = updates
        else:
            {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[mode].at(
                result, positions, updates
            )
        return result
    at = target.at[positions]
    functions = {"none": at.set, "add": at.add, "mul": at.multiply, "max": at.max, "min": at.min}
    return functions[mode](updates)


def _check_updates(call: Call, updates: Array, shape: tuple[Dim, ...]) -> None:
    """Refuse updates of another shape, which arithmetic would spread over all indices."""
    if updates.shape != shape:
        raise call.error(
            "updates of another shape than their indices", ShapeError, received=updates.shape, allowed=shape
        )


def _same_along(index: np.ndarray, axis: int) -> np.ndarray | None:
    """The indices [n] of an axis, where they are the same at all positions of the others."""
    if not index.size:
        return None
    along = np.moveaxis(index, axis, 0).reshape(index.shape[axis], -1)
    return along[:, 0] if (along == along[:, :1]).all() else None


@operator("ScatterElements", "Scatter", folds=True)
def _scatter_elements(call: Call, x: Array, index: Array, updates: Array) -> Array:
    axis, xp = call.axis(call.attr("axis", 0), x.ndim), namespace(x, index, updates)
    _check_updates(call, updates, index.shape)
    _check(call, index, x.shape[axis])
    along = _same_along(np.asarray(index), axis) if is_known(x, index, updates) else None
    if along is not None:  # whole slices, which numpy writes faster than numbers one by one
        cuts = tuple(slice(0, n) for n in index.shape[:axis])
        rest = tuple(slice(0, n) for n in index.shape[axis + 1 :])
        rows = (*cuts, positive(along, x.shape[axis]), *rest)
        return _combine(x, rows, updates, call.attr("reduction", "none"))
    positions = []
    for i, n in enumerate(index.shape):
        shape = [1] * x.ndim
        shape[i] = n
        positions.append(xp.arange(n).reshape(shape))
    positions[axis] = positive(index, x.shape[axis])
    return _combine(x, tuple(positions), updates, call.attr("reduction", "none"))


@operator("ScatterND", folds=True)
def _scatter_nd(call: Call, x: Array, index: Array, updates: Array) -> Array:
    _check_updates(call, updates, (*index.shape[:-1], *x.shape[index.shape[-1] :]))
    positions = tuple(positive(index[..., i], x.shape[i]) for i in range(index.shape[-1]))
    return _combine(x, positions, updates, call.attr("reduction", "none"))


@operator("TensorScatter")
def _tensor_scatter(
    call: Call, cache: jax.Array, update: jax.Array, start: jax.Array | None = None
) -> jax.Array:
    """`update` written into `cache` along `axis`, for each row of the batch from its own start."""
    axis = call.axis(call.attr("axis", -2), cache.ndim)
    begin = jnp.zeros(cache.shape[0], jnp.int32) if start is None else start
    size, count = cache.shape[axis], update.shape[axis]
    at = begin[:, None] + jnp.arange(count)
    at = at % size if call.attr("mode", "linear") == "circular" else at
    moved, new = jnp.moveaxis(cache, axis, 1), jnp.moveaxis(update, axis, 1)
    return jnp.moveaxis(moved.at[jnp.arange(cache.shape[0])[:, None], at].set(new), 1, axis)


@operator("NonZero", style="values")
def _non_zero(call: Call, x: Item) -> Item:
    return np.stack(np.nonzero(call.static(x, "the values of NonZero"))).astype(np.int64)


@operator("Compress", static=(1,), folds=True)
def _compress(call: Call, x: Array, condition: Item) -> Array:
    rows = np.flatnonzero(call.static(condition, "the condition of Compress"))
    axis = call.attr("axis")
    if axis is None:
        return x.reshape(-1)[rows]
    return namespace(x).take(x, rows, call.axis(axis, x.ndim))


# -- losses of training graphs --------------------------------------------------------------------------------------


def _negative_likelihood(
    call: Call, log_p: jax.Array, target: jax.Array, weight: jax.Array | None
) -> jax.Array:
    """log_p [N, C, ...] and classes [N, ...] -> the loss, reduced as the node says."""
    ignored, classes = call.attr("ignore_index"), log_p.shape[1]
    counts = jnp.ones(target.shape, bool) if ignored is None else target != ignored
    safe = jnp.where(counts, target, 0)
    picked = jnp.take_along_axis(log_p, jnp.expand_dims(safe, 1), 1).squeeze(1)
    share = counts.astype(log_p.dtype) * (
        1 if weight is None else jnp.take(weight, jnp.clip(safe, 0, classes - 1))
    )
    loss = -picked * share
    match call.attr("reduction", "mean"):
        case "none":
            return loss
        case "sum":
            return loss.sum()
    return loss.sum() / share.sum()


@operator("NegativeLogLikelihoodLoss")
def _nll_loss(call: Call, log_p: jax.Array, target: jax.Array, weight: jax.Array | None = None) -> jax.Array:
    return _negative_likelihood(call, log_p, target, weight)


@operator("SoftmaxCrossEntropyLoss")
def _cross_entropy(
    call: Call, scores: jax.Array, target: jax.Array, weight: jax.Array | None = None
) -> tuple[jax.Array, jax.Array]:
    log_p = F.log_softmax(scores, 1)
    return _negative_likelihood(call, log_p, target, weight), log_p


# -- boxes --------------------------------------------------------------------------------------------------------


@operator("NonMaxSuppression", style="values", grows=True)
def _nms(
    call: Call, boxes: Item, scores: Item, most: Item = None, overlap: Item = None, least: Item = None
) -> Item:
    """[K, 3] of (image, class, box). Eagerly K is what is kept. In a compiled program there is one row for each that
    could be kept, `max_output_boxes_per_class` of each class, and rows of -1 fill up; they come last."""
    limit = 0 if most is None else int(call.number(most, "max_output_boxes_per_class"))
    iou = 0.0 if overlap is None else float(call.number(overlap, "iou_threshold"))
    threshold = None if least is None else float(call.number(least, "score_threshold"))
    b, s = (item.logical() if isinstance(item, Value) else np.asarray(item) for item in (boxes, scores))
    if call.attr("center_point_box"):
        centre, half = b[..., :2], b[..., 2:] / 2
        b = namespace(b).concatenate([centre - half, centre + half], -1)
    b = _corners(b)
    if not isinstance(b, Tracer) and not isinstance(s, Tracer):
        return _exact_nms(np.asarray(b), np.asarray(s), limit, iou, threshold)
    limit = min(limit, b.shape[1])
    one_class = jax.vmap(lambda bs, sc: _padded_nms(bs, sc, limit, iou, threshold), (None, 0))
    picked = jax.vmap(one_class)(jnp.asarray(b), jnp.asarray(s))  # [N, classes, limit]
    image = lax.broadcasted_iota(jnp.int32, picked.shape, 0)
    label = lax.broadcasted_iota(jnp.int32, picked.shape, 1)
    rows = jnp.stack([image, label, picked], -1).reshape(-1, 3)
    rows = jnp.where(rows[:, 2:] < 0, -1, rows)
    return Value.of(rows[jnp.argsort(rows[:, 2] < 0, stable=True)])


def _corners(boxes: Array) -> Array:
    """Two opposite corners in any order as (smaller, larger)."""
    xp, a, b = namespace(boxes), boxes[..., :2], boxes[..., 2:]
    return xp.concatenate([xp.minimum(a, b), xp.maximum(a, b)], -1)


def _exact_nms(
    boxes: np.ndarray, scores: np.ndarray, limit: int, iou: float, threshold: float | None
) -> np.ndarray:
    picked = [np.zeros((0, 3), np.int64)]
    for image, label in np.ndindex(scores.shape[:2]):
        values = scores[image, label]
        queue = np.argsort(-values, kind="stable")
        queue = queue if threshold is None else queue[values[queue] > threshold]
        stays = queue[host_boxes.suppress(boxes[image, queue], iou, count=limit)]
        picked.append(np.stack([np.full_like(stays, image), np.full_like(stays, label), stays], 1))
    return np.concatenate(picked)


def _padded_nms(
    boxes: jax.Array, scores: jax.Array, limit: int, iou: float, threshold: float | None
) -> jax.Array:
    """The kept boxes of one class, best first, and -1."""
    order = jnp.argsort(-scores, stable=True).astype(jnp.int32)
    valid = scores[order] > (-jnp.inf if threshold is None else threshold)
    picked = pick_boxes(boxes[order], valid, limit, iou)
    return jnp.where(picked < 0, -1, order[picked])
