"""`paddle.static.auc`: the area under the ROC curve over all batches, and over the last ones."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.static.program import create_global_var


def auc(
    input: Tensor,
    label: Tensor,
    curve: str = "ROC",
    num_thresholds: int = 4095,
    topk: int = 1,
    slide_steps: int = 1,
    ins_tag_weight: Tensor | None = None,
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """The area under the curve of all batches so far, of the last ones, and the counts behind them.

    Args:
        input: [N, C] probabilities, of which the last column counts; label: [N, 1] integers, of which 0 is negative.
        curve: "ROC"; kernels of Paddle know no other.
        num_thresholds: Bins of the probability, less one.
        slide_steps: How many batches the second value is of; 0: all.
        ins_tag_weight: Ignored, as in Paddle's kernel.

    Returns: (auc, batch_auc) float64 [], and [batch_stat_pos, batch_stat_neg, stat_pos, stat_neg], int64: positive and
    negative rows by bin. With `slide_steps` the first two hold the last batches, their sum and the number of batches.

    Raises: ValueError: another curve.
    """
    if curve != "ROC":
        raise ValueError(f"paddle.static.auc: curve={curve!r}; only ROC")
    bins = num_thresholds + 1
    shapes = ([(1 + slide_steps) * bins + 1] if slide_steps else [1, bins], [1, bins])
    batch, total = (
        [create_global_var(shape, 0, "int64", persistable=True) for _ in "pn"] for shape in shapes
    )
    areas = []
    for counts, steps in ((total, 0), (batch, slide_steps)):
        area, *new = _count(input, label, *counts, num_thresholds, steps)
        for one, value in zip(counts, new):
            one._value = value._value
        areas.append(area)
    return areas[0], areas[1], [*batch, *total]


@operation(differentiable=False)
def _count(
    predict: Array, label: Array, positive: Array, negative: Array, thresholds: int, steps: int
) -> tuple[Array, Array, Array]:
    """The area, and the counts with this batch."""
    place = jnp.clip((predict[:, -1] * thresholds).astype(jnp.int64), 0, thresholds)
    is_positive = label.reshape(-1) != 0
    counts = []
    for stored, of_kind in ((positive, is_positive), (negative, ~is_positive)):
        new = jnp.zeros(thresholds + 1, jnp.int64).at[place].add(of_kind.astype(jnp.int64))
        counts.append(_added(stored.reshape(-1), new, steps).reshape(stored.shape))
    sums = [one.reshape(-1)[steps * (thresholds + 1) :][: thresholds + 1] for one in counts]
    return _area(sums[0], sums[1]), counts[0], counts[1]


def _added(stored: Array, new: Array, steps: int) -> Array:
    """The stored counts with those of one batch, which takes the place of the one `steps` batches ago."""
    bins = len(new)
    if steps == 0:
        return stored.at[:bins].add(new)
    start = stored[-1] % steps * bins
    oldest = lax.dynamic_slice(stored, (start,), (bins,))
    stored = stored.at[steps * bins : (steps + 1) * bins].add(new - oldest).at[-1].add(1)
    return lax.dynamic_update_slice(stored, new, (start,))


def _area(positive: Array, negative: Array) -> Array:
    """The area under the curve of counts by bin, in straight lines; 0 where one kind has no rows, as in Paddle."""
    true, false = (jnp.cumsum(one[::-1].astype(jnp.float64)) for one in (positive, negative))
    before = jnp.concatenate([jnp.zeros(1, jnp.float64), true[:-1]])
    area = (negative[::-1].astype(jnp.float64) * (true + before) / 2).sum()
    both = (true[-1] > 0) & (false[-1] > 0)
    return jnp.where(both, area / jnp.where(both, true[-1] * false[-1], 1), 0.0)
