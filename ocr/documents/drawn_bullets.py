"""Bullets of lists that a PDF page draws as shapes, as browsers print them: they are no letters then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from framework.workflow.files.pdf_content import PageContent, PagePath
from ocr.results.blocks import Box
from ocr.results.geometry import bounding_box, box_polygon, line_box
from ocr.results.lines import Line, Word
from ocr.text.columns import BULLETS

# Multiples of the size of the type.
SIDES = (0.12, 0.6)  # of a mark
ROOM = (0.1, 2.6)  # from a mark to its line: the least, the greatest
LEVEL = 0.35  # by which a mark's middle misses that of the small letters at most
LEADER = 1.5  # to the next mark at its left: nearer ones are a row of dots
MIDDLE = 0.55  # of a line's height, from its top: the middle of the small letters
ROUND = 1.4  # of the longer to the shorter side
WHITE = 235  # channels of a ground
MOST = 2000  # marks of a page: a drawing of more points is no list


class Mark(NamedTuple):
    """A small shape and the character that it stands for."""

    box: Box
    sign: str


def add_drawn_bullets(lines: Sequence[Line], page: PageContent) -> list[Line]:
    """The lines of a page, with "•", "◦" and "▪" in front of those that small dots, rings and squares stand before."""
    lines = list(lines)
    sizes = [line.style.size for line in lines if line.style is not None]
    if not sizes:
        return lines
    marks = list(_marks(page, SIDES[0] * min(sizes), SIDES[1] * max(sizes)))
    if not marks or len(marks) > MOST:
        return lines
    boxes = np.array([mark.box for mark in marks])
    bounds = np.array([line_box(line) for line in lines])
    middles = (boxes[:, 1] + boxes[:, 3]) / 2
    for number, line in enumerate(lines):
        if line.style is None or line.orientation or line.vertical or line.text[:1] in BULLETS:
            continue
        size, (left, top, _, bottom) = line.style.size, bounds[number]
        sides = np.maximum(boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1])
        room = left - boxes[:, 2]
        fits = (sides >= SIDES[0] * size) & (sides <= SIDES[1] * size)
        fits &= (room >= ROOM[0] * size) & (room <= ROOM[1] * size)
        fits &= np.abs(middles - (top + MIDDLE * (bottom - top))) <= LEVEL * size
        if fits.sum() != 1:
            continue
        mark = marks[int(np.flatnonzero(fits)[0])]
        if not _is_alone(mark.box, boxes, bounds, size, left):
            continue
        # As high as its line, so that rows and their distances stay those of the text.
        word = Word(mark.sign, 1.0, box_polygon((mark.box[0], float(top), mark.box[2], float(bottom))))
        outer = box_polygon(bounding_box([line_box(word), line_box(line)]))
        words = line.words or (Word(line.text, line.score, line.polygon),)
        lines[number] = replace(line, text=f"{mark.sign} {line.text}", words=(word, *words), polygon=outer)
    return lines


def _is_alone(box: Box, marks: np.ndarray, lines: np.ndarray, size: float, until: float) -> bool:
    """Whether no other mark and no text stands right before a mark, or between it and its line."""
    middle = (box[1] + box[3]) / 2
    from_left = box[0] - LEADER * size
    others = np.concatenate([marks, lines])
    level = (others[:, 1] < middle) & (others[:, 3] > middle)
    near = (others[:, 2] > from_left) & (others[:, 0] < until - 0.01 * size)
    return int((level & near).sum()) == 1  # itself


def _marks(page: PageContent, least: float, most: float) -> Iterator[Mark]:
    """The small shapes of a page that one sees, as wide as high."""
    for path in page.paths:
        sign = _sign(path)
        if not sign:
            continue
        shapes = path.outlines if len(path.outlines) else path.rectangles
        for shape in shapes if len(shapes) > 1 else np.array([path.bbox]):
            left, top, right, bottom = map(float, shape)
            shorter, longer = sorted((right - left, bottom - top))
            if least <= longer <= most and longer <= ROUND * shorter:
                yield Mark((left, top, right, bottom), sign)


def _sign(path: PagePath) -> str:
    """The bullet that a path looks like, or "" of what is not seen."""
    filled = path.fill is not None and path.fill[3] > 0 and min(path.fill[:3]) < WHITE
    stroked = path.stroke is not None and path.stroke[3] > 0 and min(path.stroke[:3]) < WHITE
    if not filled and not stroked:
        return ""
    if path.curved:
        return "•" if filled else "◦"
    return "▪" if filled and len(path.rectangles) else ""
