"""Random erasing: a rectangle of the image is painted over."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from framework.config.registry import register
from framework.core.transform import Transform
from framework.vision.sample import Sample
from framework.vision.transforms.checks import check_fill, check_number, check_range, check_rgb


@register("transform")
@dataclass(frozen=True)
class RandomErasing(Transform[Sample]):
    """Paints over a random rectangle of the image, with probability `p`.

    The rectangle has a share of the image's area from `scale` and height / width from `ratio` (drawn in its
    logarithm); after ten that did not fit, nothing is erased. `fill` is one value, one a channel, or "noise": a random
    value for each pixel and channel. The default is ImageNet's mean, which is about 0 once normalised. Boxes, masks
    and keypoints under the rectangle stay.

    Source: Zhong et al., "Random Erasing Data Augmentation", algorithm 1.

    Raises:
        ConfigError: `p` is no probability, a range is empty, not above 0 or (`scale`) above 1, or the fill no colour.
        ShapeError: at a call, the image is not 8-bit RGB, and the fill is not one value.
    """

    p: float = 0.5
    scale: tuple[float, float] = (0.02, 0.33)
    ratio: tuple[float, float] = (0.3, 3.3)
    fill: int | tuple[int, int, int] | Literal["noise"] = (124, 116, 104)

    def __post_init__(self) -> None:
        check_number(self, "p", 0, 1)
        check_range(self, "scale", 0, 1, above=True)
        check_range(self, "ratio", 0, above=True)
        if self.fill != "noise":
            check_fill(self)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        if rng.random() >= self.p:
            return sample
        if not isinstance(self.fill, int):
            check_rgb(self, sample)
        height, width = sample.size_hw
        for _ in range(10):
            area = height * width * rng.uniform(*self.scale)
            ratio = math.exp(rng.uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            h, w = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < h <= height and 0 < w <= width:
                y, x = int(rng.integers(height - h + 1)), int(rng.integers(width - w + 1))
                image = sample.image.copy()
                noise = self.fill == "noise"
                image[y : y + h, x : x + w] = rng.integers(0, 256, (h, w, 3)) if noise else self.fill
                return sample.replace(image=image)
        return sample
