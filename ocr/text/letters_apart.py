"""Letters that stand each by itself, as in the boxes of a form: those that a detector misses, and what they are.

A detector of lines takes a thin letter alone, such as I, for no text, and often wide ones, too. Where letters stand in
a row at one pitch and one is missing between them or at an end, ink as high as they are is that letter. Whether it is a
letter or a digit only its neighbours tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from framework.vision.image import to_gray
from ocr.results.geometry import rows_of_boxes
from ocr.results.lines import Line

LEAST, ALONE = 3, 4  # letters of a row; of one of which the detector has one alone
THINNEST, LONG = 0.2, 6.0  # times its height, a quad's width: a longer one is a line of text
REACH = 8.0  # times the height: how far beyond its ends a row is looked at
INK = 60  # of 255: how far ink is from its ground
RULE, RULED = (
    1.3,
    0.9,
)  # ink as long in a row of pixels, times the height, or in a column, is a line of the form
LOWEST, WIDE = 0.3, 1.2  # of the quads' height: the height of a letter, at least; its width, at most
APART, EVEN = 1.2, 0.25  # of letters' height: the least pitch; share of the pitch by which a step may differ
TALLER, FEET = 1.6, 0.25  # neighbours of a row: one's height to the other's; how far their feet differ
MARGIN, NARROWEST = 0.2, 0.9  # of the height, around a letter; the least width, which a recogniser needs
NARROW = 0.6  # of its height: a quad around a letter that is made wider
LINE = 0.3  # of its height: where two runs of rows of ink are that high, they are letters of two lines
LETTERS = 0.5  # of a row's characters that are letters, at least, where the others are letters, too
FIRST_IDEOGRAM = "\u2e80"  # from there on a line alone may be the sign of one
SAME_LOOKS = {"0": "O", "1": "I", "l": "I", "|": "I", "一": "I"}


def add_missed(image: np.ndarray, quads: np.ndarray) -> np.ndarray:
    """Quads [N, 4, 2] of lines in an image [H, W, 3] uint8, with those of single letters that were missed.

    Where letters stand in a row at one pitch, ink between two quads or beyond the last one is a letter, too, and a quad
    around a thin letter alone is made as wide as a recogniser needs.
    """
    if not len(quads):
        return quads
    boxes = np.concatenate([quads.min(axis=1), quads.max(axis=1)], axis=1)
    sides = boxes[:, 2:] - boxes[:, :2]
    shape = sides[:, 0] / np.maximum(sides[:, 1], 1)
    short = np.flatnonzero((shape >= THINNEST) & (shape <= LONG))
    quads, more = quads.copy(), []
    for row in rows_of_boxes(boxes[short]):
        seeds = boxes[short[row]]
        top, bottom = (round(float(np.median(seeds[:, side]))) for side in (1, 3))
        height = bottom - top
        left = max(round(float(seeds[:, 0].min()) - REACH * height), 0)
        right = round(float(seeds[:, 2].max()) + REACH * height)
        beside = np.flatnonzero((boxes[:, 1] < bottom) & (boxes[:, 3] > top))
        letters = _ink_of_letters(image, (left, top, right, bottom))
        owners = [
            beside[(boxes[beside, 0] <= (x0 + x1) / 2) & (boxes[beside, 2] >= (x0 + x1) / 2)].tolist()
            for x0, _, x1, _ in letters
        ]
        for first, last in _even_rows(letters):
            detected = sum(map(bool, owners[first:last]))
            if not detected or last - first < (LEAST if detected > 1 else ALONE):
                continue
            for box, owner in zip(letters[first:last], owners[first:last], strict=True):
                if not owner:
                    more.append(_around(box, height))
                elif len(owner) == 1 and owners.count(owner) == 1 and shape[owner[0]] < NARROW:
                    quads[owner[0]] = _around(box, height)
    return np.concatenate([quads, np.array(more, quads.dtype)]) if more else quads


def _ink_of_letters(image: np.ndarray, strip: tuple[int, int, int, int]) -> list[tuple[int, int, int, int]]:
    """The boxes of ink in a strip of an image that may be letters, and of other ink, without lines of a form.

    Other ink has no height: (x0, y, x1, y).
    """
    left, top, right, bottom = strip
    height = bottom - top
    grey = to_gray(image[max(top, 0) : bottom, left:right]).astype(np.int16)
    if grey.size == 0:
        return []
    ink = np.abs(grey - np.median(grey)) > INK
    ink[:, ink.mean(axis=0) > RULED] = False
    longest = round(RULE * height)
    for line in ink:
        edges = np.flatnonzero(np.diff(np.concatenate([[False], line, [False]]).astype(np.int8)))
        for start, end in edges.reshape(-1, 2).tolist():
            if end - start > longest:
                line[start:end] = False
    columns = np.flatnonzero(np.diff(np.concatenate([[False], ink.any(axis=0), [False]]).astype(np.int8)))
    boxes = []
    for start, end in columns.reshape(-1, 2).tolist():
        rows = np.flatnonzero(ink[:, start:end].any(axis=1))
        low, high = int(rows[0]), int(rows[-1]) + 1
        runs = np.diff(np.flatnonzero(np.diff(np.concatenate([[-2], rows, [bottom + 2]])) > 1))
        one_line = (runs >= LINE * (high - low)).sum() == 1
        letter = one_line and high - low >= LOWEST * height and end - start <= WIDE * height
        boxes.append((left + start, max(top, 0) + low, left + end, max(top, 0) + (high if letter else low)))
    return boxes


def _even_rows(letters: Sequence[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
    """The first and the last number (without it) of letters that stand on one line at one pitch."""
    rows, first, pitch = [], 0, 0.0
    for number, (before, letter) in enumerate(pairwise(letters), 1):
        step = (letter[0] + letter[2] - before[0] - before[2]) / 2
        low, high = sorted((before[3] - before[1], letter[3] - letter[1]))
        alike = (
            0 < high <= TALLER * low and abs(letter[3] - before[3]) <= FEET * high and step >= APART * high
        )
        if alike and number - first > 1 and abs(step - pitch) <= EVEN * pitch:
            continue
        rows.append((first, number))
        first, pitch = (number - 1, step) if alike else (number, 0.0)
    return [*rows, (first, len(letters))]


def _around(ink: tuple[int, int, int, int], height: int) -> list[tuple[float, float]]:
    """The quad around the ink of a letter, as wide as a recogniser needs, in a row of quads of a height."""
    side = max(MARGIN * height, (NARROWEST * height - (ink[2] - ink[0])) / 2)
    x0, x1 = ink[0] - side, ink[2] + side
    y0, y1 = ink[1] - MARGIN * height, ink[3] + MARGIN * height
    return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]


def as_letters(lines: Sequence[Line]) -> list[Line]:
    """Lines, with digits and signs that look like letters as those, where letters stand apart in a row."""
    lines = list(lines)
    apart = [n for n, line in enumerate(lines) if not line.orientation and _stand_apart(line)]
    if not any(SAME_LOOKS.keys() & set(lines[n].text) for n in apart):
        return lines
    for row in rows_of_boxes([_box(lines[n]) for n in apart]):
        numbers = [apart[i] for i in row]
        texts = [character for n in numbers for character in "".join(lines[n].text.split())]
        letters = sum(text.isalpha() and text < FIRST_IDEOGRAM and text not in SAME_LOOKS for text in texts)
        digits = sum(text.isdigit() and text not in SAME_LOOKS for text in texts)
        if len(texts) < LEAST or digits or letters < LETTERS * len(texts):
            continue
        for n in numbers:
            lines[n] = _renamed(lines[n])
    return lines


def _stand_apart(line: Line) -> bool:
    """Whether the characters of a line stand each by itself."""
    tokens = line.text.split()
    if all(len(token) == 1 for token in tokens):
        return True
    left, top, right, bottom = _box(line)
    return right - left >= APART * (bottom - top) * sum(map(len, tokens))


def _box(line: Line) -> tuple[float, float, float, float]:
    xs, ys = zip(*line.polygon, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def _renamed(line: Line) -> Line:
    """A line with letters in place of what looks like them."""

    def letters(text: str) -> str:
        return "".join(SAME_LOOKS.get(character, character) for character in text)

    words = tuple(
        replace(
            word,
            text=letters(word.text),
            chars=tuple(replace(char, text=letters(char.text)) for char in word.chars),
        )
        for word in line.words
    )
    return replace(line, text=letters(line.text), words=words)
