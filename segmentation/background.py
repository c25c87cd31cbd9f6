"""Another background for what a model cuts out: blurred, one colour, or an image."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from framework.core.errors import ConfigError
from framework.vision import compose
from framework.vision import image as vision_image

NAMES = ("background", "_background_", "bg")
COLOURS = {
    "black": (0, 0, 0),
    "white": (255, 255, 255),
    "grey": (128, 128, 128),
    "gray": (128, 128, 128),
    "red": (255, 0, 0),
    "green": (0, 177, 64),
    "blue": (0, 71, 187),
}


@dataclass(frozen=True, eq=False)
class Background:
    """What replaces the background class: `image` [H, W, 3] uint8 RGB, `colour`, else the image itself, blurred."""

    colour: tuple[int, int, int] | None = None
    image: np.ndarray | None = field(default=None, repr=False)
    _fitted: dict[tuple[int, int], np.ndarray] = field(default_factory=dict, init=False, repr=False)

    def behind(self, image: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """`image` [H, W, 3] uint8 RGB where `kept` [H, W] bool, this background elsewhere, with soft edges."""
        size_hw = image.shape[0], image.shape[1]
        if self.colour is not None:
            other = np.broadcast_to(np.array(self.colour, np.uint8), image.shape)
        elif self.image is not None:
            other = self._fit_image(size_hw)
        else:
            other = compose.blur(image, max(1, min(size_hw) // 24))
        return compose.compose(image, other, kept)

    def _fit_image(self, size_hw: tuple[int, int]) -> np.ndarray:
        """The image, scaled until it covers `size_hw`, and its middle."""
        assert self.image is not None
        cached = self._fitted.get(size_hw)  # the frames of a video are of one size
        if cached is not None:
            return cached
        height, width = self.image.shape[:2]
        factor = max(size_hw[0] / height, size_hw[1] / width)
        scaled = max(size_hw[0], round(height * factor)), max(size_hw[1], round(width * factor))
        large = vision_image.resize(self.image, scaled, "area" if factor < 1 else "linear")
        top, left = (scaled[0] - size_hw[0]) // 2, (scaled[1] - size_hw[1]) // 2
        fitted = np.ascontiguousarray(large[top : top + size_hw[0], left : left + size_hw[1]])
        self._fitted.clear()
        self._fitted[size_hw] = fitted
        return fitted


def read_background(text: str) -> Background:
    """The background that `--background` names: "blur", a colour (a name, "#00b140", "0,177,64") or an image's path.

    Raises:
        ConfigError: it is none of these. InputError: the image cannot be read.
    """
    name = text.strip().lower()
    if name == "blur":
        return Background()
    if name in COLOURS:
        return Background(COLOURS[name])
    if re.fullmatch(r"#[0-9a-f]{6}", name):
        red, green, blue = bytes.fromhex(name[1:])
        return Background((red, green, blue))
    if re.fullmatch(r"\d{1,3}(,\d{1,3}){2}", name) and max(map(int, name.split(","))) <= 255:
        red, green, blue = map(int, name.split(","))
        return Background((red, green, blue))
    if Path(text).is_file():
        return Background(image=vision_image.read(text))
    raise ConfigError(
        "unknown background",
        where="--background",
        received=text,
        allowed=f"blur; {', '.join(COLOURS)}; a colour such as #00b140 or 0,177,64; the path of an image",
    )


def background_class(names: tuple[str, ...]) -> int:
    """The index of the class that is the background: the one of that name, else 0."""
    return next((index for index, name in enumerate(names) if name.lower() in NAMES), 0)
