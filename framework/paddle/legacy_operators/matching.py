"""Matching of boxes with targets, and other steps of older detectors.

Source: paddle/fluid/operators/detection
"""

from __future__ import annotations

import itertools

import jax.numpy as jnp
import numpy as np

from framework.paddle.legacy_operators.operands import Operands, Outputs, Ragged, Table, offsets_of, registrar

OPERATORS: Table = {}
operator = registrar(OPERATORS)


def _match(distance: np.ndarray, per_prediction: bool, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """(the row of each column or -1, its distance): the greatest distances first, no row twice."""
    rows, columns = distance.shape
    index, value = np.full(columns, -1, np.int32), np.zeros(columns, distance.dtype)
    free = np.ones(rows, bool)
    for flat in np.argsort(-distance, axis=None, kind="stable"):
        row, column = divmod(int(flat), columns)
        if not free.any() or distance[row, column] <= 0:
            break
        if free[row] and index[column] < 0:
            index[column], value[column], free[row] = row, distance[row, column], False
    if per_prediction and rows:
        best = distance.argmax(0)
        largest = distance[best, np.arange(columns)]
        more = (index < 0) & (largest >= threshold)
        index[more], value[more] = best[more], largest[more]
    return index, value


@operator("bipartite_match")
def _bipartite_match(a: Operands) -> Outputs:
    distance = a.host("DistMat")
    offsets = offsets_of(a.lengths("DistMat")) if a.lod("DistMat") else np.array([0, len(distance)])
    options = a.attr("match_type", "bipartite") == "per_prediction", a.attr("dist_threshold", 0.5)
    results = [_match(distance[start:end], *options) for start, end in itertools.pairwise(offsets)]
    return {
        "ColToRowMatchIndices": np.stack([index for index, _ in results]),
        "ColToRowMatchDist": np.stack([value for _, value in results]),
    }


@operator("mine_hard_examples")
def _mine_hard_examples(a: Operands) -> Outputs:
    """The unmatched priors of the greatest losses."""
    match, distance = a.host("MatchIndices").copy(), a.host("MatchDist")
    hard = a.attr("mining_type", "max_negative") == "hard_example"
    loss = a.host("ClsLoss") + (a.host("LocLoss") if hard and a.get("LocLoss") is not None else 0)
    limit, ratio, size = (
        a.attr("neg_dist_threshold", 0.5),
        a.attr("neg_pos_ratio", 1.0),
        a.attr("sample_size", 0),
    )
    mined = []
    for row in range(len(match)):
        allowed = np.ones(match.shape[1], bool) if hard else (match[row] == -1) & (distance[row] < limit)
        candidates = np.flatnonzero(allowed)
        positives = int((match[row] != -1).sum())
        count = min(size if hard else int(positives * ratio), len(candidates))
        best = candidates[np.argsort(-loss[row, candidates], kind="stable")][:count]
        if hard:
            dropped = np.setdiff1d(np.flatnonzero(match[row] > -1), best)
            negatives = np.array([one for one in best if match[row, one] == -1], np.int64)
            match[row, dropped] = -1
            best = negatives
        mined.append(np.sort(best))
    flat = np.concatenate(mined)[:, None].astype(np.int32)
    return {
        "NegIndices": Ragged(jnp.asarray(flat), [[len(one) for one in mined]]),
        "UpdatedMatchIndices": match,
    }


@operator("target_assign")
def _target_assign(a: Operands) -> Outputs:
    """For each prior the row of X of its match, or `mismatch_value` with the weight 0."""
    x, match = a.host("X"), a.host("MatchIndices")
    offsets, missing = offsets_of(a.lengths("X")), a.attr("mismatch_value", 0)
    images, priors = match.shape
    out = np.full((images, priors, x.shape[-1]), missing, x.dtype)
    weight = np.zeros((images, priors, 1), np.float32)
    for image, column in np.argwhere(match > -1):
        row = x[offsets[image] + match[image, column]]
        out[image, column] = row[column % len(row)] if x.ndim == 3 else row
        weight[image, column] = 1
    if a.get("NegIndices") is not None:
        negatives = offsets_of(a.lengths("NegIndices"))
        for image, (start, end) in enumerate(itertools.pairwise(negatives)):
            columns = a.host("NegIndices")[start:end].ravel()
            out[image, columns], weight[image, columns] = missing, 1
    return {"Out": out, "OutWeight": weight}


@operator("box_clip")
def _box_clip(a: Operands) -> Outputs:
    """Boxes within their images; a row of ImInfo has height, width and scale."""
    boxes, info = a.array("Input"), a.host("ImInfo")
    lengths = a.lengths("Input") if a.lod("Input") else np.array([len(boxes)])
    size = np.round(info[:, :2] / info[:, 2:]) - 1
    limits = np.repeat(np.stack([size[:, 1], size[:, 0]] * 2, 1), lengths, 0)
    limits = limits.reshape(len(boxes), *[1] * (boxes.ndim - 2), 4)
    clipped = jnp.clip(boxes, 0, jnp.asarray(limits, boxes.dtype))
    return {"Output": Ragged(clipped, a.lod("Input") or [])}


@operator("anchor_generator")
def _anchor_generator(a: Operands) -> Outputs:
    """Anchors [height, width, anchors, 4] of all ratios, in each of all sizes."""
    height, width = a.array("Input").shape[2:]
    sizes, ratios = np.array(a.attr("anchor_sizes", [64.0])), np.array(a.attr("aspect_ratios", [1.0]))
    stride, offset = np.array(a.attr("stride", [16.0, 16.0])), a.attr("offset", 0.5)
    area = stride[0] * stride[1]
    base_width = np.round(np.sqrt(area / ratios))
    base_height = np.round(base_width * ratios)
    half_width = ((sizes[None, :] / stride[0]) * base_width[:, None]).ravel()
    half_height = ((sizes[None, :] / stride[1]) * base_height[:, None]).ravel()
    x = np.arange(width)[None, :, None] * stride[0] + offset * (stride[0] - 1)
    y = np.arange(height)[:, None, None] * stride[1] + offset * (stride[1] - 1)
    shape = (height, width, len(half_width))
    half_width, half_height = (half_width - 1) / 2, (half_height - 1) / 2
    sides = (x - half_width, y - half_height, x + half_width, y + half_height)
    anchors = np.stack([np.broadcast_to(side, shape) for side in sides], -1)
    variances = np.broadcast_to(a.attr("variances", [0.1, 0.1, 0.2, 0.2]), anchors.shape)
    return {"Anchors": anchors.astype(np.float32), "Variances": variances.astype(np.float32)}


@operator("density_prior_box")
def _density_prior_box(a: Operands) -> Outputs:
    """Boxes of all sizes at `density` x `density` places of each cell."""
    height, width = a.array("Input").shape[2:]
    image_height, image_width = a.array("Image").shape[2:]
    step_x = a.attr("step_w", 0.0) or image_width / width
    step_y = a.attr("step_h", 0.0) or image_height / height
    offset, average = a.attr("offset", 0.5), int((step_x + step_y) * 0.5)
    shifts = []
    for size, density in zip(a.attr("fixed_sizes", [32.0]), a.attr("densities", [1])):
        shift = int(average / density)
        for ratio in a.attr("fixed_ratios", [1.0]):
            half_x, half_y = size * np.sqrt(ratio) / 2, size / np.sqrt(ratio) / 2
            for row, column in itertools.product(range(density), repeat=2):
                first = -average / 2 + shift / 2
                shifts.append((first + column * shift, first + row * shift, half_x, half_y))
    x, y, half_x, half_y = np.array(shifts).T
    center_x = (np.arange(width)[None, :, None] + offset) * step_x + x
    center_y = (np.arange(height)[:, None, None] + offset) * step_y + y
    shape = (height, width, len(shifts))
    sides = (
        np.maximum((center_x - half_x) / image_width, 0),
        np.maximum((center_y - half_y) / image_height, 0),
        np.minimum((center_x + half_x) / image_width, 1),
        np.minimum((center_y + half_y) / image_height, 1),
    )
    boxes = np.stack([np.broadcast_to(side, shape) for side in sides], -1)
    boxes = np.clip(boxes, 0, 1) if a.attr("clip", False) else boxes
    variances = np.broadcast_to(a.attr("variances", [0.1, 0.1, 0.2, 0.2]), boxes.shape)
    flat = a.attr("flatten_to_2d", False)
    outputs = {"Boxes": boxes, "Variances": variances}
    return {name: (one.reshape(-1, 4) if flat else one).astype(np.float32) for name, one in outputs.items()}
