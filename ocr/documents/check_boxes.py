"""Check boxes that are drawn on a PDF page: small squares that stand alone, with or without something in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from framework.workflow.files.pdf_content import PageContent
from ocr.results.blocks import Box
from ocr.results.geometry import centre
from ocr.tables.ruling_lines import RulingLines

SIDES = (5.0, 22.0)  # points
NEAR = 1.2  # points: by which sides miss their corners
SQUARE = 1.25  # of the longer to the shorter side
MARK_SIZE = 0.25  # of a box's side, which what is drawn in it must reach
MARKS = set("xX×✓✔✗✘✕✖☓☑☒●•■▪◼+*√\uf0fc\uf0fb\uf0fd\uf0fe")  # what people tick with; those of Wingdings last
LABEL = (2.5, 1.5)  # of the side, to the label at the right, at the left
LEVEL = 0.6  # of the side, by which the middles of box and label differ at most
APART = 0.35  # of the side, to the next square: nearer ones are the cells of a grid


def find_check_boxes(page: PageContent, ruling: RulingLines) -> tuple[list[tuple[Box, bool]], RulingLines]:
    """(the check boxes and whether each holds a mark, the ruling lines without their sides)"""
    level, upright = ruling.horizontal, ruling.vertical
    squares = _squares(level, upright, ruling.unit)
    squares += [box for box in _rounded(page) if not any(_touch(box, other) for other in squares)]
    alone = [
        box
        for number, box in enumerate(squares)
        if not any(_touch(box, other) for n, other in enumerate(squares) if n != number)
        and not _is_crossed(box, level, upright, ruling.unit)
    ]
    alone = _with_labels(page, [box for box in alone if _inside(page, box) <= MARKS])
    if not alone:
        return [], ruling
    outer = np.array(alone)
    near = NEAR * ruling.unit

    def outside(lines: np.ndarray, across: int) -> np.ndarray:
        """The lines [L, 3] that are no part of a box; `across` is the box's coordinate of their height."""
        along = 1 - across
        within = (
            (lines[:, None, 0] > outer[None, :, across] - near)
            & (lines[:, None, 0] < outer[None, :, across + 2] + near)
            & (lines[:, None, 1] > outer[None, :, along] - near)
            & (lines[:, None, 2] < outer[None, :, along + 2] + near)
        )
        return lines[~within.any(1)]

    # What is filled in a box is no ground of a table.
    fills = tuple(fill for fill in ruling.fills if not any(_is_within(fill[0], box, near) for box in alone))
    rest = replace(ruling, horizontal=outside(level, 1), vertical=outside(upright, 0), fills=fills)
    return [(box, _is_marked(page, box)) for box in alone], rest


def _squares(level: np.ndarray, upright: np.ndarray, unit: float) -> list[Box]:
    """Boxes of four lines, as long as sides of check boxes."""
    shortest, longest, near = SIDES[0] * unit, SIDES[1] * unit, NEAR * unit

    def short(lines: np.ndarray) -> np.ndarray:
        length = lines[:, 2] - lines[:, 1]
        return lines[(length >= shortest) & (length <= longest)]

    level, upright = short(level), short(upright)
    found: list[Box] = []
    for y, x0, x1 in level.tolist():
        below = level[(level[:, 0] - y >= shortest) & (level[:, 0] - y <= longest)]
        below = below[(np.abs(below[:, 1] - x0) < near) & (np.abs(below[:, 2] - x1) < near)]
        for bottom in sorted(set(below[:, 0].tolist()))[:1]:
            width, height = x1 - x0, bottom - y
            if max(width, height) > SQUARE * min(width, height):
                continue
            sides = upright[(np.abs(upright[:, 1] - y) < near) & (np.abs(upright[:, 2] - bottom) < near)]
            both = all(bool((np.abs(sides[:, 0] - x) < near).any()) for x in (x0, x1))
            box = (x0, y, x1, bottom)
            if both and not any(_is_within(box, other, near) for other in found):
                found.append(box)
    return found


def _rounded(page: PageContent) -> list[Box]:
    """Squares with rounded corners, and circles that are drawn round and have a text at their right: radio buttons."""
    found: list[Box] = []
    for path in page.paths:
        if not path.curved or len(path.segments) not in (0, 4) or len(path.outlines) > 2:
            continue
        left, top, right, bottom = path.bbox
        width, height = right - left, bottom - top
        if not (
            SIDES[0] * page.scale <= min(width, height)
            and max(width, height) <= min(SIDES[1] * page.scale, SQUARE * min(width, height))
        ):
            continue
        if len(path.segments):
            straight = np.abs(path.segments[:, :2] - path.segments[:, 2:]).max(1)
            is_box = straight.min() > 0.4 * min(width, height)
        else:
            white = path.fill is not None and min(path.fill[:3]) > 240
            is_box = (path.stroke is not None or white) and _label_side(page, path.bbox) == "right"
        if is_box:
            # A box is often filled and drawn round: two paths.
            found = [box for box in found if not _touch(box, path.bbox)]
            found.append(path.bbox)
    return found


