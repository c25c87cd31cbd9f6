"""Ruling lines of a scanned page, so that its ruled tables need no network."""

from __future__ import annotations

import numpy as np

from framework.vision.line_segments import find_ruling_lines
from ocr.tables.ruling_lines import Rules

MIN_LENGTH = (
    30.0  # points: longer than strokes of letters and the serifs of words, shorter than two rows of a table
)
MAX_THICKNESS = 3.0  # points


def rules_of_image(image: np.ndarray, *, dpi: float | None = None) -> Rules:
    """The ruling lines of a page's image, [H, W, 3] uint8 RGB.

    Args:
        dpi: Its resolution; without it the image is taken as a page of A4 or Letter (11.5 inches on the long side).
    """
    resolution = max(image.shape[:2]) / 11.5 if dpi is None else dpi
    unit = max(resolution / 72.0, 0.5)
    level, upright = find_ruling_lines(
        image, min_length=max(8, round(MIN_LENGTH * unit)), max_thickness=max(2, round(MAX_THICKNESS * unit))
    )
    return Rules(level, upright, (), unit)
