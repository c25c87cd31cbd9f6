"""Single lines of text for recognisers, drawn while they are read."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from framework.config.registry import register
from framework.vision import degrade
from framework.vision.image import rotate90
from framework.vision.sample import Sample
from framework.vision.sample_transforms.checks import check_number, check_range
from framework.vision.warp import Warp
from ocr.data.synthetic.backgrounds import draw_background, draw_text_colour, luma_of
from ocr.data.synthetic.base import Material, SyntheticText
from ocr.data.synthetic.glyphs import draw_column, draw_line, measure_line
from ocr.data.synthetic.ink import grow, slant, wear, widen
from ocr.data.synthetic.style import TextStyle, degrade_image, draw_integer

_INK = 0.85  # height of a line's ink as a share of the font size, on average
_SMALLEST, _LARGEST = 8, 256  # font sizes in pixels


@register("dataset")
@dataclass(frozen=True)
class SyntheticTextLines(SyntheticText):
    """Crops of lines of text: `image [H, W, 3]`, `text` and the index as `id`.

    `height` (least, most) is the crop's in pixels; its width follows from the text. Crops begin `padding` (least,
    most) line heights beside the ink, drawn for each side; less than 0 cuts into it. A share `vertical` are columns
    of upright characters, turned counter-clockwise by a quarter as pipelines turn columns before they read them.

    The other settings are those of `SyntheticText` and of its `style`.

    Raises:
        ConfigError: a number is out of range.
        InputError: at the first use, a file is not there, no font or no text is found, or a character is in no font.
    """

    height: tuple[int, int] = (32, 64)
    padding: tuple[float, float] = (-0.03, 0.2)
    vertical: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "height", 8, 512)
        check_range(self, "padding", -0.2, 2)
        check_number(self, "vertical", 0, 1)

    def __getitem__(self, index: int) -> Sample:
        return self._draw(index, self._draw_line)

    def _draw_line(self, material: Material, rng: np.random.Generator) -> Sample:
        style = self.style
        font, text = material.fonts.choose(material.texts.draw(rng), rng)
        vertical = bool(rng.random() < self.vertical)
        height = draw_integer(self.height, rng)
        pads = rng.uniform(*self.padding, 4)
        spacing = draw_spacing(style, rng)
        curve = rng.uniform(-style.curve, style.curve) if rng.random() < style.p_curve else 0.0
        corners = np.zeros((4, 2))
        if rng.random() < style.p_perspective:
            corners = rng.uniform(-style.perspective, style.perspective, (4, 2))
        turn = rng.uniform(-style.rotation, style.rotation) if rng.random() < style.p_rotation else 0.0
        stretch = style.ink.draw_stretch(rng)
        # How much higher than the text the crop will be decides the font size, so that little is scaled.
        aspect = (1.05 * len(text) if vertical else measure_line(font, text) + spacing * len(text)) / _INK
        aspect *= stretch
        taller = 1 + abs(curve) + pads[0] + pads[2] + aspect * math.sin(math.radians(abs(turn)))
        taller += corners[:, 1].max() - corners[:, 1].min()
        size = round(min(max(height / taller / _INK, _SMALLEST), _LARGEST))
        ink = (draw_column if vertical else draw_line)(font, text, size, spacing)
        ink = widen(rotate90(ink, -1) if vertical else ink, stretch)
        if style.ink.p_slant and rng.random() < style.ink.p_slant:
            ink = slant(ink, rng.uniform(-style.ink.slant, style.ink.slant))
        ink = bend(wear(ink, style.ink, rng), curve)
        coverage = _place(ink, corners, turn, pads, height)
        canvas = draw_background(coverage.shape, style, material.images, rng)
        colour = draw_text_colour(canvas, style, rng)
        if style.ink.p_halo and rng.random() < style.ink.p_halo:
            canvas = _draw_halo(canvas, coverage, colour, style, rng)
        canvas = degrade.blend(canvas, coverage, colour)
        return Sample(degrade_image(canvas, style, rng), text=text)


def _draw_halo(
    canvas: np.ndarray, coverage: np.ndarray, colour: np.ndarray, style: TextStyle, rng: np.random.Generator
) -> np.ndarray:
    """The canvas with an outline or a shadow that letters of this colour stand out from."""
    wide = rng.uniform(*style.ink.halo) * coverage.shape[0]
    dark = rng.random() < 0.5 if 90 < luma_of(colour) < 165 else luma_of(colour) > 127
    own = np.clip((20 if dark else 235) + rng.normal(0, 25, 3), 0, 255)
    if rng.random() < 0.5:
        return degrade.blend(canvas, grow(coverage, 0.6 * wide), own)
    x, y = (round(sign * wide) for sign in rng.choice((-1, 1), 2).tolist())
    return degrade.blend(canvas, grow(coverage, 0.15 * wide, (x, y)), own)


def draw_spacing(style: TextStyle, rng: np.random.Generator) -> float:
    """Space between letters as a share of the font size; 0 where there is none to add."""
    return rng.uniform(*style.spacing) if rng.random() < style.p_spacing else 0.0


def bend(coverage: np.ndarray, curve: float) -> np.ndarray:
    """`coverage [H, W]` bent to a bow `abs(curve) * H` high, its middle up (above 0) or down; that much higher."""
    height, width = coverage.shape
    bow = round(abs(curve) * height)
    if bow < 1:
        return coverage
    across = (np.arange(width, dtype=np.float32) + 0.5) / width * 2 - 1
    drop = bow * across**2 if curve > 0 else bow * (1 - across**2)  # how far each column lies below the top
    padded = np.pad(coverage, ((0, bow), (0, 0)))
    offsets = np.zeros((*padded.shape, 2), np.float32)
    offsets[..., 1] = -drop
    return degrade.displace(padded, offsets, border=0)


def _place(
    coverage: np.ndarray, corners: np.ndarray, degrees: float, pads: np.ndarray, height: int
) -> np.ndarray:
    """The text with moved corners, turned, with room around it, `height` pixels high.

    Args:
        corners: [4, 2], how far each moves, in text heights. `pads` are top, right, bottom, left, in text heights.
    """
    high, wide = coverage.shape
    # Along the line no further than a narrow text allows: beyond a quarter of a side the corners could cross.
    quad = np.array([[0, 0], [wide, 0], [wide, high], [0, high]], np.float64)
    quad += corners * np.array([min(high, wide), high])
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    quad = quad @ np.array([[cos, sin], [-sin, cos]])
    (left, top), (right, bottom) = quad.min(axis=0), quad.max(axis=0)
    top, right, bottom, left = (
        edge + sign * pad * high
        for edge, sign, pad in zip((top, right, bottom, left), (-1, 1, 1, -1), pads.tolist())
    )
    scale = height / (bottom - top)
    size_hw = height, max(1, round((right - left) * scale))
    quad = (quad - (left, top)) * scale
    return Warp.perspective(size_hw, quad, (high, wide)).inverse().image(coverage)
