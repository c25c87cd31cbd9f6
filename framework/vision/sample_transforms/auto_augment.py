"""RandAugment and AutoAugment: random changes out of one table of fourteen.

| op | at strength 0 | at strength 1 | either sign |
|---|---|---|---|
| ShearX, ShearY | 0 | 0.3 | yes |
| TranslateX, TranslateY | 0 | 150 / 331 of the side | yes |
| Rotate | 0 degrees | 30 degrees | yes |
| Brightness, Color, Contrast, Sharpness | factor 1 | factor 1 + 0.9 or 1 - 0.9 | yes |
| Posterize | 8 bits | 4 bits | no |
| Solarize | threshold 256 | threshold 0 | no |
| AutoContrast, Equalize, Invert, Identity | have no strength | | |

Source: the ranges are those of Cubuk et al., "AutoAugment", table 6, whose images have 331 pixels a side. For every
op, more strength is more change (timm's "inc"). Geometric ops turn and shear about the image's centre and move
masks, boxes and points along.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from framework.config.registry import register
from framework.core.transform import Transform
from framework.vision.image import Interpolation
from framework.vision.sample import Sample
from framework.vision.sample_transforms import pixels
from framework.vision.sample_transforms.affine import about_centre
from framework.vision.sample_transforms.apply import IGNORE_INDEX, apply_warp, warp_options
from framework.vision.sample_transforms.checks import Fill, check_fill, check_number, check_rgb
from framework.vision.warp import Size, Warp

_GREATEST_SHIFT = 150 / 331


def _shear(x: float, y: float) -> Callable[[Size, float], Warp]:
    return lambda size_hw, s: about_centre(
        size_hw, np.array([[1, 0.3 * s * x], [0.3 * s * y, 1]]), np.zeros(2)
    )


def _translate(x: float, y: float) -> Callable[[Size, float], Warp]:
    def plan(size_hw: Size, s: float) -> Warp:
        shift = np.rint(_GREATEST_SHIFT * s * np.array([x * size_hw[1], y * size_hw[0]]))
        return about_centre(size_hw, np.eye(2), shift)

    return plan


# Signed strengths, -1 to 1.
_WARPS: dict[str, Callable[[Size, float], Warp]] = {
    "ShearX": _shear(1, 0),
    "ShearY": _shear(0, 1),
    "TranslateX": _translate(1, 0),
    "TranslateY": _translate(0, 1),
    "Rotate": lambda size_hw, s: Warp.rotate(size_hw, 30 * s),
}
_ENHANCERS: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "Brightness": pixels.brightness,
    "Color": pixels.saturation,
    "Contrast": pixels.contrast,
    "Sharpness": pixels.sharpness,
}
# Strengths from 0 to 1.
_OTHERS: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "Posterize": lambda image, s: pixels.posterize(image, 8 - round(4 * s)),
    "Solarize": lambda image, s: pixels.solarize(image, 256 * (1 - s)),
    "AutoContrast": lambda image, s: pixels.autocontrast(image),
    "Equalize": lambda image, s: pixels.equalize(image),
    "Invert": lambda image, s: pixels.invert(image),
    "Identity": lambda image, s: image,
}
_RAND_AUGMENT = tuple(name for name in (*_WARPS, *_ENHANCERS, *_OTHERS) if name != "Invert")


@register("transform")
@dataclass(frozen=True)
class RandAugment(Transform[Sample]):
    """Applies `num_ops` random ops of the module's table (Invert left out), with replacement.

    Their strength is `magnitude` / 10. With `magnitude_std` each op's magnitude is drawn from a normal distribution
    around it and cut to 0 to 10.

    Source: Cubuk et al., "RandAugment", section 3; the scale to 10 and the deviation are timm's.

    Raises:
        ConfigError: `num_ops` or the deviation is negative, the magnitude is not from 0 to 10, or the fill no colour.
    """

    num_ops: int = 2
    magnitude: float = 9.0
    magnitude_std: float = 0.0
    interpolation: Interpolation = "linear"
    fill: Fill = (124, 116, 104)
    ignore_index: int = IGNORE_INDEX

    def __post_init__(self) -> None:
        check_number(self, "num_ops", 0)
        check_number(self, "magnitude", 0, 10)
        check_number(self, "magnitude_std", 0)
        check_fill(self)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        for _ in range(self.num_ops):
            name = _RAND_AUGMENT[rng.integers(len(_RAND_AUGMENT))]
            magnitude = float(np.clip(rng.normal(self.magnitude, self.magnitude_std), 0, 10))
            sample = _apply(self, sample, name, magnitude / 10, rng)
        return sample


@register("transform")
@dataclass(frozen=True)
class AutoAugment(Transform[Sample]):
    """Applies one of the 25 pairs of ops that were found to suit ImageNet.

    Source: Cubuk et al., "AutoAugment", table 9.

    Raises:
        ConfigError: the fill is no colour.
    """

    interpolation: Interpolation = "linear"
    fill: Fill = (124, 116, 104)
    ignore_index: int = IGNORE_INDEX

    def __post_init__(self) -> None:
        check_fill(self)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        for name, p, magnitude in _IMAGENET[rng.integers(len(_IMAGENET))]:
            if rng.random() < p:
                sample = _apply(self, sample, name, magnitude / 9, rng)
        return sample


def _apply(
    config: RandAugment | AutoAugment, sample: Sample, name: str, strength: float, rng: np.random.Generator
) -> Sample:
    signed = strength if rng.random() < 0.5 else -strength
    if name in _WARPS:
        return apply_warp(sample, _WARPS[name](sample.size_hw, signed), **warp_options(config))
    check_rgb(config, sample)
    if name in _ENHANCERS:
        return sample.replace(image=_ENHANCERS[name](sample.image, 1 + 0.9 * signed))
    return sample.replace(image=_OTHERS[name](sample.image, strength))


# (op, probability, magnitude of 0 to 9; 0 where the op has none)
_IMAGENET: tuple[tuple[tuple[str, float, int], tuple[str, float, int]], ...] = (
    (("Posterize", 0.4, 8), ("Rotate", 0.6, 9)),
    (("Solarize", 0.6, 5), ("AutoContrast", 0.6, 0)),
    (("Equalize", 0.8, 0), ("Equalize", 0.6, 0)),
    (("Posterize", 0.6, 7), ("Posterize", 0.6, 6)),
    (("Equalize", 0.4, 0), ("Solarize", 0.2, 4)),
    (("Equalize", 0.4, 0), ("Rotate", 0.8, 8)),
    (("Solarize", 0.6, 3), ("Equalize", 0.6, 0)),
    (("Posterize", 0.8, 5), ("Equalize", 1.0, 0)),
    (("Rotate", 0.2, 3), ("Solarize", 0.6, 8)),
    (("Equalize", 0.6, 0), ("Posterize", 0.4, 6)),
    (("Rotate", 0.8, 8), ("Color", 0.4, 0)),
    (("Rotate", 0.4, 9), ("Equalize", 0.6, 0)),
    (("Equalize", 0.0, 0), ("Equalize", 0.8, 0)),
    (("Invert", 0.6, 0), ("Equalize", 1.0, 0)),
    (("Color", 0.6, 4), ("Contrast", 1.0, 8)),
    (("Rotate", 0.8, 8), ("Color", 1.0, 2)),
    (("Color", 0.8, 8), ("Solarize", 0.8, 7)),
    (("Sharpness", 0.4, 7), ("Invert", 0.6, 0)),
    (("ShearX", 0.6, 5), ("Equalize", 1.0, 0)),
    (("Color", 0.4, 0), ("Equalize", 0.6, 0)),
    (("Equalize", 0.4, 0), ("Solarize", 0.2, 4)),
    (("Solarize", 0.6, 5), ("AutoContrast", 0.6, 0)),
    (("Invert", 0.6, 0), ("Equalize", 1.0, 0)),
    (("Color", 0.6, 4), ("Contrast", 1.0, 8)),
    (("Equalize", 0.8, 0), ("Equalize", 0.6, 0)),
)
