"""Transforms that turn, shift, scale, shear and mirror the image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError
from framework.vision.image import Interpolation
from framework.vision.sample_transforms.apply import IGNORE_INDEX, GeometricTransform
from framework.vision.sample_transforms.checks import (
    Fill,
    FlipPairs,
    Range,
    around,
    check_fill,
    check_flip_pairs,
    check_number,
    check_range,
)
from framework.vision.warp import Size, Warp


@register("transform")
@dataclass(frozen=True)
class RandomRotation(GeometricTransform):
    """Turns the image about its centre, with probability `p`.

    `degrees` are clockwise: a range (least, most), or a number that stands for (-number, number). With `expand` the
    image grows to hold all its corners; without, it keeps its size and the corners are cut.

    Raises:
        ConfigError: a range is empty, or a fill, a share or a probability is out of range.
    """

    degrees: Range
    p: float = 1.0
    expand: bool = False
    interpolation: Interpolation = "linear"
    fill: Fill = 0
    ignore_index: int = IGNORE_INDEX
    min_visible: float = 0.0

    def __post_init__(self) -> None:
        check_range(self, "degrees")
        check_number(self, "p", 0, 1)
        check_fill(self)
        check_number(self, "min_visible", 0, 1)

    def plan(self, size_hw: Size, rng: np.random.Generator) -> Warp:
        if rng.random() >= self.p:
            return Warp.identity(size_hw)
        return Warp.rotate(size_hw, rng.uniform(*around(self.degrees)), expand=self.expand)


@register("transform")
@dataclass(frozen=True)
class RandomAffine(GeometricTransform):
    """Shears, scales and turns the image about its centre and then shifts it, with probability `p`; keeps its size.

    `degrees` of the turn are clockwise and `shear` is in degrees along x: ranges (least, most), or a number that
    stands for (-number, number). `translate` (x, y) are the greatest shifts as shares of width and height.

    Raises:
        ConfigError: a range is empty, the shear does not lie between -90 and 90 degrees, the scale is not above 0,
            a share is not from 0 to 1, or a fill or a probability is out of range.
    """

    degrees: Range = 0.0
    translate: tuple[float, float] = (0.0, 0.0)
    scale: tuple[float, float] = (1.0, 1.0)
    shear: Range = 0.0
    p: float = 1.0
    interpolation: Interpolation = "linear"
    fill: Fill = 0
    ignore_index: int = IGNORE_INDEX
    min_visible: float = 0.0

    def __post_init__(self) -> None:
        check_range(self, "degrees")
        check_range(self, "shear", -89, 89)
        check_range(self, "scale", 0, above=True)
        for share in self.translate:
            if not 0 <= share <= 1:
                raise ConfigError(
                    "translate must be shares of the image's sides",
                    where="RandomAffine.translate",
                    received=self.translate,
                    allowed="(x, y), from 0 to 1",
                )
        check_number(self, "p", 0, 1)
        check_fill(self)
        check_number(self, "min_visible", 0, 1)

    def plan(self, size_hw: Size, rng: np.random.Generator) -> Warp:
        if rng.random() >= self.p:
            return Warp.identity(size_hw)
        height, width = size_hw
        turn = np.deg2rad(rng.uniform(*around(self.degrees)))
        scale = rng.uniform(*self.scale)
        shear = np.tan(np.deg2rad(rng.uniform(*around(self.shear))))
        shift_xy = rng.uniform(-1, 1, 2) * self.translate * np.array([width, height])
        cos, sin = scale * np.cos(turn), scale * np.sin(turn)
        return about_centre(size_hw, np.array([[cos, -sin], [sin, cos]]) @ [[1, shear], [0, 1]], shift_xy)


def about_centre(size_hw: Size, linear: np.ndarray, shift_xy: np.ndarray) -> Warp:
    """The warp that applies `linear [2, 2]` with the image's centre fixed and then shifts by `shift_xy` pixels."""
    centre = np.array([size_hw[1] / 2, size_hw[0] / 2])
    matrix = np.eye(3)
    matrix[:2, :2] = linear
    matrix[:2, 2] = centre + shift_xy - linear @ centre
    return Warp(matrix, size_hw, size_hw)


@dataclass(frozen=True)
class _RandomFlip(GeometricTransform):
    p: float = 0.5
    keypoint_flip_pairs: FlipPairs = ()

    def __post_init__(self) -> None:
        check_number(self, "p", 0, 1)
        check_flip_pairs(self)


@register("transform")
@dataclass(frozen=True)
class RandomHorizontalFlip(_RandomFlip):
    """Mirrors left and right with probability `p`.

    Left and right keypoints change places as `keypoint_flip_pairs` say: ((left eye, right eye), ...) by index.

    Raises:
        ConfigError: `p` is no probability, or a keypoint is in two pairs.
    """

    def plan(self, size_hw: Size, rng: np.random.Generator) -> Warp:
        return Warp.flip(size_hw, horizontal=bool(rng.random() < self.p))


@register("transform")
@dataclass(frozen=True)
class RandomVerticalFlip(_RandomFlip):
    """Mirrors top and bottom with probability `p`; a mirror image too, so `keypoint_flip_pairs` change places.

    Raises:
        ConfigError: `p` is no probability, or a keypoint is in two pairs.
    """

    def plan(self, size_hw: Size, rng: np.random.Generator) -> Warp:
        return Warp.flip(size_hw, vertical=bool(rng.random() < self.p))
