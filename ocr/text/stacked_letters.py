"""Words whose upright letters stand below one another, as on signs: single letters that are one line.

Letters of a column stand closer to the next one below than to anything beside them, and beside most of them nothing
else stands: a column of a table has its rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from framework.vision.image import resize
from ocr.results.lines import Char, Line, Word, as_polygon
from ocr.text.reading_order import merge_quads, quad_of

LEAST_STACKED = 3  # letters of a word
_LEVEL = 0.4  # of a letter's height: how far middles of one column are apart
_PITCH = (0.7, 2.4)  # of the height: from a letter's middle to the next one's
_HEIGHTS = 1.6  # the highest letter over the lowest
_EVEN = 1.5  # the largest distance over the least
_BESIDE = 1.2  # times the distance to the next letter: how far away what stands beside has to be
_ALIKE = {"0": "O", "1": "I", "一": "I"}  # of a letter alone nobody can tell which of both it is
_MARGIN = 0.2  # of a letter's height: what the detector adds at either side
_ALONE = 0.6  # of the letters: beside which nothing may stand but letters of other such words


def find_stacks(boxes: np.ndarray, letters: Sequence[str]) -> list[list[int]]:
    """Columns of single letters, each from the top.

    Args:
        boxes: [N, 4] left, top, right, bottom of all lines of an upright page.
        letters: What each line says.
    """
    single = [i for i, text in enumerate(letters) if len(text.strip()) == 1 and text.strip().isalnum()]
    if len(single) < LEAST_STACKED:
        return []
    middles = (boxes[:, :2] + boxes[:, 2:]) / 2
    heights = boxes[:, 3] - boxes[:, 1]
    below = {i: _next_below(i, single, middles, heights) for i in single}
    targets = [j for j in below.values() if j is not None]
    stacks = []
    for start in single:
        if start in targets:
            continue
        stack, item = [start], below[start]
        while item is not None and item not in stack:
            stack.append(item)
            item = below[item]
        if _is_word(stack, single, boxes, middles, heights, letters):
            stacks.append(stack)
    return stacks


def join_stack(lines: Sequence[Line], text: str | None) -> Line:
    """One vertical line of letters; `text` is what it says, as long, where the letters alone do not tell."""
    letters = text if text and text.isalnum() else "".join(line.text.strip() for line in lines)
    if all(letter.isupper() or letter in _ALIKE for letter in letters):
        letters = "".join(_ALIKE.get(letter, letter) for letter in letters)
    score = sum(line.score for line in lines) / len(lines)
    chars = tuple(Char(letter, line.score, line.polygon) for letter, line in zip(letters, lines, strict=True))
    around = as_polygon(merge_quads([quad_of(line.polygon) for line in lines]))
    return Line(letters, score, around, (Word(letters, score, around, chars),), 0, True)


def letters_in_a_row(crops: Sequence[np.ndarray]) -> np.ndarray:
    """Images of letters [h, w, 3] side by side, at the height of the lowest, without their margins at the sides."""
    height = min(crop.shape[0] for crop in crops)
    scaled = [resize(crop, (height, max(round(crop.shape[1] * height / crop.shape[0]), 1))) for crop in crops]
    cut = [max(min(round(_MARGIN * height), image.shape[1] // 5), 0) for image in scaled]
    return np.concatenate([image[:, n : image.shape[1] - n] for image, n in zip(scaled, cut)], axis=1)


def _next_below(item: int, single: Sequence[int], middles: np.ndarray, heights: np.ndarray) -> int | None:
    best, nearest = None, np.inf
    for other in single:
        height = max(heights[item], heights[other])
        across, down = abs(middles[other, 0] - middles[item, 0]), middles[other, 1] - middles[item, 1]
        fits = across <= _LEVEL * height and _PITCH[0] * height <= down <= _PITCH[1] * height
        if fits and down < nearest and height <= _HEIGHTS * min(heights[item], heights[other]):
            best, nearest = other, down
    return best


def _is_word(
    stack: Sequence[int],
    single: Sequence[int],
    boxes: np.ndarray,
    middles: np.ndarray,
    heights: np.ndarray,
    letters: Sequence[str],
) -> bool:
    text = "".join(letters[i].strip() for i in stack)
    if len(stack) < LEAST_STACKED or 2 * sum(map(str.isalpha, text)) <= len(text):
        return False
    steps = np.diff(middles[stack, 1])
    if steps.max() > _EVEN * steps.min() or heights[stack].max() > _HEIGHTS * heights[stack].min():
        return False
    pitch, others = float(np.median(steps)), np.delete(np.arange(len(boxes)), stack)
    alone = 0
    for i in stack:
        level = abs(middles[others, 1] - middles[i, 1]) < np.maximum(heights[others], heights[i]) / 2
        beside = others[level]
        gaps = np.maximum(boxes[beside, 0] - boxes[i, 2], boxes[i, 0] - boxes[beside, 2])
        widths = (boxes[beside, 2] - boxes[beside, 0] + boxes[i, 2] - boxes[i, 0]) / 2
        near = gaps + widths < _BESIDE * pitch
        if near.any():
            return False
        alone += all(int(other) in single for other in beside)
    return alone >= _ALONE * len(stack)
