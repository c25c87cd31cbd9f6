"""How synthetic text looks: colours, paper, distortions of print and camera."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from framework.core.errors import ConfigError
from framework.vision import degrade
from framework.vision.sample_transforms.checks import check_number, check_range
from ocr.data.synthetic.ink import InkStyle

Background = Literal["plain", "gradient", "noise", "paper", "images"]


@dataclass(frozen=True)
class TextStyle:
    """Ranges (least, most) that looks are drawn from, and the probability `p_…` of each.

    Attributes:
        backgrounds: Kinds of what is behind the text, each as probable; "images" are parts of those of
            `background_images`, and among the kinds wherever that folder is given.
        min_contrast: Least difference of brightness, 0 to 255, between text and the mean of its background.
        dark_on_light: Share of texts that are darker than what is behind them.
        spacing: Added between letters, as a share of the font size.
        perspective: Up to how far a line's corners move, as a share of its height; of a page, as a share of its
            shorter side. Below a quarter.
        curve: Height of the bow that a line bends to, as a share of its height; to both sides.
        rotation: Degrees that lines are turned by at most, to both sides.
        blur: Standard deviation of a Gaussian, in pixels.
        motion: Length of the smear, in pixels.
        coarse: Factor of the size that an image is shrunk to and grown from again.
        noise: Standard deviation, in values 0 to 255.
        jpeg: Quality, 1 to 100.
        shade: Brightness at the darker end of a shadow over the image; 1 is none.
        ink: What printers do to letters, see InkStyle.

    Raises:
        ConfigError: a range is empty or out of bounds, a probability is none, or "images" has no folder.
    """

    backgrounds: tuple[Background, ...] = ("plain", "gradient", "noise", "paper")
    background_images: Path | None = None
    min_contrast: float = 60.0
    dark_on_light: float = 0.75
    spacing: tuple[float, float] = (-0.04, 0.2)
    p_spacing: float = 0.3
    perspective: float = 0.15
    p_perspective: float = 0.4
    curve: float = 0.4
    p_curve: float = 0.15
    rotation: float = 3.0
    p_rotation: float = 0.4
    blur: tuple[float, float] = (0.3, 1.4)
    p_blur: float = 0.3
    motion: tuple[int, int] = (2, 5)
    p_motion: float = 0.08
    coarse: tuple[float, float] = (0.35, 0.9)
    p_coarse: float = 0.15
    noise: tuple[float, float] = (2.0, 16.0)
    p_noise: float = 0.4
    jpeg: tuple[int, int] = (25, 90)
    p_jpeg: float = 0.4
    shade: tuple[float, float] = (0.5, 0.95)
    p_shade: float = 0.2
    ink: InkStyle = field(default_factory=InkStyle)

    def __post_init__(self) -> None:
        for name in vars(self):
            if name.startswith("p_") or name == "dark_on_light":
                check_number(self, name, 0, 1)
        check_number(self, "min_contrast", 0, 120)
        check_range(self, "spacing", -0.3, 2)
        check_number(self, "perspective", 0, 0.24)  # from a quarter on corners could cross
        check_number(self, "curve", 0, 3)
        check_number(self, "rotation", 0, 45)
        check_range(self, "blur", 0, 20, above=True)
        check_range(self, "motion", 1, 50)
        check_range(self, "coarse", 0, 1, above=True)
        check_range(self, "noise", 0, 128)
        check_range(self, "jpeg", 1, 100)
        check_range(self, "shade", 0, 1)
        if not self.backgrounds and self.background_images is None:
            raise ConfigError(
                "there is no kind of background", where="TextStyle.backgrounds", received="none"
            )
        if "images" in self.backgrounds and self.background_images is None:
            raise ConfigError(
                'backgrounds have "images" but no folder is given',
                where="TextStyle.background_images",
                received=None,
                allowed="a folder of images",
            )


def degrade_image(image: np.ndarray, style: TextStyle, rng: np.random.Generator) -> np.ndarray:
    """`image [H, W, 3]` as it comes from a camera and a file: shade, coarse pixels, blur, smear, noise, JPEG."""
    steps: tuple[tuple[float, Callable[[np.ndarray], np.ndarray]], ...] = (
        (style.p_shade, lambda pixels: _shade(pixels, rng.uniform(*style.shade), rng)),
        (style.p_coarse, lambda pixels: degrade.shrink_and_grow(pixels, rng.uniform(*style.coarse))),
        (style.p_blur, lambda pixels: degrade.blur(pixels, rng.uniform(*style.blur))),
        (
            style.p_motion,
            lambda pixels: degrade.motion_blur(pixels, draw_integer(style.motion, rng), rng.uniform(0, 180)),
        ),
        (
            style.p_noise,
            lambda pixels: degrade.add_noise(
                pixels, rng.uniform(*style.noise), rng, grey=bool(rng.random() < 0.5)
            ),
        ),
        (style.p_jpeg, lambda pixels: degrade.jpeg(pixels, draw_integer(style.jpeg, rng))),
    )
    for probability, step in steps:
        if rng.random() < probability:
            image = step(image)
    return image


def _shade(image: np.ndarray, darkest: float, rng: np.random.Generator) -> np.ndarray:
    """Darker towards one end, along x or y."""
    height, width = image.shape[:2]
    along_x = bool(rng.random() < 0.6)
    ramp = np.linspace(1, darkest, width if along_x else height, dtype=np.float32)
    if rng.random() < 0.5:
        ramp = ramp[::-1]
    return (image * (ramp[None, :, None] if along_x else ramp[:, None, None])).astype(np.uint8)


def draw_integer(bounds: tuple[int, int], rng: np.random.Generator) -> int:
    """A whole number from the first to the second, both included."""
    return int(rng.integers(bounds[0], bounds[1] + 1))
