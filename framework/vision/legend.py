"""A legend below an image: which colour is which class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from framework.vision.draw import font_size
from framework.vision.fonts import text_alpha

_BACKGROUND, _INK, _FRAME = 255, 0, 128  # grey levels
_NARROWEST = 4  # times the size of the letters
_LONGEST = 40  # characters of a name


def add_legend(image: np.ndarray, entries: Sequence[tuple[str, Sequence[int]]]) -> np.ndarray:
    """The image [H, W, 3] uint8 RGB with rows below it: a framed square of each colour, and its name beside it.

    Args:
        entries: (name, RGB colour) in order; without entries, or too narrow for names, the image comes back as it is.
    """
    height, width = image.shape[:2]
    size = font_size((height, width))
    margin = max(2, size // 3)
    if not entries or width < _NARROWEST * size:
        return image
    cells = [_draw_cell(name, color, size, margin, width - 2 * margin) for name, color in entries]
    rows: list[list[np.ndarray]] = [[]]
    for cell in cells:
        used = sum(one.shape[1] + margin for one in rows[-1])
        if rows[-1] and used + cell.shape[1] + margin > width:
            rows.append([])
        rows[-1].append(cell)
    line = max(cell.shape[0] for cell in cells) + margin
    strip = np.full((margin + line * len(rows), width, 3), _BACKGROUND, np.uint8)
    for number, row in enumerate(rows):
        x = margin
        for cell in row:
            y, right = margin + number * line, min(width, x + cell.shape[1])
            strip[y : y + cell.shape[0], x:right] = cell[:, : right - x]
            x = right + margin
    return np.concatenate([image, strip])


def _draw_cell(name: str, color: Sequence[int], size: int, margin: int, widest: int) -> np.ndarray:
    """[size + margin, W, 3]: a square and a name."""
    text = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    alpha = text_alpha(text, size, max(1, widest - size - margin)).astype(np.float32)[..., None] / 255
    height = max(size, alpha.shape[0])
    cell = np.full((height, size + margin + alpha.shape[1], 3), _BACKGROUND, np.uint8)
    top = (height - size) // 2
    cell[top : top + size, :size] = _FRAME
    cell[top + 1 : top + size - 1, 1 : size - 1] = np.asarray(color, np.uint8)
    ink = (_BACKGROUND * (1 - alpha) + _INK * alpha).round().astype(np.uint8)
    cell[(height - alpha.shape[0]) // 2 :][: alpha.shape[0], size + margin :] = ink
    return cell