def _with_labels(page: PageContent, boxes: list[Box]) -> list[Box]:
    """The boxes that a text stands beside: right of each, or left of several. The sign at a proof's end is another."""
    sides = [_label_side(page, box) for box in boxes]
    least = 1 if "right" in sides else 2
    enough = sum(side != "" for side in sides) >= least
    return [box for box, side in zip(boxes, sides, strict=True) if side == "right" or (side and enough)]


def _label_side(page: PageContent, box: Box) -> str:
    """Where a letter stands beside a box, level with it: "right", "left", or "" where there is none."""
    text, side = page.text, box[2] - box[0]
    middle = (text.cells[:, 1] + text.cells[:, 3]) / 2
    level = (np.abs(middle - (box[1] + box[3]) / 2) < LEVEL * side) & ~text.unseen
    letters = np.array([char.isalnum() for char in text.text], bool)
    right = text.cells[:, 0] - box[2]
    left = box[0] - text.cells[:, 2]
    if (level & letters & (right > -0.1 * side) & (right < LABEL[0] * side)).any():
        return "right"
    return "left" if (level & letters & (left > -0.1 * side) & (left < LABEL[1] * side)).any() else ""


def _touch(first: Box, second: Box) -> bool:
    """Whether two boxes share a side or nearly do, or overlap."""
    gap = APART * min(first[2] - first[0], second[2] - second[0])
    return (
        first[0] < second[2] + gap
        and second[0] < first[2] + gap
        and first[1] < second[3] + gap
        and second[1] < first[3] + gap
    )


def _is_crossed(box: Box, level: np.ndarray, upright: np.ndarray, unit: float) -> bool:
    """Whether a longer line runs along a side of a box or through it: it is a cell."""
    near, side = NEAR * unit, box[2] - box[0]
    for lines, across in ((level, 1), (upright, 0)):
        along = 1 - across
        meets = (lines[:, 0] > box[across] - near) & (lines[:, 0] < box[across + 2] + near)
        meets &= (lines[:, 1] < box[along + 2]) & (lines[:, 2] > box[along])
        if (meets & (lines[:, 2] - lines[:, 1] > 1.6 * side)).any():
            return True
    return False


def _is_within(inner: Box, outer: Box, near: float) -> bool:
    return (
        inner[0] > outer[0] - near
        and inner[1] > outer[1] - near
        and inner[2] < outer[2] + near
        and inner[3] < outer[3] + near
    )


def _is_marked(page: PageContent, box: Box) -> bool:
    """Whether something is drawn or written in a box."""
    side = box[2] - box[0]
    for path in page.paths:
        left, top, right, bottom = path.bbox
        x, y = centre(path.bbox)
        inside = (
            box[0] + 0.15 * side < x < box[2] - 0.15 * side
            and box[1] + 0.15 * side < y < box[3] - 0.15 * side
        )
        size = max(right - left, bottom - top)
        if not inside or not MARK_SIZE * side < size < 1.8 * side:
            continue
        frame = (
            abs(left - box[0]) + abs(right - box[2]) + abs(top - box[1]) + abs(bottom - box[3]) < 0.5 * side
        )
        upright = bool(len(path.rectangles)) or not len(path.segments)
        diagonal = len(path.segments) and bool(
            (
                np.minimum(
                    np.abs(path.segments[:, 0] - path.segments[:, 2]),
                    np.abs(path.segments[:, 1] - path.segments[:, 3]),
                )
                > 0.15 * side
            ).any()
        )
        solid = path.fill is not None and path.fill[3] > 0 and min(path.fill[:3]) < 200
        if diagonal or (solid and not frame) or (not frame and not upright and path.stroke is not None):
            return True
        if path.curved and not frame and (solid or path.stroke is not None):
            return True
    return bool(_inside(page, box))


def _inside(page: PageContent, box: Box) -> set[str]:
    """The characters in a box."""
    text = page.text
    x, y = (text.boxes[:, 0] + text.boxes[:, 2]) / 2, (text.boxes[:, 1] + text.boxes[:, 3]) / 2
    inside = (x > box[0]) & (x < box[2]) & (y > box[1]) & (y < box[3])
    said = (text.text[at].strip() for at in np.flatnonzero(inside & ~text.unseen).tolist())
    return {char for char in said if char}
