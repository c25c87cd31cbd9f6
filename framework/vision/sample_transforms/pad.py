"""Transforms that put a border around the image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, ShapeError
from framework.vision.sample_transforms.apply import IGNORE_INDEX, GeometricTransform
from framework.vision.sample_transforms.checks import Fill, check_fill, check_number, check_size
from framework.vision.warp import Size, Warp

Align = Literal["top_left", "center"]


@register("transform")
@dataclass(frozen=True)
class Pad(GeometricTransform):
    """Adds `padding` pixels (left, top, right, bottom); one number stands for all four.

    Raises:
        ConfigError: a width is negative, or the fill is out of range.
    """

    padding: int | tuple[int, int, int, int]
    fill: Fill = 0
    ignore_index: int = IGNORE_INDEX

    def __post_init__(self) -> None:
        if min(self._widths) < 0:
            raise ConfigError(
                "a border cannot be negative",
                where="Pad.padding",
                received=self.padding,
                allowed="(left, top, right, bottom) >= 0",
                fix="CenterCrop and RandomCrop cut pixels away",
            )
        check_fill(self)

    @property
    def _widths(self) -> tuple[int, int, int, int]:
        one = self.padding
        return (one, one, one, one) if isinstance(one, int) else one

    def plan(self, size_hw: Size, rng: np.random.Generator) -> Warp:
        return Warp.pad(size_hw, *self._widths)


@register("transform")
@dataclass(frozen=True)
class PadToSize(GeometricTransform):
    """Fills the image up to `size_hw`, with the image in the top left corner or in the middle.

    Raises:
        ConfigError: a side is smaller than 1, or the fill is out of range.
        ShapeError: at a call, the image is larger.
    """

    size_hw: Size
    align: Align = "top_left"
    fill: Fill = 0
    ignore_index: int = IGNORE_INDEX

    def __post_init__(self) -> None:
        check_size(self)
        check_fill(self)

    def plan(self, size_hw: Size, rng: np.random.Generator) -> Warp:
        if size_hw[0] > self.size_hw[0] or size_hw[1] > self.size_hw[1]:
            raise ShapeError(
                "the image is larger than the size that it is to be filled up to",
                where="PadToSize",
                received=size_hw,
                allowed=f"at most {self.size_hw}",
                fix='put Resize with mode "fit" or a crop before it',
            )
        return _plan_padding(size_hw, self.size_hw, self.align)


@register("transform")
@dataclass(frozen=True)
class PadToMultiple(GeometricTransform):
    """Fills both sides up to the next multiple, with the image in the top left corner or in the middle.

    With `per_octave` only so many multiples count between a side and its double, evenly spaced: of 32 and 4 these are
    32, 64, ... 256, 320, 384, 448, 512, 640, ... A model is compiled once for each size, and sides up to 1024 make 16
    of them instead of 32; a side grows by at most a fourth.

    Raises:
        ConfigError: a number is smaller than 1, or the fill is out of range.
    """

    multiple: int = 32
    per_octave: int | None = None
    align: Align = "top_left"
    fill: Fill = 0
    ignore_index: int = IGNORE_INDEX

    def __post_init__(self) -> None:
        check_number(self, "multiple", 1)
        if self.per_octave is not None:
            check_number(self, "per_octave", 1)
        check_fill(self)

    def plan(self, size_hw: Size, rng: np.random.Generator) -> Warp:
        return _plan_padding(size_hw, (self._side(size_hw[0]), self._side(size_hw[1])), self.align)

    def _side(self, side: int) -> int:
        step = self.multiple
        if self.per_octave is not None:
            while step * 2 * self.per_octave < side:
                step *= 2
        return -(-side // step) * step


@register("transform")
@dataclass(frozen=True)
class RandomExpand(GeometricTransform):
    """Puts the image at a random place on a canvas of `fill`, up to `max_ratio` times as high and wide.

    The default fill is the mean of ImageNet.

    Source: Liu et al., "SSD", section 3.6 (the zoom-out that makes small objects).

    Raises:
        ConfigError: the ratio is smaller than 1, or a fill or a probability is out of range.
    """

    max_ratio: float = 4.0
    p: float = 0.5
    fill: Fill = (124, 116, 104)
    ignore_index: int = IGNORE_INDEX

    def __post_init__(self) -> None:
        check_number(self, "max_ratio", 1)
        check_number(self, "p", 0, 1)
        check_fill(self)

    def plan(self, size_hw: Size, rng: np.random.Generator) -> Warp:
        if rng.random() >= self.p:
            return Warp.identity(size_hw)
        ratio = rng.uniform(1, self.max_ratio)
        extra_h, extra_w = (int(side * ratio) - side for side in size_hw)
        top, left = int(rng.integers(extra_h + 1)), int(rng.integers(extra_w + 1))
        return Warp.pad(size_hw, left, top, extra_w - left, extra_h - top)


def _plan_padding(size_hw: Size, wanted_hw: Size, align: Align) -> Warp:
    extra_h, extra_w = wanted_hw[0] - size_hw[0], wanted_hw[1] - size_hw[1]
    top, left = (extra_h // 2, extra_w // 2) if align == "center" else (0, 0)
    return Warp.pad(size_hw, left, top, extra_w - left, extra_h - top)
