"""What every geometric transform does with its Warp: apply it to all fields of a Sample."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any

import numpy as np

from framework.core.errors import ShapeError
from framework.core.transform import Transform
from framework.vision import boxes, masks
from framework.vision.image import Interpolation
from framework.vision.sample import Sample
from framework.vision.sample_transforms.checks import Fill, FlipPairs
from framework.vision.warp import Size, Warp

IGNORE_INDEX = 255


_WARP_OPTIONS = ("interpolation", "fill", "ignore_index", "min_visible", "keypoint_flip_pairs")


@dataclass(frozen=True)
class GeometricTransform(Transform[Sample]):
    """Plans a Warp and applies it to every field; fields of its own that `apply_warp` takes are handed on to it."""

    @abc.abstractmethod
    def plan(self, size_hw: Size, rng: np.random.Generator) -> Warp:
        """The warp for an image of `size_hw`."""
        ...

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        return apply_warp(sample, self.plan(sample.size_hw, rng), **warp_options(self))


def warp_options(transform: Transform[Sample]) -> dict[str, Any]:
    """The fields of a transform, a dataclass, that `apply_warp` takes."""
    return {name: value for name, value in vars(transform).items() if name in _WARP_OPTIONS}


def apply_warp(
    sample: Sample,
    warp: Warp,
    *,
    interpolation: Interpolation = "linear",
    fill: Fill = 0,
    ignore_index: int = IGNORE_INDEX,
    min_visible: float = 0.0,
    keypoint_flip_pairs: FlipPairs = (),
) -> Sample:
    """`sample` after `warp`, which was made for its present size.

    * `image`: by `interpolation`; `fill` outside.
    * `mask` by the nearest pixel: `[H, W]` classes get `ignore_index` outside, bool masks get False.
    * `boxes`: the upright bounds of the warped box, clipped to the image.
    * `polygons` are moved and not clipped.
    * `keypoints` that end outside the image become unlabelled: (0, 0, 0), as unlabelled ones are. Where the warp
      mirrors, the points of each of `keypoint_flip_pairs` change places.
    * An object is dropped from every field when nothing of its box is left in the image, or less than the share
      `min_visible` of the warped box's area. Without boxes the bounds of its polygon stand for it, else those of its
      mask; with none of the three no object is dropped.
    * `warp` is composed.

    Raises:
        ShapeError: the warp is for another size, `ignore_index` is needed and does not fit the mask's dtype, or a flip
            pair names a keypoint that is not there.
    """
    if warp.source_hw != sample.size_hw:
        raise ShapeError(
            "the warp is for images of another size",
            where="apply_warp",
            received=warp.source_hw,
            allowed=sample.size_hw,
        )
    if warp.size_hw == warp.source_hw and np.array_equal(warp.matrix, np.eye(3)):
        return sample
    changes: dict[str, object] = {
        "image": warp.image(sample.image, interpolation, fill),
        "warp": warp if sample.warp is None else sample.warp.then(warp),
        "source_size": sample.source_size or (sample.warp or warp).source_hw,
    }
    if sample.mask is not None:
        changes["mask"] = _mask(sample.mask, warp, ignore_index)
    if sample.boxes is not None:
        changes["boxes"] = boxes.clip(warp.boxes(sample.boxes), warp.size_hw)
    if sample.polygons is not None:
        changes["polygons"] = tuple(warp.points(polygon) for polygon in sample.polygons)
    if sample.keypoints is not None:
        changes["keypoints"] = _keypoints(sample.keypoints, warp, keypoint_flip_pairs)
    moved = sample.replace(**changes)
    extents = _extents(sample)
    return moved if extents is None else keep_objects(moved, _visible(extents, warp, min_visible))


def keep_objects(sample: Sample, kept: np.ndarray) -> Sample:
    """`sample` with the objects where `kept [K]` (bool) says so, in every field that has one entry an object."""
    if kept.all():
        return sample
    changes: dict[str, object] = {}
    for name in _RANKS:
        array = getattr(sample, name)
        if array is not None and array.ndim == _RANKS[name]:
            changes[name] = array[kept]
    for name in ("polygons", "text"):
        value = getattr(sample, name)
        if isinstance(value, tuple):
            changes[name] = tuple(item for item, keep in zip(value, kept, strict=True) if keep)
    return sample.replace(**changes)


# Ranks of the fields with one entry an object; a mask or a label of the whole image has one less.
_RANKS = {"mask": 3, "boxes": 2, "keypoints": 3, "labels": 1, "valid": 1, "areas": 1}


def _mask(mask: np.ndarray, warp: Warp, ignore_index: int) -> np.ndarray:
    if mask.ndim == 3:
        out = np.empty((len(mask), *warp.size_hw), mask.dtype)
        for index, one in enumerate(mask):
            out[index] = warp.mask(one)
        return out
    if mask.dtype == np.bool_:
        return warp.mask(mask)
    limits = np.iinfo(mask.dtype)
    if not limits.min <= ignore_index <= limits.max and _shows_outside(warp):
        raise ShapeError(
            "ignore_index does not fit the mask",
            where="apply_warp",
            received=f"ignore_index {ignore_index}, mask of {mask.dtype}",
            allowed=f"{limits.min} to {limits.max}",
            fix="set ignore_index to the value that the loss ignores, or store the mask in a wider dtype",
        )
    return warp.mask(mask, border=ignore_index)


def _shows_outside(warp: Warp) -> bool:
    height, width = warp.size_hw
    corners = warp.inverse().points(np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float64))
    return bool((corners < -1e-6).any() or (corners > np.array(warp.source_hw[::-1]) + 1e-6).any())


def move_keypoints(keypoints: np.ndarray, warp: Warp, pairs: FlipPairs = ()) -> np.ndarray:
    """`keypoints [K, J, 3]` after `warp`, also beside the image; unlabelled ones are (0, 0, 0).

    Where the warp mirrors, the points of each of `pairs` change places.

    Raises:
        ShapeError: a pair names a keypoint that is not there.
    """
    points = keypoints.shape[1]
    if pairs and max(map(max, pairs)) >= points:
        raise ShapeError(
            "keypoint_flip_pairs name a keypoint that is not there",
            where="apply_warp",
            received=pairs,
            allowed=f"indices below {points}, the number of keypoints",
        )
    out = keypoints.copy()
    out[..., :2] = warp.points(keypoints[..., :2])
    out[keypoints[..., 2] <= 0] = 0
    if pairs and np.linalg.det(warp.matrix[:2, :2]) < 0:
        order = np.arange(points)
        for left, right in pairs:
            order[left], order[right] = right, left
        out = out[:, order]
    return out


def _keypoints(keypoints: np.ndarray, warp: Warp, pairs: FlipPairs) -> np.ndarray:
    out = move_keypoints(keypoints, warp, pairs)
    inside = (out[..., :2] >= 0) & (out[..., :2] <= np.array(warp.size_hw[::-1]))
    out[~inside.all(axis=-1)] = 0
    return out


def _extents(sample: Sample) -> np.ndarray | None:
    """Boxes `[K, 4]` that stand for the objects, None where nothing tells where they are."""
    if sample.boxes is not None:
        return sample.boxes
    if sample.polygons is not None:
        bounds = [np.concatenate([xy.min(axis=0), xy.max(axis=0)]) for xy in sample.polygons]
        return np.array(bounds, np.float64).reshape(-1, 4)
    if sample.mask is not None and sample.mask.ndim == 3:
        return masks.to_boxes(sample.mask)
    return None


def _visible(extents: np.ndarray, warp: Warp, min_visible: float) -> np.ndarray:
    moved = warp.boxes(extents)
    left = boxes.area(boxes.clip(moved, warp.size_hw))
    return (left > 0) & (left >= min_visible * boxes.area(moved))
