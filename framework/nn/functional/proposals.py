"""box_coder, prior_box, distribute_fpn_proposals and generate_proposals, Paddle's: boxes and their codes."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from framework.core.errors import ConfigError, ShapeError
from framework.core.types import PyTree
from framework.nn.functional.boxes import area, check_boxes, check_eager, pick_boxes
from framework.nn.functional.roi import image_of_box

_MAX_LOG_SCALE = math.log(1000 / 16)  # a proposal is at most so many times as large as its anchor


def box_coder(
    prior_box: jax.Array,
    prior_box_var: jax.Array | Sequence[float] | None,
    target_box: jax.Array,
    code_type: str = "encode_center_size",
    box_normalized: bool = True,
    axis: int = 0,
) -> jax.Array:
    """Boxes relative to priors as (centre shift / size, log of size / size), divided by variances, or back.

    Args:
        prior_box: [M, 4] xyxy; `box_normalized` False counts right and bottom as inclusive pixels.
        prior_box_var: [M, 4], four numbers, or None for ones.
        target_box: To encode, [N, 4] xyxy. To decode, codes [N, M, 4], or [N, 4] for one code a prior.
        code_type: "encode_center_size" or "decode_center_size".
        axis: To decode, the axis of the codes that priors do not run along: 0 for M priors, 1 for N.

    Returns:
        Encoded, [N, M, 4] of each box by each prior; decoded, xyxy in the shape of the codes.
    """
    if code_type not in ("encode_center_size", "decode_center_size") or axis not in (0, 1):
        raise ConfigError(
            "unknown kind of code",
            where="box_coder",
            received=f"code_type {code_type!r}, axis {axis}",
            allowed="encode_center_size or decode_center_size, axis 0 or 1",
        )
    priors = check_boxes(jnp.asarray(prior_box), "box_coder.prior_box")
    variances = jnp.ones(4) if prior_box_var is None else jnp.asarray(prior_box_var)
    variances = variances.astype(priors.dtype)
    target = jnp.asarray(target_box).astype(priors.dtype)
    extra = 0.0 if box_normalized else 1.0
    if code_type == "encode_center_size":
        return _encode(priors, variances, check_boxes(target, "box_coder.target_box"), extra)
    along = 0 if target.ndim == 2 else 1 - axis  # the codes' axis of priors
    if target.ndim not in (2, 3) or target.shape[-1] != 4 or target.shape[along] != priors.shape[0]:
        raise ShapeError(
            "codes and priors do not belong together",
            where="box_coder.target_box",
            received=f"codes {list(target.shape)}, priors {list(priors.shape)}, axis {axis}",
            allowed="[N, M, 4] with M priors for axis 0, N priors for axis 1",
        )
    if target.ndim == 3:
        place = (None, slice(None)) if axis == 0 else (slice(None), None)
        priors = priors[place]
        variances = variances[place] if variances.ndim == 2 else variances
    return _decode(priors, variances, target, extra)


@jax.jit
def _encode(priors: jax.Array, variances: jax.Array, boxes: jax.Array, extra: float) -> jax.Array:
    size = priors[:, 2:] - priors[:, :2] + extra
    centre = priors[:, :2] + size * 0.5
    boxes = boxes[:, None]
    shift = ((boxes[..., :2] + boxes[..., 2:]) * 0.5 - centre) / size
    scale = jnp.log(jnp.abs((boxes[..., 2:] - boxes[..., :2] + extra) / size))
    return jnp.concatenate([shift, scale], axis=-1) / variances


@jax.jit
def _decode(priors: jax.Array, variances: jax.Array, codes: jax.Array, extra: float) -> jax.Array:
    size = priors[..., 2:] - priors[..., :2] + extra
    centre = priors[..., :2] + size * 0.5
    code = codes * variances
    middle = code[..., :2] * size + centre
    half = jnp.exp(code[..., 2:]) * size / 2
    return jnp.concatenate([middle - half, middle + half - extra], axis=-1)


def prior_box(
    input: jax.Array,
    image: jax.Array,
    min_sizes: float | Sequence[float],
    max_sizes: float | Sequence[float] | None = None,
    aspect_ratios: float | Sequence[float] = (1.0,),
    variance: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    flip: bool = False,
    clip: bool = False,
    steps: float | Sequence[float] = (0.0, 0.0),
    offset: float = 0.5,
    min_max_aspect_ratios_order: bool = False,
) -> tuple[jax.Array, jax.Array]:
    """The priors of SSD at each place of a feature map, and their variances, both [H, W, P, 4].

    Source: Liu et al. 2016, "SSD", section 2.2.

    Args:
        input: The map [N, H, W, C]; `image` [N, H, W, C]: the image that boxes are shares of. Only shapes count.
        min_sizes: Sides in pixels of the image; each with one of `max_sizes` also gives the square of their geometric
            mean.
        aspect_ratios: Width / height, besides 1; with `flip` their inverses too.
        clip: Cuts boxes at 0 and 1.
        steps: (x, y) pixels of the image from one place to the next; 0 for image / map.
        offset: Where in a step the centre is.
        min_max_aspect_ratios_order: The square of `max_sizes` comes second, as in Caffe, instead of last.
    """
    mins, maxs = _to_list(min_sizes), [] if max_sizes is None else _to_list(max_sizes)
    if (maxs and len(maxs) != len(mins)) or not mins or input.ndim != 4 or image.ndim != 4:
        raise ConfigError(
            "sizes or maps do not fit",
            where="prior_box",
            received=f"min_sizes {mins}, max_sizes {maxs}, input {list(input.shape)}, image {list(image.shape)}",
            allowed="as many max_sizes as min_sizes, or none; maps [N, H, W, C]",
        )
    ratios = [1.0]
    for ratio in _to_list(aspect_ratios):
        for value in (ratio, 1 / ratio) if flip else (ratio,):
            if all(abs(value - known) >= 1e-6 for known in ratios):
                ratios.append(value)
    sides: list[tuple[float, float]] = []
    for place, side in enumerate(mins):
        shaped = [(side * math.sqrt(ratio), side / math.sqrt(ratio)) for ratio in ratios]
        square = [(math.sqrt(side * maxs[place]),) * 2] if maxs else []
        first = 1 if min_max_aspect_ratios_order else len(shaped)
        sides += [*shaped[:first], *square, *shaped[first:]]
    size_wh = np.array([image.shape[2], image.shape[1]], np.float64)
    map_wh = np.array([input.shape[2], input.shape[1]])
    given = np.array((steps,) * 2 if isinstance(steps, int | float) else steps, np.float64)
    step = np.where((given == 0).any(), size_wh / map_wh, given)
    x, y = ((np.arange(count) + offset) * pace for count, pace in zip(map_wh, step, strict=True))
    centre = np.stack(np.meshgrid(x, y), axis=-1)[:, :, None]  # [H, W, 1, 2]
    half = np.array(sides) / 2
    boxes = np.concatenate([(centre - half) / size_wh, (centre + half) / size_wh], axis=-1).astype(np.float32)
    out = jnp.asarray(boxes.clip(0, 1) if clip else boxes)
    return out, jnp.broadcast_to(jnp.asarray(variance, jnp.float32), out.shape)


def _to_list(values: float | Sequence[float]) -> list[float]:
    return [float(values)] if isinstance(values, int | float) else [float(value) for value in values]


def distribute_fpn_proposals(
    fpn_rois: jax.Array,
    min_level: int,
    max_level: int,
    refer_level: int,
    refer_scale: float,
    pixel_offset: bool = False,
    rois_num: jax.Array | None = None,
    *,
    padded: bool = False,
) -> tuple[list[jax.Array], jax.Array, list[jax.Array]]:
    """Proposals by the level of a feature pyramid that fits their size.

    Source: Lin et al. 2017, "Feature Pyramid Networks", equation 1.

    Args:
        fpn_rois: [R, 4] xyxy, those of one image after another; `rois_num` [N] of each, None for one image.
        refer_level, refer_scale: Boxes of `refer_scale` squared pixels belong to `refer_level`.
        pixel_offset: Right and bottom are inclusive.
        padded: Fixed shapes, for jit: each level is [R, 4], zeros behind its boxes.

    Returns:
        (boxes of each level, restore_index [R, 1], numbers of boxes [N] of each level). `concatenate(boxes)` in the
        order of restore_index is `fpn_rois`; padded, index into the levels laid one behind the other.
    """
    rois = check_boxes(jnp.asarray(fpn_rois), "distribute_fpn_proposals.fpn_rois")
    if not 0 < min_level < max_level:
        raise ConfigError(
            "the levels must ascend from 1",
            where="distribute_fpn_proposals",
            received=f"{min_level} to {max_level}",
            allowed="0 < min_level < max_level",
        )
    if not padded:
        check_eager("distribute_fpn_proposals")
    count = rois.shape[0]
    numbers = jnp.full(1, count, jnp.int32) if rois_num is None else jnp.asarray(rois_num)
    outs, restore, counts = _distribute(
        rois,
        numbers,
        levels=(min_level, max_level),
        reference=(refer_level, float(refer_scale)),
        offset=1.0 if pixel_offset else 0.0,
    )
    if not padded:
        totals = [int(per_image.sum()) for per_image in counts]
        starts = np.concatenate([[0], np.cumsum(totals)[:-1]]) - np.arange(len(totals)) * count
        restore = restore + jnp.asarray(starts, jnp.int32)[restore // max(count, 1)]
        outs = [boxes[:total] for boxes, total in zip(outs, totals, strict=True)]
    return outs, restore[:, None], counts


@functools.partial(jax.jit, static_argnames=("levels", "reference", "offset"))
def _distribute(
    rois: jax.Array,
    numbers: jax.Array,
    *,
    levels: tuple[int, int],
    reference: tuple[int, float],
    offset: float,
) -> tuple[list[jax.Array], jax.Array, list[jax.Array]]:
    """(boxes of each level [R, 4], index [R] into all of them, numbers of boxes [N] of each level)."""
    count = rois.shape[0]
    level = jnp.floor(jnp.log2(jnp.sqrt(area(rois, offset)) / reference[1] + 1e-6) + reference[0])
    level = jnp.clip(level, *levels).astype(jnp.int32)
    image = image_of_box(numbers, count)
    outs, counts, restore = [], [], jnp.zeros(count, jnp.int32)
    for place, number in enumerate(range(levels[0], levels[1] + 1)):
        mine = (level == number) & (image < numbers.shape[0])
        rank = jnp.cumsum(mine) - 1
        outs.append(jnp.zeros_like(rois).at[jnp.where(mine, rank, count)].set(rois, mode="drop"))
        per_image = jnp.zeros(numbers.shape[0], jnp.int32).at[image].add(mine.astype(jnp.int32), mode="drop")
        counts.append(per_image)
        restore = jnp.where(mine, place * count + rank, restore).astype(jnp.int32)
    return outs, restore, counts


def generate_proposals(
    scores: jax.Array,
    bbox_deltas: jax.Array,
    img_size: jax.Array,
    anchors: jax.Array,
    variances: jax.Array,
    pre_nms_top_n: int = 6000,
    post_nms_top_n: int = 1000,
    nms_thresh: float = 0.5,
    min_size: float = 0.1,
    eta: float = 1.0,
    pixel_offset: bool = False,
    *,
    padded: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Proposals of a region proposal network: the best anchors, moved, clipped, without small ones and overlaps.

    Source: Ren et al. 2015, "Faster R-CNN", section 3.1.

    Args:
        scores: [N, H, W, A]; bbox_deltas [N, H, W, A * 4], four numbers an anchor.
        img_size: [N, 2] height and width.
        anchors, variances: [H, W, A, 4] or [H * W * A, 4]; anchors xyxy, variances multiply the deltas.
        min_size: Shorter sides are dropped; below 1 it counts as 1.
        eta: Below 1 the threshold of overlap is multiplied by it after each box that stays, down to 0.5.
        pixel_offset: Right and bottom are inclusive, and boxes whose centre is off the image are dropped.
        padded: Fixed shapes, for jit: [N, K, 4] and [N, K], zeros behind the numbers; K is at most post_nms_top_n.

    Returns:
        (boxes [R, 4], their scores [R, 1], the numbers of boxes [N]), the best of each image first. An image
        without a proposal has one box of zeros.
    """
    count = math.prod(scores.shape[1:])
    flat_anchors, flat_variances = anchors.reshape(-1, 4), variances.reshape(-1, 4)
    if bbox_deltas.size != scores.size * 4 or flat_anchors.shape[0] != count:
        raise ShapeError(
            "scores, deltas and anchors do not belong together",
            where="generate_proposals",
            received=f"{list(scores.shape)}, {list(bbox_deltas.shape)}, {list(anchors.shape)}",
            allowed="[N, H, W, A], [N, H, W, A * 4], [H, W, A, 4]",
        )
    if not padded:
        check_eager("generate_proposals")
    best = count if pre_nms_top_n <= 0 else min(pre_nms_top_n, count)
    rois, probabilities, numbers = _propose(
        scores.reshape(scores.shape[0], count),
        bbox_deltas.reshape(scores.shape[0], count, 4),
        jnp.asarray(img_size),
        flat_anchors,
        flat_variances,
        sizes=(best, best if post_nms_top_n <= 0 else min(post_nms_top_n, best)),
        limits=(float(nms_thresh), max(float(min_size), 1.0), float(eta)),
        offset=1.0 if pixel_offset else 0.0,
    )
    if not padded:
        there = np.arange(rois.shape[1]) < np.asarray(numbers)[:, None]
        rois, probabilities = np.asarray(rois)[there], np.asarray(probabilities)[there][:, None]
        rois, probabilities = jnp.asarray(rois), jnp.asarray(probabilities)
    return rois, probabilities, numbers


