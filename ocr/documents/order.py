"""The reading order of the blocks of a page: a recursive XY-cut that keeps columns whole.

Blocks are cut at white stripes from top to bottom into columns where one goes through all of them. Else they are cut at
white stripes from left to right into bands, and bands that follow one another and share a stripe between columns are
put together again. So a column is read to its end before the next one begins, and only what spans the columns (a title,
a wide figure) ends them. Blocks that no stripe parts are ordered by precedence: above what is below them, and left of
what stands beside them.

Source: Nagy and Seth 1984 (XY-cut); Breuel 2003, "High performance document layout analysis", section 4 (precedence).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocr.results.geometry import mirrored, split_at_stripes

TRIM = 0.05  # of a box's sides: boxes of detectors touch and overlap a little
CENTRED = 0.02  # of the width of columns: how far the middle of a title over them is off theirs
INSIDE = 0.1  # of the width of the white between columns: what begins so far inside stands in none
# What stands below columns: rows of it at most; the white above it, to its height; how far the beginnings and the ends
# of what stands above it are apart, to that white.
FEW_BELOW, GAP_BELOW, LEVEL = 3, 0.5, 0.5
_Boxes = NDArray[np.float64]
_Items = NDArray[np.intp]


def order_boxes(
    boxes: ArrayLike | Sequence[Sequence[float]],
    *,
    right_to_left: bool = False,
    kinds: Sequence[str] = (),
) -> _Items:
    """Indices [N] of boxes [N, 4] (left, top, right, bottom) in the order in which a person reads them.

    Args:
        right_to_left: Columns follow one another from right to left, as in Arabic. Vertical text is level here: see
            `ocr.text.vertical_text`.
        kinds: [N], of what is no prose: what stands below two tables, or two lists, and is none itself follows both.
            "" is prose.
    """
    array = np.array(boxes, np.float64).reshape(-1, 4)
    if right_to_left:
        array = mirrored(array)
    if len(array):
        # The trim is at most a part of the usual block's lower side: a tall box does not lose a line.
        sides = array[:, 2:] - array[:, :2]
        trim = np.minimum(sides * TRIM, TRIM * 2 * np.median(sides.min(axis=1)))
        array = np.concatenate([array[:, :2] + trim, array[:, 2:] - trim], axis=1)
    named = np.array(kinds or [""] * len(array), np.str_)
    return np.array(_order(array, np.arange(len(array)), named), np.intp)


def _order(boxes: _Boxes, items: _Items, kinds: NDArray[np.str_]) -> list[int]:
    if len(items) < 2:
        return items.tolist()
    columns = split_at_stripes(boxes, items, axis=0)
    if len(columns) > 1 and _stand_beside(boxes, columns) and not _have_title(boxes, columns):
        columns, below = _part_below(boxes, columns, kinds)
        groups = [*columns, below] if len(below) else columns
        return [index for group in groups for index in _order(boxes, group, kinds)]
    bands = _join_bands(boxes, split_at_stripes(boxes, items, axis=1))
    if len(bands) > 1:
        return [index for band in bands for index in _order(boxes, band, kinds)]
    return _order_by_precedence(boxes, items)


def _part_below(boxes: _Boxes, columns: list[_Items], kinds: NDArray[np.str_]) -> tuple[list[_Items], _Items]:
    """Columns, and the few items that stand in one of them, below all, and are no part of it: a remark below two tables
    that stand side by side, or what follows a list in two columns.

    The columns end in things of one kind and at one height. Prose in columns ends so by chance.
    """
    bottoms = [boxes[column, 3].max() for column in columns]
    longest = int(np.argmax(bottoms))
    end = max(bottom for number, bottom in enumerate(bottoms) if number != longest)
    column = columns[longest]
    is_below = boxes[column, 1] >= end
    below = column[is_below]
    parted = [column[~is_below] if number == longest else one for number, one in enumerate(columns)]
    unchanged = columns, column[:0]
    if not len(below) or not len(parted[longest]) or len(split_at_stripes(boxes, below, axis=1)) > FEW_BELOW:
        return unchanged
    lasts = [one[np.argmax(boxes[one, 3])] for one in parted]
    highest = below[np.argmin(boxes[below, 1])]
    gap = boxes[highest, 1] - boxes[lasts, 3].max()
    one_kind = bool(kinds[lasts[0]]) and bool((kinds[lasts] == kinds[lasts[0]]).all())
    is_level = np.ptp(boxes[lasts, 1]) <= gap and np.ptp(boxes[lasts, 3]) <= LEVEL * gap
    white = gap >= GAP_BELOW * float((boxes[below, 3] - boxes[below, 1]).min())
    return (
        (parted, below)
        if one_kind and kinds[highest] != kinds[lasts[0]] and is_level and white
        else unchanged
    )


def _join_bands(boxes: _Boxes, bands: list[_Items]) -> list[_Items]:
    """Bands with those after them that have a stripe between columns in common."""
    groups = [[bands[0]]]
    for band in bands[1:]:
        above = np.concatenate(groups[-1])
        columns = split_at_stripes(boxes, np.concatenate([above, band]), axis=0)
        if len(columns) > 1 and _stand_beside(boxes, columns) and _keeps_stripe(boxes, above, band):
            groups[-1].append(band)
        else:
            groups.append([band])
    return [np.concatenate(group) for group in groups]


def _keeps_stripe(boxes: _Boxes, above: _Items, band: _Items) -> bool:
    """Whether what is above columns stands in one of them: a title in the middle stands in none, though it may be as
    narrow as the middle one; of two columns it begins in the white between them, and leaves a little of it free where
    they begin with short lines.
    """
    own = _stripes(boxes, band)
    if not own or _stripes(boxes, above):
        return True
    if _is_centred(boxes, above, band):
        return False
    starts = boxes[above, 0]
    edges = [(left + INSIDE * (right - left), right - INSIDE * (right - left)) for left, right in own]
    return not all(bool(((starts > left) & (starts < right)).any()) for left, right in edges)


def _have_title(boxes: _Boxes, columns: Sequence[_Items]) -> bool:
    """Whether what stands above all of three columns or more is in their middle."""
    if len(columns) < 3:
        return False
    top, *rest = split_at_stripes(boxes, np.concatenate(columns), axis=1)
    return bool(rest) and not _stripes(boxes, top) and _is_centred(boxes, top, np.concatenate(rest))


def _is_centred(boxes: _Boxes, above: _Items, below: _Items) -> bool:
    (left, right), (first, last) = (
        (float(boxes[items, 0].min()), float(boxes[items, 2].max())) for items in (above, below)
    )
    return abs(left + right - first - last) < 2 * CENTRED * (last - first)


def _stripes(boxes: _Boxes, items: _Items) -> list[tuple[float, float]]:
    """The white (left, right) between the columns of the items."""
    columns = split_at_stripes(boxes, items, axis=0)
    return [(float(boxes[a, 2].max()), float(boxes[b, 0].min())) for a, b in pairwise(columns)]


def _stand_beside(boxes: _Boxes, columns: list[_Items]) -> bool:
    """Whether two columns share heights: what stands above one another is read downwards, however far to the side."""
    spans = [(boxes[column, 1].min(), boxes[column, 3].max()) for column in columns]
    return any(min(a[1], b[1]) > max(a[0], b[0]) for a, b in combinations(spans, 2))


def _order_by_precedence(boxes: _Boxes, items: _Items) -> list[int]:
    """A topological order. Of blocks that nothing precedes the highest comes first; circles are cut there, too."""
    box = boxes[items]
    middle = (box[:, 1] + box[:, 3]) / 2
    above = middle[:, None] < middle[None, :]
    share_x = np.minimum(box[:, None, 2], box[None, :, 2]) > np.maximum(box[:, None, 0], box[None, :, 0])
    share_y = np.minimum(box[:, None, 3], box[None, :, 3]) > np.maximum(box[:, None, 1], box[None, :, 1])
    left = box[:, None, 2] <= box[None, :, 0]
    before = (share_x & above) | (~share_x & share_y & left)
    np.fill_diagonal(before, False)
    waiting, order = np.ones(len(items), bool), []
    while waiting.any():
        free = waiting & ~(before & waiting[:, None]).any(axis=0)
        candidates = np.flatnonzero(free if free.any() else waiting)
        chosen = candidates[np.lexsort((box[candidates, 0], middle[candidates]))[0]]
        order.append(int(items[chosen]))
        waiting[chosen] = False
    return order
