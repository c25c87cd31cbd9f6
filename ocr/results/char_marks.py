"""What is laid over the characters of a PDF page: lines that strike them out, and links."""

from __future__ import annotations

import numpy as np

from framework.workflow.files.pdf_content import PageContent

# Multiples of the size of the type.
STRIKE_HEIGHT = (0.1, 0.48)  # of the line over the baseline
STRIKE_WIDTH = 0.16  # of the line, at most
STRIKE_COVER = 0.75  # of the line's length, which letters must take up
SHORTEST_STRIKE = 0.35


def struck_chars(page: PageContent, printed: np.ndarray, sizes: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """Which characters [N] of upright text are struck out: by a line through their middle, or an annotation.

    Args:
        printed: [N], which characters are looked at.
        sizes: [N] of the type, in pixels.
        lines: The page's `level_lines`.
    """
    text = page.text
    struck = np.zeros(len(text.text), bool)
    at = np.flatnonzero(printed)
    if not len(at):
        return struck
    left, right = text.cells[at, 0], text.cells[at, 2]
    middle = (left + right) / 2
    for x0, y0, x1, y1 in page.annotations.strikes:
        height = (text.cells[at, 1] + text.cells[at, 3]) / 2
        struck[at[(middle > x0) & (middle < x1) & (height > y0) & (height < y1)]] = True
    base, size = text.origins[at, 1], sizes[at]
    order = np.argsort(base, kind="stable")
    sorted_base = base[order]
    reach = float(size.max())
    firsts = np.searchsorted(sorted_base, lines[:, 0])
    ends = np.searchsorted(sorted_base, lines[:, 0] + STRIKE_HEIGHT[1] * reach)
    for (y, x0, x1, width), first, end in zip(lines.tolist(), firsts.tolist(), ends.tolist(), strict=True):
        if first == end:
            continue
        near = order[first:end]
        rise = (base[near] - y) / size[near]
        near = near[
            (rise > STRIKE_HEIGHT[0])
            & (rise < STRIKE_HEIGHT[1])
            & (middle[near] > x0)
            & (middle[near] < x1)
            & (size[near] * STRIKE_WIDTH > width)
        ]
        if not len(near) or x1 - x0 < SHORTEST_STRIKE * float(size[near].mean()):
            continue
        covered = float(np.minimum(right[near], x1).max() - np.maximum(left[near], x0).min())
        letters = float((right[near] - left[near]).sum())
        if covered > STRIKE_COVER * (x1 - x0) and letters > 0.5 * (x1 - x0):
            struck[at[near]] = True
    return struck


def level_lines(page: PageContent) -> np.ndarray:
    """Lines [L, 4] that are drawn or filled, (y, x0, x1, thickness)."""
    # Pages of tables have thousands of paths of one line each.
    drawn = [p for p in page.paths if p.stroke is not None and p.stroke[3] > 0 and len(p.segments)]
    filled = [p for p in page.paths if p.fill is not None and p.fill[3] > 0 and len(p.rectangles)]
    found: list[np.ndarray] = []
    if drawn:
        x0, y0, x1, y1 = np.concatenate([path.segments for path in drawn]).T
        thick = np.repeat([path.width for path in drawn], [len(path.segments) for path in drawn])
        level = np.abs(y1 - y0) < 0.05 * np.abs(x1 - x0)
        found.append(np.stack([(y0 + y1) / 2, np.minimum(x0, x1), np.maximum(x0, x1), thick], axis=1)[level])
    if filled:
        left, top, right, bottom = np.concatenate([path.rectangles for path in filled]).T
        flat = bottom - top < 0.25 * (right - left)
        found.append(np.stack([(top + bottom) / 2, left, right, bottom - top], axis=1)[flat])
    return np.concatenate(found) if found else np.zeros((0, 4))


def linked_chars(page: PageContent, printed: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """(for each character [N] the number of the address behind it, -1 for none; the addresses)"""
    text = page.text
    linked = np.full(len(text.text), -1, np.int32)
    addresses: list[str] = []
    x = (text.cells[:, 0] + text.cells[:, 2]) / 2
    y = (text.boxes[:, 1] + text.boxes[:, 3]) / 2
    for link in page.annotations.links:
        if link.address not in addresses:
            addresses.append(link.address)
        for x0, y0, x1, y1 in link.boxes.tolist():
            linked[printed & (x > x0) & (x < x1) & (y > y0) & (y < y1)] = addresses.index(link.address)
    return linked, tuple(addresses)
