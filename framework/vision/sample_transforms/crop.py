"""Transforms that keep a part of the image."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError
from framework.core.transform import Transform
from framework.vision import boxes as box_ops
from framework.vision.image import Interpolation
from framework.vision.sample import Sample
from framework.vision.sample_transforms.apply import (
    IGNORE_INDEX,
    GeometricTransform,
    apply_warp,
    keep_objects,
)
from framework.vision.sample_transforms.checks import Fill, check_fill, check_number, check_range, check_size
from framework.vision.warp import Size, Warp


@register("transform")
@dataclass(frozen=True)
class CenterCrop(GeometricTransform):
    """Cuts `size_hw` out of the middle; a smaller image is put into the middle of `fill`.

    Where the middle falls between two pixels, the crop begins at the first of them.

    Raises:
        ConfigError: a side is smaller than 1, or a fill or a share is out of range.
    """

    size_hw: Size
    fill: Fill = 0
    ignore_index: int = IGNORE_INDEX
    min_visible: float = 0.0

    def __post_init__(self) -> None:
        check_size(self)
        check_fill(self)
        check_number(self, "min_visible", 0, 1)

    def plan(self, size_hw: Size, rng: np.random.Generator) -> Warp:
        top, left = ((side - wanted) // 2 for side, wanted in zip(size_hw, self.size_hw, strict=True))
        return Warp.crop(size_hw, (left, top, left + self.size_hw[1], top + self.size_hw[0]))


@register("transform")
@dataclass(frozen=True)
class RandomCrop(GeometricTransform):
    """Cuts `size_hw` out at a random place, of an image with `padding` pixels of `fill` put around it.

    A side that is still too short is filled up, with the image at a random place in it.

    Raises:
        ConfigError: a side is smaller than 1, the padding is negative, or a fill or a share is out of range.
    """

    size_hw: Size
    padding: int = 0
    fill: Fill = 0
    ignore_index: int = IGNORE_INDEX
    min_visible: float = 0.0

    def __post_init__(self) -> None:
        check_size(self)
        check_number(self, "padding", 0)
        check_fill(self)
        check_number(self, "min_visible", 0, 1)

    def plan(self, size_hw: Size, rng: np.random.Generator) -> Warp:
        starts = []
        for side, wanted in zip(size_hw, self.size_hw, strict=True):
            room = side + 2 * self.padding - wanted
            starts.append(int(rng.integers(min(0, room), max(0, room) + 1)) - self.padding)
        top, left = starts
        return Warp.crop(size_hw, (left, top, left + self.size_hw[1], top + self.size_hw[0]))


@register("transform")
@dataclass(frozen=True)
class RandomResizedCrop(GeometricTransform):
    """Cuts out a random part of the image and scales it to `size_hw`: the crop that ImageNet classifiers train on.

    The part has a share of the image's area from `scale` and width / height from `ratio` (drawn in its logarithm).
    After ten parts that did not fit, it is the middle of the image with the nearest possible ratio.

    Source: Szegedy et al., "Going Deeper with Convolutions", section 6.

    Raises:
        ConfigError: a side is smaller than 1, a range is empty, not above 0 or (`scale`) above 1.
    """

    size_hw: Size
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    interpolation: Interpolation = "linear"
    min_visible: float = 0.0

    def __post_init__(self) -> None:
        check_size(self)
        check_range(self, "scale", 0, 1, above=True)
        check_range(self, "ratio", 0, above=True)
        check_number(self, "min_visible", 0, 1)

    def plan(self, size_hw: Size, rng: np.random.Generator) -> Warp:
        x0, y0, x1, y1 = self._part(size_hw, rng)
        scale_x, scale_y = self.size_hw[1] / (x1 - x0), self.size_hw[0] / (y1 - y0)
        matrix = np.array([[scale_x, 0, -x0 * scale_x], [0, scale_y, -y0 * scale_y], [0, 0, 1]])
        return Warp(matrix, self.size_hw, size_hw)

    def _part(self, size_hw: Size, rng: np.random.Generator) -> tuple[int, int, int, int]:
        height, width = size_hw
        least, most = math.log(self.ratio[0]), math.log(self.ratio[1])
        for _ in range(10):
            area = height * width * rng.uniform(*self.scale)
            ratio = math.exp(rng.uniform(least, most))
            h, w = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
            if 0 < h <= height and 0 < w <= width:
                y, x = int(rng.integers(height - h + 1)), int(rng.integers(width - w + 1))
                return x, y, x + w, y + h
        ratio = min(max(width / height, self.ratio[0]), self.ratio[1])
        h, w = min(height, max(1, round(width / ratio))), min(width, max(1, round(height * ratio)))
        y, x = (height - h) // 2, (width - w) // 2
        return x, y, x + w, y + h


@register("transform")
@dataclass(frozen=True)
class RandomIoUCrop(Transform[Sample]):
    """Cuts out a random part that at least one object overlaps with an IoU of a random one of `thresholds`.

    Objects stay where their centre lies in the part; at least one must. The part's sides are a share from `scale` of
    the image's, apart from a stretch from `ratio` (width / height). A threshold for which `attempts` parts did not
    fit gives way to the next. With `allow_no_crop`, leaving the image as it is has the chance of one more threshold.
    Images without objects stay as they are; objects to ignore do not count.

    Source: Liu et al., "SSD", section 2.2, as PaddleDetection's RandomCrop.

    Raises:
        ConfigError: there is no threshold or one is no share, a range is empty, not above 0 or (`scale`) above 1, or
            there is no attempt.
    """

    thresholds: tuple[float, ...] = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
    scale: tuple[float, float] = (0.3, 1.0)
    ratio: tuple[float, float] = (0.5, 2.0)
    attempts: int = 50
    allow_no_crop: bool = True

    def __post_init__(self) -> None:
        if not self.thresholds or min(self.thresholds) < 0 or max(self.thresholds) > 1:
            raise ConfigError(
                "thresholds must be numbers from 0 to 1",
                where="RandomIoUCrop.thresholds",
                received=self.thresholds,
                allowed="one or more, from 0 to 1",
            )
        check_range(self, "scale", 0, 1, above=True)
        check_range(self, "ratio", 0, above=True)
        check_number(self, "attempts", 1)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        if sample.boxes is None or not len(sample.boxes):
            return sample
        wanted = np.ones(len(sample.boxes), bool) if sample.valid is None else sample.valid
        if not wanted.any():
            return sample
        thresholds = [*self.thresholds, None] if self.allow_no_crop else list(self.thresholds)
        for index in rng.permutation(len(thresholds)):
            least = thresholds[index]
            if least is None:
                return sample
            for _ in range(self.attempts):
                part = self._part(sample.size_hw, rng)
                inside = _are_centred_in(sample.boxes, part)
                best = box_ops.iou(sample.boxes[wanted], np.array([part], np.float64)).max()
                if best >= least and (inside & wanted).any():
                    return apply_warp(keep_objects(sample, inside), Warp.crop(sample.size_hw, part))
        return sample

    def _part(self, size_hw: Size, rng: np.random.Generator) -> tuple[int, int, int, int]:
        height, width = size_hw
        scale = rng.uniform(*self.scale)
        least, most = max(self.ratio[0], scale**2), min(self.ratio[1], scale**-2)
        stretch = math.sqrt(rng.uniform(min(least, most), most))
        h, w = (
            min(side, max(1, int(side * share)))
            for side, share in ((height, scale / stretch), (width, scale * stretch))
        )
        y, x = int(rng.integers(height - h + 1)), int(rng.integers(width - w + 1))
        return x, y, x + w, y + h


def _are_centred_in(boxes: np.ndarray, part: tuple[int, int, int, int]) -> np.ndarray:
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2
    inside = (centres >= part[:2]) & (centres < part[2:])
    return inside[:, 0] & inside[:, 1]
