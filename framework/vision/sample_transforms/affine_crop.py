"""Transforms that cut out a turned rectangle and scale it to a fixed size in one warp: what pose models see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, ShapeError
from framework.core.transform import Transform
from framework.vision.image import Interpolation
from framework.vision.sample import Sample
from framework.vision.sample_transforms.apply import (
    IGNORE_INDEX,
    GeometricTransform,
    apply_warp,
    move_keypoints,
)
from framework.vision.sample_transforms.checks import (
    Fill,
    FlipPairs,
    Range,
    around,
    check_fill,
    check_flip_pairs,
    check_number,
    check_range,
    check_size,
)
from framework.vision.warp import Size, Warp


def plan_frame(
    source_hw: Size,
    centre_xy: np.ndarray,
    extent_wh: np.ndarray,
    size_hw: Size,
    *,
    degrees: float = 0.0,
    mirrored: bool = False,
) -> Warp:
    """The warp that puts `centre_xy` into the middle of `size_hw` and just fits a rectangle of `extent_wh` around it.

    The aspect is kept: along one side more is seen than was asked for. The image turns clockwise by `degrees` about
    the centre; `mirrored` then changes left and right.
    """
    height, width = size_hw
    scale = min(width / max(extent_wh[0], 1.0), height / max(extent_wh[1], 1.0))
    cos, sin = scale * np.cos(np.deg2rad(degrees)), scale * np.sin(np.deg2rad(degrees))
    matrix = np.eye(3)
    matrix[:2, :2] = [[cos, -sin], [sin, cos]]
    if mirrored:
        matrix[0] *= -1
    matrix[:2, 2] = np.array([width / 2, height / 2]) - matrix[:2, :2] @ centre_xy
    return Warp(matrix, size_hw, source_hw)


@register("transform")
@dataclass(frozen=True)
class RandomFrame(GeometricTransform):
    """Cuts a random square out of the image, turned, and scales it to fill `size_hw`.

    Its side is a share from `scale` of the image's short side, its centre lies off the image's by up to the share
    `translate` of its own side, along both axes. `degrees` are clockwise: a range, or a number that stands for
    (-number, number).

    Source: Cheng et al., "HigherHRNet", section 4.1, as PaddleDetection's RandomAffine of keypoints.

    Raises:
        ConfigError: a side is smaller than 1, a range is empty or (`scale`) not above 0, or a share, a fill is out of
            range.
    """

    size_hw: Size
    degrees: Range = 30.0
    scale: tuple[float, float] = (0.75, 1.5)
    translate: float = 0.2
    interpolation: Interpolation = "linear"
    fill: Fill = 0
    ignore_index: int = IGNORE_INDEX
    min_visible: float = 0.0

    def __post_init__(self) -> None:
        check_size(self)
        check_range(self, "degrees")
        check_range(self, "scale", 0, above=True)
        check_number(self, "translate", 0, 1)
        check_fill(self)
        check_number(self, "min_visible", 0, 1)

    def plan(self, size_hw: Size, rng: np.random.Generator) -> Warp:
        degrees = rng.uniform(*around(self.degrees))
        side = rng.uniform(*self.scale) * min(size_hw)
        shift = rng.uniform(-1, 1, 2) * self.translate * side
        centre = np.array([size_hw[1] / 2, size_hw[0] / 2]) + shift
        return plan_frame(size_hw, centre, np.array([side, side]), self.size_hw, degrees=degrees)


@register("transform")
@dataclass(frozen=True)
class CropToObject(Transform[Sample]):
    """Cuts out the one object of the sample: its box, `padding` times as large, in the middle of `size_hw`.

    Keypoints beside the crop keep their labels, so that an evaluation still asks for them.

    Raises:
        ConfigError: a side is smaller than 1, the padding is not above 0, or a fill is out of range.
        ShapeError: at a call, the sample has not exactly one box.
    """

    size_hw: Size
    padding: float = 1.25
    interpolation: Interpolation = "linear"
    fill: Fill = 0

    def __post_init__(self) -> None:
        check_size(self)
        check_number(self, "padding", 0, above=True)
        check_fill(self)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        centre, extent = _get_box(sample, "CropToObject")
        warp = plan_frame(sample.size_hw, centre, extent * self.padding, self.size_hw)
        return _crop(sample, warp, self.interpolation, self.fill)


@register("transform")
@dataclass(frozen=True)
class RandomCropToObject(Transform[Sample]):
    """`CropToObject` for training: larger or smaller, turned, mirrored, and sometimes around half of the body alone.

    What is seen is scaled by a factor from a normal distribution around 1 of deviation `scale`, cut at 1 - scale and
    1 + scale. With probability `p_rotate` it is turned by an angle of deviation `degrees`, cut at twice that. With
    `p_flip` it is mirrored, and the points of `keypoint_flip_pairs` change places.

    Of an object with more than `half_body_least` labelled keypoints, with probability `p_half_body`, the bounds of
    those in `upper_body` (indices) or those of the others stand for the box, 1.5 times as large; the upper ones in
    seven of ten cases, and always where of the others no three are labelled. Without `upper_body` never.

    Source: Wang et al., "Deep High-Resolution Representation Learning", section 4, as PaddleDetection's
    RandomFlipHalfBodyTransform and TopDownAffine.

    Raises:
        ConfigError: a side is smaller than 1, a number, a fill or a probability is out of range, or a keypoint is in
            two pairs.
        ShapeError: at a call, the sample has not exactly one box, or a pair names a keypoint that is not there.
    """

    size_hw: Size
    padding: float = 1.25
    scale: float = 0.5
    degrees: float = 40.0
    p_rotate: float = 0.6
    p_flip: float = 0.5
    keypoint_flip_pairs: FlipPairs = ()
    upper_body: tuple[int, ...] = ()
    p_half_body: float = 0.3
    half_body_least: int = 8
    interpolation: Interpolation = "linear"
    fill: Fill = 0

    def __post_init__(self) -> None:
        check_size(self)
        check_number(self, "padding", 0, above=True)
        check_number(self, "degrees", 0, 90)
        for name in ("p_rotate", "p_flip", "p_half_body"):
            check_number(self, name, 0, 1)
        check_flip_pairs(self)
        check_fill(self)
        if not 0 <= self.scale < 1 or self.half_body_least < 2 or any(index < 0 for index in self.upper_body):
            raise ConfigError(
                "this augmentation is not possible",
                where="RandomCropToObject",
                received=f"scale {self.scale}, half_body_least {self.half_body_least}, upper_body {self.upper_body}",
                allowed="scale from 0 and below 1, half_body_least >= 2, upper_body of indices >= 0",
            )

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        centre, extent = _get_box(sample, "RandomCropToObject")
        half, factor, angle = rng.random() < self.p_half_body, rng.normal(), rng.normal()
        turned, mirrored = rng.random() < self.p_rotate, bool(rng.random() < self.p_flip)
        upper_first = rng.random() < 0.7
        around_half = self._half_body(sample, upper_first) if half else None
        centre, extent = (centre, extent * self.padding) if around_half is None else around_half
        extent = extent * np.clip(factor * self.scale + 1, 1 - self.scale, 1 + self.scale)
        degrees = np.clip(angle, -2, 2) * self.degrees if turned else 0.0
        warp = plan_frame(
            sample.size_hw, centre, extent, self.size_hw, degrees=float(degrees), mirrored=mirrored
        )
        return _crop(sample, warp, self.interpolation, self.fill, self.keypoint_flip_pairs)

    def _half_body(self, sample: Sample, upper_first: bool) -> tuple[np.ndarray, np.ndarray] | None:
        """Centre and extent of half the labelled keypoints; None where there are too few."""
        if sample.keypoints is None or not self.upper_body:
            return None
        keypoints = sample.keypoints[0].astype(np.float64)
        labelled = keypoints[:, 2] > 0
        if labelled.sum() <= self.half_body_least:
            return None
        is_upper = np.isin(np.arange(len(keypoints)), self.upper_body)
        upper, lower = keypoints[labelled & is_upper, :2], keypoints[labelled & ~is_upper, :2]
        chosen = upper if (upper_first and len(upper) > 2) or len(lower) <= 2 else lower
        if len(chosen) < 2:
            return None
        return chosen.mean(axis=0), 1.5 * (chosen.max(axis=0) - chosen.min(axis=0))


def _get_box(sample: Sample, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Centre (x, y) and extent (width, height) of the sample's one box."""
    count = 0 if sample.boxes is None else len(sample.boxes)
    if sample.boxes is None or count != 1:
        raise ShapeError(
            "there is not one object to cut out",
            where=where if sample.id is None else f"{where}, sample {sample.id!r}",
            received=f"{count} boxes",
            allowed="a sample of one object: of a data set with per_person, or of a detector",
        )
    low, high = sample.boxes[0, :2].astype(np.float64), sample.boxes[0, 2:].astype(np.float64)
    return (low + high) / 2, high - low


def _crop(
    sample: Sample, warp: Warp, interpolation: Interpolation, fill: Fill, pairs: FlipPairs = ()
) -> Sample:
    # The object is what the crop was made for: it stays, also where an augmented crop shows nothing of its box.
    alone = sample.replace(boxes=None, keypoints=None)
    moved = apply_warp(alone, warp, interpolation=interpolation, fill=fill)
    changes = {} if sample.boxes is None else {"boxes": warp.boxes(sample.boxes)}
    if sample.keypoints is not None:
        changes["keypoints"] = move_keypoints(sample.keypoints, warp, pairs)
    return moved.replace(**changes)
