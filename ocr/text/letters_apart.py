"""Letters that stand each by itself, as in the boxes of a form: those that a detector misses, and what they are.

A detector of lines takes a thin letter alone, such as I, for no text. Where letters stand in a row at one pitch and one
is missing, ink as high as they are is that letter. Whether it is a letter or a digit only its neighbours tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from framework.vision.image import to_gray
from ocr.results.geometry import rows_of_boxes
from ocr.results.lines import Line

LEAST = 3  # letters of a row
SHAPE = (0.4, 1.6)  # a letter's width, to its height
ALIKE = 1.5  # the highest letter of a row to the lowest
MISSING = 1.6  # times the usual pitch: from there on a letter may be missing
MOST = 5.0  # times the pitch: further away stands another row
INK = 60  # of 255: how far ink is from its ground
HIGH, WIDE = (0.45, 1.05), 1.2  # of the letters' boxes: the height of a missed letter; its width, at most
RULED = (0.6, 0.9)  # of a row, of a column of pixels that is ink: more is a line of the form
BEYOND = 0.35  # of the height, above and below: what goes on there is a line of the form
MARGIN, NARROWEST = 0.2, 0.9  # of the height, around a letter; the least width, which a recogniser needs
LETTERS = 0.6  # of a row's characters that are letters, at least, where the others are letters, too
SAME_LOOKS = {"0": "O", "1": "I", "l": "I", "|": "I", "一": "I"}


def add_missed(image: np.ndarray, quads: np.ndarray) -> np.ndarray:
    """Quads [N, 4, 2] of lines in an image [H, W, 3] uint8, with those of single letters that were missed."""
    if len(quads) < LEAST:
        return quads
    boxes = np.concatenate([quads.min(axis=1), quads.max(axis=1)], axis=1)
    sides = boxes[:, 2:] - boxes[:, :2]
    shape = sides[:, 0] / np.maximum(sides[:, 1], 1)
    single = boxes[(shape >= SHAPE[0]) & (shape <= SHAPE[1])]
    if len(single) < LEAST:
        return quads
    more = []
    for row in rows_of_boxes(single):
        letters = single[row]
        heights = letters[:, 3] - letters[:, 1]
        centres = (letters[:, 0] + letters[:, 2]) / 2
        if len(row) < LEAST or heights.max() > ALIKE * heights.min():
            continue
        pitch = max(float(np.diff(centres).min()), 0.6 * float(np.median(heights)))
        for before, after in pairwise(letters):
            apart = (after[0] + after[2] - before[0] - before[2]) / 2
            if MISSING * pitch <= apart <= MOST * pitch:
                gap = (before[2], min(before[1], after[1]), after[0], max(before[3], after[3]))
                free = not ((boxes[:, 0] < gap[2]) & (boxes[:, 2] > gap[0]) & (boxes[:, 1] < gap[3])
                            & (boxes[:, 3] > gap[1])).any()  # fmt: skip
                more += _letters_in(image, gap) if free else []
    return np.concatenate([quads, np.array(more, quads.dtype).reshape(-1, 4, 2)]) if more else quads


def _letters_in(image: np.ndarray, gap: tuple[float, ...]) -> list[list[tuple[float, float]]]:
    """The quads of ink that is as high and wide as letters, in a gap between two of them."""
    left, top, right, bottom = (round(side) for side in gap)
    height = bottom - top
    reach = round(BEYOND * height)
    first = max(top - reach, 0)
    strip = to_gray(image[first : bottom + reach, max(left, 0) : right]).astype(np.int16)
    if strip.size == 0:
        return []
    ink = np.abs(strip - np.median(strip)) > INK
    ink[ink.mean(axis=1) > RULED[0]] = False
    ink[:, ink.mean(axis=0) > RULED[1]] = False
    columns = np.flatnonzero(np.diff(np.concatenate([[False], ink.any(axis=0), [False]]).astype(np.int8)))
    quads = []
    for start, end in columns.reshape(-1, 2).tolist():
        rows = np.flatnonzero(ink[:, start:end].any(axis=1))
        high = (rows[-1] - rows[0] + 1) / height
        if end - start > WIDE * height or not HIGH[0] <= high <= HIGH[1]:
            continue
        side = max(MARGIN * height, (NARROWEST * height - (end - start)) / 2)
        x0, x1 = left + start - side, left + end + side
        y0, y1 = first + rows[0] - MARGIN * height, first + rows[-1] + 1 + MARGIN * height
        quads.append([(x0, y0), (x1, y0), (x1, y1), (x0, y1)])
    return quads


def as_letters(lines: Sequence[Line]) -> list[Line]:
    """Lines, with digits and signs alone that look like letters as those, where they stand in a row of letters."""
    lines = list(lines)
    single = [n for n, line in enumerate(lines) if len(line.text.strip()) == 1 and not line.orientation]
    if len(single) < LEAST or not any(lines[n].text.strip() in SAME_LOOKS for n in single):
        return lines
    corners = np.array([_box(lines[n]) for n in single])
    for row in rows_of_boxes(corners):
        numbers = [single[i] for i in row]
        texts = [lines[n].text.strip() for n in numbers]
        doubtful = [text in SAME_LOOKS for text in texts]
        letters = sum(text.isalpha() and not doubt for text, doubt in zip(texts, doubtful, strict=True))
        digits = sum(text.isdigit() and not doubt for text, doubt in zip(texts, doubtful, strict=True))
        if len(row) < LEAST or digits or letters < LETTERS * len(row):
            continue
        for n, text in zip(numbers, texts, strict=True):
            if text in SAME_LOOKS:
                lines[n] = _renamed(lines[n], SAME_LOOKS[text])
    return lines


def _box(line: Line) -> tuple[float, float, float, float]:
    xs, ys = zip(*line.polygon, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def _renamed(line: Line, text: str) -> Line:
    words = tuple(
        replace(word, text=text, chars=tuple(replace(char, text=text) for char in word.chars))
        for word in line.words
    )
    return replace(line, text=text, words=words)
