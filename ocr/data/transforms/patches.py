"""Parts of pages in which the direction of the text is learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from framework.config.registry import register
from framework.core.transform import Transform
from framework.vision import degrade, image
from framework.vision.sample import Sample
from framework.vision.sample_transforms.apply import apply_warp
from framework.vision.sample_transforms.checks import check_number, check_range, check_rgb, check_size
from framework.vision.warp import Size, Warp
from ocr.data.transforms.lines import check_objects
from ocr.text.preprocess import choose_patches, resize_short_hw


@register("transform")
@dataclass(frozen=True)
class RandomPagePatch(Transform[Sample]):
    """A part of a page at random, of a random size, as it may come from a camera or a scanner.

    The page is scaled by a factor of `scale`, small and large ones as frequent, at least so that the part fits in. Of
    `tries` parts that with the most edges is taken: empty paper teaches nothing. Then, each with its probability, it is
    made smaller and grown again, blurred, made noisy, compressed, inverted or grey.

    Attributes:
        size_hw: Of the part, in pixels.

    Raises:
        ConfigError: a side is smaller than 1, a range is empty, or a probability is none.
        ShapeError: at a call, the sample has objects, or no 8-bit RGB image.
    """

    size_hw: Size = (224, 224)
    scale: tuple[float, float] = (0.6, 1.6)
    tries: int = 3
    p_coarse: float = 0.15
    coarse: tuple[float, float] = (0.5, 0.9)
    p_blur: float = 0.2
    blur: tuple[float, float] = (0.3, 1.1)
    p_noise: float = 0.2
    noise: tuple[float, float] = (1.0, 14.0)
    p_jpeg: float = 0.3
    jpeg: tuple[int, int] = (30, 90)
    p_invert: float = 0.05
    p_grey: float = 0.3

    def __post_init__(self) -> None:
        check_size(self)
        check_number(self, "tries", 1)
        check_range(self, "scale", 0, 8, above=True)
        check_range(self, "coarse", 0, 1, above=True)
        check_range(self, "blur", 0, 20, above=True)
        check_range(self, "noise", 0, 128)
        check_range(self, "jpeg", 1, 100)
        for name in ("p_coarse", "p_blur", "p_noise", "p_jpeg", "p_invert", "p_grey"):
            check_number(self, name, 0, 1)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        check_objects(self, sample)
        check_rgb(self, sample)
        (rows, columns), (height, width) = self.size_hw, sample.size_hw
        factor = float(np.exp(rng.uniform(*np.log(self.scale))))
        factor = max(factor, rows / height, columns / width)
        high, wide = rows / factor, columns / factor  # of the part in the source
        best, most = (0, 0, round(wide), round(high)), -1.0
        for _ in range(self.tries):
            left = int(rng.integers(0, max(1, int(width - wide) + 1)))
            top = int(rng.integers(0, max(1, int(height - high) + 1)))
            box = (left, top, min(width, left + round(wide)), min(height, top + round(high)))
            edges = _count_edges(sample.image[box[1] : box[3], box[0] : box[2]])
            if edges > most:
                best, most = box, edges
        crop = Warp.crop(sample.size_hw, best)
        sample = apply_warp(sample, crop.then(Warp.resize(crop.size_hw, self.size_hw)))
        return sample.replace(image=self._degrade(sample.image, rng))

    def _degrade(self, part: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if rng.random() < self.p_coarse:
            part = degrade.shrink_and_grow(part, rng.uniform(*self.coarse))
        if rng.random() < self.p_blur:
            part = degrade.blur(part, rng.uniform(*self.blur))
        if rng.random() < self.p_noise:
            part = degrade.add_noise(part, rng.uniform(*self.noise), rng, grey=bool(rng.random() < 0.5))
        if rng.random() < self.p_jpeg:
            part = degrade.jpeg(part, int(rng.integers(self.jpeg[0], self.jpeg[1] + 1)))
        if rng.random() < self.p_invert:
            part = 255 - part
        if rng.random() < self.p_grey:
            part = np.repeat(image.to_gray(part)[..., None], 3, axis=2)
        return np.ascontiguousarray(part)


@register("transform")
@dataclass(frozen=True)
class PagePatch(Transform[Sample]):
    """The part of a page with the most edges, at the scale at which the page's shorter side has `short_side` pixels.

    Raises:
        ConfigError: a side is smaller than 1. ShapeError: at a call, the sample has objects.
    """

    size_hw: Size = (224, 224)
    short_side: int = 640

    def __post_init__(self) -> None:
        check_size(self)
        check_number(self, "short_side", 1)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        check_objects(self, sample)
        scaled = apply_warp(
            sample,
            Warp.resize(sample.size_hw, resize_short_hw(sample.size_hw, self.short_side, self.size_hw)),
        )
        ((top, left),) = choose_patches(scaled.image, self.size_hw, 1)
        rows, columns = self.size_hw
        return apply_warp(scaled, Warp.crop(scaled.size_hw, (left, top, left + columns, top + rows)))


def _count_edges(part: np.ndarray) -> float:
    """Mean difference of neighbouring pixels, of every second row and column."""
    grey = part[::2, ::2, 1].astype(np.int16)
    if min(grey.shape) < 2:
        return 0.0
    return float(np.abs(np.diff(grey, axis=0)).mean() + np.abs(np.diff(grey, axis=1)).mean())
