"""Transforms that change the scale of the whole image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError
from framework.core.transform import Transform
from framework.vision.image import Interpolation
from framework.vision.sample import Sample
from framework.vision.sample_transforms.apply import IGNORE_INDEX, GeometricTransform, apply_warp
from framework.vision.sample_transforms.checks import Fill, check_fill, check_number, check_range, check_size
from framework.vision.warp import Size, Warp


@register("transform")
@dataclass(frozen=True)
class Resize(GeometricTransform):
    """Scales the image.

    `mode`: "exact" gives `size_hw` whatever the aspect; "fit" the largest image of the same aspect inside `size_hw`;
    "short" and "long" make the short or the long side as long as `size_hw` says, which then has two equal sides. The
    other side is rounded to whole pixels. Nothing is padded or cut.

    Raises:
        ConfigError: a side is smaller than 1, or "short" or "long" is given two different sides.
    """

    size_hw: Size
    mode: Literal["exact", "short", "long", "fit"] = "exact"
    interpolation: Interpolation = "linear"

    def __post_init__(self) -> None:
        check_size(self)
        if self.mode in ("short", "long") and self.size_hw[0] != self.size_hw[1]:
            raise ConfigError(
                f"the {self.mode} side has one length",
                where="Resize.size_hw",
                received=self.size_hw,
                allowed="the same number twice",
                fix='mode "fit" keeps the image inside a rectangle',
            )

    def plan(self, size_hw: Size, rng: np.random.Generator) -> Warp:
        if self.mode == "exact":
            return Warp.resize(size_hw, self.size_hw)
        factors = [wanted / side for wanted, side in zip(self.size_hw, size_hw, strict=True)]
        factor = max(factors) if self.mode == "short" else min(factors)
        return Warp.resize(size_hw, _scale_size(size_hw, factor))


@register("transform")
@dataclass(frozen=True)
class RandomScale(GeometricTransform):
    """Scales both sides by one random factor from `scale` (least, most).

    With `step` the factor is one of least, least + step, ... up to most; without, any number between.

    Raises:
        ConfigError: the range is empty or not above 0, or the step is not above 0.
    """

    scale: tuple[float, float] = (0.5, 2.0)
    step: float | None = None
    interpolation: Interpolation = "linear"

    def __post_init__(self) -> None:
        check_range(self, "scale", 0, above=True)
        if self.step is not None:
            check_number(self, "step", 0, above=True)

    def plan(self, size_hw: Size, rng: np.random.Generator) -> Warp:
        least, most = self.scale
        if self.step is None:
            factor = rng.uniform(least, most)
        else:  # the slack takes in the end of 0.5, 0.6, ... 2.0, whose steps do not add up in binary
            factor = least + self.step * rng.integers(int((most - least) / self.step + 1e-6) + 1)
        return Warp.resize(size_hw, _scale_size(size_hw, factor))


@register("transform")
@dataclass(frozen=True)
class BatchRandomResize(Transform[Sample]):
    """Scales the images of a batch to one random size out of `sizes`, whatever their aspect.

    A number stands for a square. With `random_interpolation` each batch also draws how pixels are interpolated. A model
    is compiled once for each size. The loader sees to it that all samples of a batch draw the same.

    Source: PaddleDetection's BatchRandomResize.

    Raises:
        ConfigError: there is no size, or a side is smaller than 1.
    """

    per_batch: ClassVar[bool] = True
    sizes: tuple[int | Size, ...]
    interpolation: Interpolation = "linear"
    random_interpolation: bool = False

    def __post_init__(self) -> None:
        sides = [side for size in self.sizes for side in _sides(size)]
        if not sides or min(sides) < 1:
            raise ConfigError(
                "sizes must be sides, or heights and widths",
                where="BatchRandomResize.sizes",
                received=self.sizes,
                allowed="one or more sides or (height, width), whole numbers >= 1",
            )

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        size_hw = _sides(self.sizes[int(rng.integers(len(self.sizes)))])
        interpolation = self.interpolation
        if self.random_interpolation:
            known: tuple[Interpolation, ...] = get_args(Interpolation)
            interpolation = known[int(rng.integers(len(known)))]
        return apply_warp(sample, Warp.resize(sample.size_hw, size_hw), interpolation=interpolation)


@register("transform")
@dataclass(frozen=True)
class LetterBox(GeometricTransform):
    """Fits the image into `size_hw`, keeping its aspect up to whole pixels, and fills the rest.

    Raises:
        ConfigError: a side is smaller than 1, or the fill is out of range.
    """

    size_hw: Size
    align: Literal["top_left", "center"] = "center"
    fill: Fill = 114
    interpolation: Interpolation = "linear"
    ignore_index: int = IGNORE_INDEX

    def __post_init__(self) -> None:
        check_size(self)
        check_fill(self)

    def plan(self, size_hw: Size, rng: np.random.Generator) -> Warp:
        return Warp.letterbox(size_hw, self.size_hw, align=self.align)


@register("transform")
@dataclass(frozen=True)
class ResizeShort(GeometricTransform):
    """Makes the short side `short` pixels long, or as long as it can be with the long side at most `longest`.

    Of several lengths in `short` each image draws one. The aspect is kept up to whole pixels; nothing is padded.

    Raises:
        ConfigError: there is no length, one is smaller than 1, or `longest` is smaller than one of them.
    """

    short: int | tuple[int, ...] = 800
    longest: int = 1333
    interpolation: Interpolation = "linear"

    def __post_init__(self) -> None:
        if not self._lengths or min(self._lengths) < 1 or max(self._lengths) > self.longest:
            raise ConfigError(
                "short and longest are out of order",
                where="ResizeShort",
                received=f"short {self.short}, longest {self.longest}",
                allowed="1 <= short <= longest",
            )

    @property
    def _lengths(self) -> tuple[int, ...]:
        return (self.short,) if isinstance(self.short, int) else self.short

    def plan(self, size_hw: Size, rng: np.random.Generator) -> Warp:
        short = self._lengths[int(rng.integers(len(self._lengths)))]
        factor = min(short / min(size_hw), self.longest / max(size_hw))
        return Warp.resize(size_hw, _scale_size(size_hw, factor))


def _sides(size: int | Size) -> Size:
    return (size, size) if isinstance(size, int) else size


def _scale_size(size_hw: Size, factor: float) -> Size:
    return max(1, round(size_hw[0] * factor)), max(1, round(size_hw[1] * factor))
