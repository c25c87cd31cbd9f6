"""How ink lies on paper: condensed and slanted letters, dot matrices, worn and faded print, outlines and shadows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from framework.vision import degrade, image
from framework.vision.sample_transforms.checks import check_number, check_range


@dataclass(frozen=True)
class InkStyle:
    """Ranges (least, most) and probabilities `p_…`, which are all 0 by default: ink is drawn as the font has it.

    Attributes:
        stretch: Factor of the width; receipts have letters of half the usual width.
        slant: Up to how far the top of a line is moved along it, as a share of its height; to both sides.
        weight: How much strokes gain (above 0) or lose (below), as a share of what their edges allow.
        dots: Dots a line height of a dot matrix.
        fade: Least share of ink where a worn ribbon or thermal head leaves gaps, in patches.
        speckle: Share of pixels without ink, as of a scan with two values.
        halo: Width of an outline or shadow in a colour of its own, as a share of the line's height.

    Raises:
        ConfigError: a range is empty or out of bounds, or a probability is none.
    """

    stretch: tuple[float, float] = (0.55, 1.25)
    p_stretch: float = 0.0
    slant: float = 0.3
    p_slant: float = 0.0
    weight: tuple[float, float] = (-0.6, 0.6)
    p_weight: float = 0.0
    dots: tuple[float, float] = (8.0, 14.0)
    p_dots: float = 0.0
    fade: tuple[float, float] = (0.05, 0.7)
    p_fade: float = 0.0
    speckle: tuple[float, float] = (0.02, 0.25)
    p_speckle: float = 0.0
    halo: tuple[float, float] = (0.03, 0.12)
    p_halo: float = 0.0

    def __post_init__(self) -> None:
        for name in vars(self):
            if name.startswith("p_"):
                check_number(self, name, 0, 1)
        check_range(self, "stretch", 0.2, 5)
        check_number(self, "slant", 0, 2)
        check_range(self, "weight", -1, 1)
        check_range(self, "dots", 2, 100)
        check_range(self, "fade", 0, 1)
        check_range(self, "speckle", 0, 1)
        check_range(self, "halo", 0, 1)

    def draw_stretch(self, rng: np.random.Generator) -> float:
        """A factor of the width; 1 where letters stay as wide as the font has them."""
        return rng.uniform(*self.stretch) if self.p_stretch and rng.random() < self.p_stretch else 1.0


def widen(coverage: np.ndarray, factor: float) -> np.ndarray:
    """`coverage [H, W]` of `factor` times the width."""
    if factor == 1.0:
        return coverage
    height, width = coverage.shape
    return image.resize(coverage, (height, max(1, round(width * factor))), "area" if factor < 1 else "linear")


def slant(coverage: np.ndarray, share: float) -> np.ndarray:
    """`coverage [H, W]` with its top moved right by `share` heights, or left below 0; that much wider."""
    height = coverage.shape[0]
    reach = abs(share) * height
    if reach < 1:
        return coverage
    padded = np.pad(coverage, ((0, 0), (0, round(reach))))
    along = np.linspace(1, 0, height) if share > 0 else np.linspace(0, 1, height)
    offsets = np.zeros((*padded.shape, 2), np.float32)
    offsets[..., 0] = -reach * along[:, None]
    return degrade.displace(padded, offsets, border=0)


def wear(coverage: np.ndarray, style: InkStyle, rng: np.random.Generator) -> np.ndarray:
    """`coverage [H, W]` of a line as a printer leaves it: other weight, dots, patches and specks without ink."""
    steps: tuple[tuple[float, Callable[[np.ndarray], np.ndarray]], ...] = (
        (style.p_weight, lambda ink: _change_weight(ink, rng.uniform(*style.weight))),
        (style.p_dots, lambda ink: _print_dots(ink, rng.uniform(*style.dots), rng)),
        (style.p_fade, lambda ink: _fade(ink, rng.uniform(*style.fade), rng)),
        (style.p_speckle, lambda ink: _speckle(ink, rng.uniform(*style.speckle), rng)),
    )
    for probability, step in steps:
        if probability and rng.random() < probability:
            coverage = step(coverage)
    return coverage


def grow(coverage: np.ndarray, pixels: float, shift_xy: tuple[int, int] = (0, 0)) -> np.ndarray:
    """Where an outline of some pixels around the ink, or its shadow moved by `shift_xy`, lies on the same canvas."""
    grown = degrade.blur(coverage, max(0.4, pixels)).astype(np.uint16)
    grown = np.minimum(grown * 5, 255).astype(np.uint8)
    return np.roll(grown, (shift_xy[1], shift_xy[0]), axis=(0, 1))


def _change_weight(ink: np.ndarray, gain: float) -> np.ndarray:
    soft = degrade.blur(ink, max(0.5, 0.03 * ink.shape[0])).astype(np.float32)
    level = 128 - 90 * gain
    return np.clip((soft - level) * 3 + 128, 0, 255).astype(np.uint8)


def _print_dots(ink: np.ndarray, count: float, rng: np.random.Generator) -> np.ndarray:
    height, width = ink.shape
    pitch = height / count
    if pitch < 1.8:  # finer than pixels show
        return ink
    down = np.sin(np.pi * (np.arange(height) / pitch + rng.random())) ** 2
    across = np.sin(np.pi * (np.arange(width) / pitch + rng.random())) ** 2
    gaps = rng.uniform(0.4, 1.0)
    dots = 1 - gaps * (1 - np.sqrt(down[:, None] * across[None]))
    return np.clip(ink * dots * rng.uniform(1.0, 1.5), 0, 255).astype(np.uint8)


def _fade(ink: np.ndarray, least: float, rng: np.random.Generator) -> np.ndarray:
    height, width = ink.shape
    cells = max(2, round(height / rng.uniform(6, 30))), max(2, round(width / rng.uniform(8, 60)))
    if rng.random() < 0.3:  # a row of the thermal head, or a fold
        cells = cells[0] + 2, 2
    coarse = rng.random(cells, dtype=np.float32)
    share = least + (1 - least) * image.resize(coarse, (height, width), "linear")
    return (ink * np.clip(share * rng.uniform(0.9, 1.4), 0, 1)).astype(np.uint8)


def _speckle(ink: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    rough = degrade.noise(ink.shape, rng)
    if rng.random() < 0.5:
        rough = degrade.blur(rough, 0.7)
        rough = rough * np.float32(2.2)
    level = np.quantile(rough[::2, ::2], share)
    return np.where(rough < level, 0, ink).astype(np.uint8)
