"""Transforms that change the scale of the whole picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError
from framework.vision.image import Interpolation
from framework.vision.sample import Sample
from framework.vision.transforms.apply import apply_warp
from framework.vision.transforms.checks import check_number, check_range, check_size
from framework.vision.warp import Size, Warp


@register("transform")
@dataclass(frozen=True)
class Resize:
    """Scales the picture.

    `mode`: "exact" gives `size_hw` whatever the aspect; "fit" the largest picture of the same aspect inside `size_hw`;
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
                fix='mode "fit" keeps the picture inside a rectangle',
            )

    def plan(self, size_hw: Size, rng: np.random.Generator) -> Warp:
        """The warp for a picture of `size_hw`."""
        if self.mode == "exact":
            return Warp.resize(size_hw, self.size_hw)
        factors = [wanted / side for wanted, side in zip(self.size_hw, size_hw, strict=True)]
        factor = max(factors) if self.mode == "short" else min(factors)
        return Warp.resize(size_hw, _scaled(size_hw, factor))

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        return apply_warp(sample, self.plan(sample.size_hw, rng), interpolation=self.interpolation)


@register("transform")
@dataclass(frozen=True)
class RandomScale:
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
        """The warp for a picture of `size_hw`."""
        least, most = self.scale
        if self.step is None:
            factor = rng.uniform(least, most)
        else:  # the slack takes in the end of 0.5, 0.6, ... 2.0, whose steps do not add up in binary
            factor = least + self.step * rng.integers(int((most - least) / self.step + 1e-6) + 1)
        return Warp.resize(size_hw, _scaled(size_hw, factor))

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        return apply_warp(sample, self.plan(sample.size_hw, rng), interpolation=self.interpolation)


def _scaled(size_hw: Size, factor: float) -> Size:
    return max(1, round(size_hw[0] * factor)), max(1, round(size_hw[1] * factor))
