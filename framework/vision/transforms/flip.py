"""Transforms that mirror the image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from framework.config.registry import register
from framework.vision.transforms.apply import GeometricTransform
from framework.vision.transforms.checks import FlipPairs, check_flip_pairs, check_number
from framework.vision.warp import Size, Warp


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
