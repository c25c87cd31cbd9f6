"""Lines and columns of text as coverage, for images that are made to learn from.

Fonts are named as in `framework.vision.fonts`: the path of a file, or "" for the one inside Pillow.
"""

from __future__ import annotations

import unicodedata
from functools import cache

import numpy as np
from PIL import features

from framework.vision.fonts import open_font

# Scripts whose letters change with their neighbours or change places: they need Pillow's raqm layout.
_SHAPED = (
    (0x0590, 0x08FF),  # Hebrew to Arabic Extended-A
    (0x0900, 0x0DFF),  # Devanagari to Sinhala
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x0F00, 0x109F),  # Tibetan, Myanmar
    (0x1780, 0x18AF),  # Khmer, Mongolian
    (0xFB1D, 0xFDFF),  # presentation forms
    (0xFE70, 0xFEFE),
)
_LEAST_HEIGHT = 0.5
"""Of the font size: a dash alone is as high as a small letter."""


@cache
def can_shape() -> bool:
    """Whether Pillow has raqm, which lays out right-to-left and complex scripts."""
    return bool(features.check("raqm"))


@cache
def needs_shaping(char: str) -> bool:
    """Whether the character's script needs raqm, or it is a mark on the letter before it."""
    return unicodedata.combining(char) != 0 or any(low <= ord(char) <= high for low, high in _SHAPED)


def measure_line(font: str, text: str) -> float:
    """Width of the line as a multiple of the font size, without letter spacing."""
    return open_font(font, 32).getlength(text) / 32


def draw_line(font: str, text: str, size: int, spacing: float = 0.0) -> np.ndarray:
    """Coverage `[H, W]` uint8 of `text` on one line, cut to its ink.

    A line lower than half of `size` gets room above its baseline.

    Args:
        spacing: Added between letters, as a share of `size`; nothing is added to scripts that are shaped.
    """
    opened = open_font(font, size)
    gap = spacing * size
    if abs(gap) < 0.5 or any(map(needs_shaping, text)):
        mask, (_, top) = opened.getmask2(text, mode="L", anchor="ls")
        return _cut(_pixels(mask), top, size)
    parts, x = [], 0.0
    for char in text:
        mask, (left, top) = opened.getmask2(char, mode="L", anchor="ls")
        if mask.size[0] and mask.size[1]:
            parts.append((_pixels(mask), round(x + left), top))
        x += max(opened.getlength(char) + gap, 1.0)
    coverage, (_, top) = _join(parts)
    return _cut(coverage, top, size)


def draw_column(font: str, text: str, size: int, spacing: float = 0.0) -> np.ndarray:
    """Coverage `[H, W]` uint8 of the characters of `text` upright from top to bottom, cut to their ink.

    Each stands in the middle of the column.
    """
    opened = open_font(font, size)
    parts, y = [], 0.0
    for char in text:
        mask, (_, top) = opened.getmask2(char, mode="L", anchor="ls")
        width, height = mask.size
        if width and height:
            # A low or high sign keeps its place in the square of its letter.
            parts.append((_pixels(mask), -(width // 2), round(y + size + min(top, 0))))
        y += size * (0.5 if char == " " else 1.05) + spacing * size
    coverage, _ = _join(parts)
    return _cut_columns(coverage)


def _pixels(mask: object) -> np.ndarray:
    width, height = mask.size  # pyright: ignore[reportAttributeAccessIssue]  Pillow's core image
    return np.frombuffer(bytes(mask), np.uint8).reshape(height, width)  # pyright: ignore[reportArgumentType]


def _join(parts: list[tuple[np.ndarray, int, int]]) -> tuple[np.ndarray, tuple[int, int]]:
    """One canvas of pieces (pixels, left, top), and its own left and top."""
    if not parts:
        return np.zeros((1, 1), np.uint8), (0, 0)
    left, top = min(x for _, x, _ in parts), min(y for _, _, y in parts)
    right = max(x + part.shape[1] for part, x, _ in parts)
    bottom = max(y + part.shape[0] for part, _, y in parts)
    canvas = np.zeros((bottom - top, right - left), np.uint8)
    for part, x, y in parts:
        place = canvas[y - top : y - top + part.shape[0], x - left : x - left + part.shape[1]]
        np.maximum(place, part, out=place)
    return canvas, (left, top)


def _cut(coverage: np.ndarray, top: int, size: int) -> np.ndarray:
    """Cut to the ink; `top` is the first row's place below the baseline (above: negative)."""
    coverage = _cut_columns(coverage)
    rows = np.flatnonzero(coverage.max(axis=1, initial=0))
    if not len(rows):
        return np.zeros((max(1, size // 2), 1), np.uint8)
    first, last = int(rows[0]), int(rows[-1]) + 1
    missing = round(_LEAST_HEIGHT * size) - (last - first)
    if missing <= 0:
        return coverage[first:last]
    # What is above the baseline grows upwards down to it, a mark at the height of capitals grows downwards.
    below = min(missing, max(0, -(top + last)))
    return np.pad(coverage[first:last], ((missing - below, below), (0, 0)))


def _cut_columns(coverage: np.ndarray) -> np.ndarray:
    columns = np.flatnonzero(coverage.max(axis=0, initial=0))
    return coverage[:, columns[0] : columns[-1] + 1] if len(columns) else coverage[:, :1]


def draw_run(font: str, text: str, size: int) -> tuple[np.ndarray, int, int]:
    """Coverage `[H, W]` uint8 of `text` on one line, and where its left and top edges lie.

    They are counted from the beginning of the baseline, to the right and down, so lines keep their places whatever
    letters they have. Text without ink is `[0, 0]`.
    """
    mask, (left, top) = open_font(font, size).getmask2(text, mode="L", anchor="ls")
    return _pixels(mask), left, top