@functools.partial(jax.jit, static_argnames=("sizes", "limits", "offset"))
def _propose(
    scores: jax.Array,
    deltas: jax.Array,
    sizes_hw: jax.Array,
    anchors: jax.Array,
    variances: jax.Array,
    *,
    sizes: tuple[int, int],
    limits: tuple[float, float, float],
    offset: float,
) -> PyTree:
    (compared, kept), (threshold, least, eta) = sizes, limits

    def of_image(scores: jax.Array, deltas: jax.Array, size_hw: jax.Array) -> PyTree:
        best, place = lax.top_k(scores, compared)
        anchor, code = anchors[place], deltas[place] * variances[place]
        size = anchor[:, 2:] - anchor[:, :2] + offset
        middle = code[:, :2] * size + anchor[:, :2] + 0.5 * size
        half = jnp.exp(jnp.minimum(code[:, 2:], _MAX_LOG_SCALE)) * size / 2
        edge = jnp.concatenate([size_hw[::-1]] * 2).astype(half.dtype) - offset
        boxes = jnp.clip(jnp.concatenate([middle - half, middle + half - offset], axis=1), 0, edge)
        sides = boxes[:, 2:] - boxes[:, :2] + offset
        valid = (sides >= least).all(axis=1)
        if offset:
            valid &= (boxes[:, :2] + sides / 2 <= size_hw[::-1]).all(axis=1)
        limit = threshold if threshold > 0 else float("inf")
        stays = pick_boxes(boxes, valid, kept, limit, eta, offset)
        found = jnp.where(stays[:, None] >= 0, boxes[stays], 0)
        probability = jnp.where(stays >= 0, best[stays], 0)
        return found, probability, jnp.clip((stays >= 0).sum(dtype=jnp.int32), 1, kept)

    return jax.vmap(of_image)(scores, deltas, sizes_hw)
