"""Transforms of colour and sharpness, and one that paints over: they change the image alone, and no geometry.

Those of colour raise ShapeError for images that are not 8-bit RGB.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError
from framework.core.transform import Transform
from framework.vision.sample import Sample
from framework.vision.sample_transforms import pixels
from framework.vision.sample_transforms.checks import (
    Range,
    around,
    check_fill,
    check_number,
    check_range,
    check_rgb,
)

# R, G, B to luminance and two axes of colour (NTSC), and back, to the three digits that SSD's code has.
_TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
_FROM_YIQ = np.array([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]])


@register("transform")
@dataclass(frozen=True)
class ColorJitter(Transform[Sample]):
    """Changes brightness, contrast, saturation and hue by random factors, in random order.

    The first three are ranges (least, most) of the factors of `pixels`, or a number that stands for
    (max(0, 1 - number), 1 + number). `hue` is a range of shares of the full circle from -0.5 to 0.5, or a number that
    stands for (-number, number). These are the definitions of torchvision and paddle.vision.

    Raises:
        ConfigError: a range is empty, a factor is negative, or a hue is out of range.
    """

    brightness: Range = 0.0
    contrast: Range = 0.0
    saturation: Range = 0.0
    hue: Range = 0.0

    def __post_init__(self) -> None:
        for name in ("brightness", "contrast", "saturation"):
            if isinstance(getattr(self, name), int | float):
                check_number(self, name, 0)
            else:
                check_range(self, name, 0)
        check_range(self, "hue", -0.5, 0.5)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        check_rgb(self, sample)
        steps = [
            (pixels.brightness, _factors(self.brightness), 1.0),
            (pixels.contrast, _factors(self.contrast), 1.0),
            (pixels.saturation, _factors(self.saturation), 1.0),
            (pixels.hue, around(self.hue), 0.0),
        ]
        image = sample.image
        for index in rng.permutation(len(steps)):
            change, (least, most), unchanged = steps[index]
            value = rng.uniform(least, most)
            if value != unchanged:
                image = change(image, value)
        return sample.replace(image=image)


def _factors(value: Range) -> tuple[float, float]:
    least, most = around(value, 1.0)
    return max(0.0, least), most


@register("transform")
@dataclass(frozen=True)
class RandomDistort(Transform[Sample]):
    """Changes brightness, contrast, saturation and hue in random order, each with probability `p`.

    Not the same as ColorJitter: `brightness` is added to the values 0 to 255, `contrast` multiplies them, `saturation`
    blends with the grey image, and `hue` turns the colours about the grey axis, in degrees. All are ranges (least,
    most). Values are rounded and cut once, at the end.

    Source: PaddleDetection's RandomDistort with its default ranges. Its hue, 18 to both sides, is multiplied by pi and
    used as radians, so any angle is equally probable.

    Raises:
        ConfigError: a range is empty, a factor is negative, or `p` is no probability.
    """

    brightness: tuple[float, float] = (0.5, 1.5)
    contrast: tuple[float, float] = (0.5, 1.5)
    saturation: tuple[float, float] = (0.5, 1.5)
    hue: tuple[float, float] = (-180.0, 180.0)
    p: float = 0.5

    def __post_init__(self) -> None:
        check_range(self, "brightness")
        check_range(self, "contrast", 0)
        check_range(self, "saturation", 0)
        check_range(self, "hue")
        check_number(self, "p", 0, 1)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        check_rgb(self, sample)
        # Each change is affine in the three channels, so they make one matrix [3, 4] and one pass over the pixels.
        matrix = np.eye(4)
        for name in rng.permutation(["brightness", "contrast", "saturation", "hue"]):
            applied, value = rng.random() < self.p, rng.uniform(*getattr(self, name))
            if applied:
                matrix = _distortion(str(name), value) @ matrix
        if np.array_equal(matrix, np.eye(4)):
            return sample
        return sample.replace(image=cv2.transform(sample.image, matrix[:3]))


def _distortion(name: str, value: float) -> np.ndarray:
    """The change as a matrix [4, 4] on columns (R, G, B, 1)."""
    matrix = np.eye(4)
    if name == "brightness":
        matrix[:3, 3] = value
    elif name == "contrast":
        matrix[:3, :3] *= value
    elif name == "saturation":
        matrix[:3, :3] = value * np.eye(3) + (1 - value) * _TO_YIQ[:1]
    else:
        cos, sin = np.cos(np.deg2rad(value)), np.sin(np.deg2rad(value))
        matrix[:3, :3] = _FROM_YIQ @ [[1, 0, 0], [0, cos, -sin], [0, sin, cos]] @ _TO_YIQ
    return matrix


@register("transform")
@dataclass(frozen=True)
class RandomGrayscale(Transform[Sample]):
    """Takes the colours away, with probability `p`; the image keeps three channels.

    Raises:
        ConfigError: `p` is no probability.
    """

    p: float = 0.1

    def __post_init__(self) -> None:
        check_number(self, "p", 0, 1)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        check_rgb(self, sample)
        return sample.replace(image=pixels.grayscale(sample.image)) if rng.random() < self.p else sample


@register("transform")
@dataclass(frozen=True)
class GaussianBlur(Transform[Sample]):
    """Blurs with a Gaussian of a random standard deviation from `sigma` (least, most), in pixels.

    `kernel_size` is the side of the square of weights; at the edges the image is mirrored.

    Raises:
        ConfigError: the kernel is not odd, or the range is empty or not above 0.
    """

    kernel_size: int
    sigma: tuple[float, float] = (0.1, 2.0)

    def __post_init__(self) -> None:
        check_number(self, "kernel_size", 1)
        if self.kernel_size % 2 == 0:
            raise ConfigError(
                "a kernel with a centre has an odd side",
                where="GaussianBlur.kernel_size",
                received=self.kernel_size,
                allowed="1, 3, 5, ...",
            )
        check_range(self, "sigma", 0, above=True)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        sigma, side = rng.uniform(*self.sigma), self.kernel_size
        blurred = cv2.GaussianBlur(sample.image, (side, side), sigma, borderType=cv2.BORDER_REFLECT_101)
        return sample.replace(image=blurred.reshape(sample.image.shape))


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
