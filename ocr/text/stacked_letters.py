"""Words whose upright letters stand below one another, as on signs: single letters that are one line.

Letters of a column stand closer to the next one below than to anything beside them, and beside most of them nothing
else stands: a column of a table has its rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from framework.vision.image import resize, to_gray
from ocr.results.lines import Char, Line, Word, as_polygon
from ocr.text.letters_apart import INK
from ocr.text.reading_order import merge_quads, quad_of

LEAST_STACKED = 3  # letters of a word
_LEVEL = 0.4  # of a letter's height: how far middles of one column are apart
_PITCH = (0.7, 2.4)  # of the height: from a letter's middle to the next one's
_HEIGHTS = 1.6  # the highest letter over the lowest
_EVEN = 1.5  # the largest distance over the least
_BESIDE = 1.2  # times the distance to the next letter: how far away what stands beside has to be
_ALIKE = {"0": "O", "1": "I", "一": "I"}  # of a letter alone nobody can tell which of both it is
_MARGIN = 0.2  # of a letter's height: what the detector adds at either side
_SHAPES = (0.3, 1.6)  # a quad's width to its height that may be of one letter
_LETTER, _ASIDE = (
    (0.45, 0.95),
    0.25,
)  # of the height of the quads: a letter's own, and how far its middle is aside
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
    return [
        stack
        for stack in _chains(single, middles, heights)
        if _is_word(stack, single, boxes, middles, heights, letters)
    ]


def add_missed_below(image: np.ndarray, quads: np.ndarray) -> np.ndarray:
    """Quads [N, 4, 2] of lines in an image [H, W, 3] uint8, with those of letters that were missed in a stack.

    Where three letters or more stand below one another at one pitch, ink as high and alone a pitch further is one, too.
    """
    if len(quads) < LEAST_STACKED:
        return quads
    boxes = np.concatenate([quads.min(axis=1), quads.max(axis=1)], axis=1)
    middles, sides = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]
    shape = sides[:, 0] / np.maximum(sides[:, 1], 1)
    single = np.flatnonzero((shape >= _SHAPES[0]) & (shape <= _SHAPES[1])).tolist()
    more: list[tuple[float, float, float, float]] = []
    for stack in _chains(single, middles, sides[:, 1]):
        steps = np.diff(middles[stack, 1])
        if len(stack) < LEAST_STACKED or steps.max() > _EVEN * steps.min():
            continue
        height, pitch, across = np.median(sides[stack, 1]), np.median(steps), np.median(middles[stack, 0])
        for step, end in ((-pitch, stack[0]), (pitch, stack[-1])):
            down = middles[end, 1] + step
            while (box := _lone_letter(image, across, down, float(height), float(pitch))) is not None:
                around = np.array([*boxes.tolist(), *more]).reshape(-1, 4)
                at = np.array([(box[0] + box[2]) / 2, (box[1] + box[3]) / 2])
                if ((around[:, :2] < at) & (at < around[:, 2:])).all(axis=1).any():
                    break
                more.append(box)
                down += step
    corners = [((x0, y0), (x1, y0), (x1, y1), (x0, y1)) for x0, y0, x1, y1 in more]
    return np.concatenate([quads, np.array(corners, quads.dtype)]) if more else quads


def _lone_letter(
    image: np.ndarray, across: float, down: float, height: float, pitch: float
) -> tuple[float, float, float, float] | None:
    """The box with its margin of a letter whose middle is about here, where it stands alone in as much room as those
    of its stack have; None where there is none.
    """
    left, right = round(across - height), round(across + height)
    top, bottom = round(down - pitch / 2), round(down + pitch / 2)
    if left < 0 or top < 0 or right > image.shape[1] or bottom > image.shape[0]:
        return None
    grey = to_gray(image[top:bottom, left:right]).astype(np.int16)
    rows, columns = np.nonzero(np.abs(grey - np.median(grey)) > INK)
    if not len(rows):
        return None
    x0, y0, x1, y1 = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
    inside = x0 > 0 and y0 > 0 and x1 < right - left and y1 < bottom - top
    level = abs((x0 + x1) / 2 - (across - left)) <= _ASIDE * height
    if (
        not inside
        or not level
        or not _LETTER[0] * height <= y1 - y0 <= _LETTER[1] * height
        or x1 - x0 > height
    ):
        return None
    margin = _MARGIN * height
    return (
        float(left + x0 - margin),
        float(top + y0 - margin),
        float(left + x1 + margin),
        float(top + y1 + margin),
    )


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


def _chains(single: Sequence[int], middles: np.ndarray, heights: np.ndarray) -> list[list[int]]:
    """Letters below one another, each from the top."""
    below = {i: _next_below(i, single, middles, heights) for i in single}
    targets = {j for j in below.values() if j is not None}
    chains = []
    for start in single:
        if start in targets:
            continue
        chain, item = [start], below[start]
        while item is not None and item not in chain:
            chain.append(item)
            item = below[item]
        chains.append(chain)
    return chains


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
