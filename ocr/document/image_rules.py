"""Ruling lines of a scanned page, so that its ruled tables need no network."""

from __future__ import annotations

import numpy as np

from framework.vision.line_segments import find_ruling_lines
from ocr.document.rules import Rules

MIN_LENGTH = 14.0  # points: longer than strokes of letters
MAX_THICKNESS = 3.0  # points


def rules_of_image(image: np.ndarray, *, dpi: float | None = None) -> Rules:
    """The ruling lines of a page's image, [H, W, 3] uint8 RGB.

    Args:
        dpi: Its resolution; without it the image is taken as a page of A4 or Letter (11.5 inches on the long side).
    """
    dpi = dpi if dpi is not None else max(image.shape[:2]) / 11.5
    unit = max(dpi / 72.0, 0.5)
    level, upright = find_ruling_lines(
        image, min_length=max(8, round(MIN_LENGTH * unit)), max_thickness=max(2, round(MAX_THICKNESS * unit))
    )
    return Rules(level, upright, (), unit)
