"""Doubled letters of condensed text that PDFium takes for one letter drawn twice.

PDFium leaves out a character that stands within 0.07 of the type's size from the same one before it, as of letters that
are drawn twice to look bold. Where letters are set so close that "ll" stands closer than that, it leaves out real ones.
Such a letter has left its space: what follows it stands one step further away than the letters of its text object do,
and behind the last letter the object reaches as far. A letter drawn twice takes no space.

Of text objects that say the same PDFium leaves out the second one where they overlap by half, as of letters that are
drawn one by one and closer than they are wide. No character has such an object, though it shows something.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, cast

import numpy as np

from framework.workflow.files.pdf_handles import Handle

# Multiples of the size of the type.
CLOSEST, CLOSE = (
    0.012,
    0.08,
)  # the step from a letter to the same one: told from kerning; what PDFium leaves out
CONDENSED = 0.1  # by which letters are closer than their widths, at least: no letter is narrower than 0.18
EVEN, EVEN_SHARE = (
    0.01,
    0.5,
)  # differences of letters' distances; the share of an object's letters that are even
STEP_SHARE = 0.2  # of a step, by which what follows may stand elsewhere
LONGER = 0.003  # of the height, by which an object is longer, at least
ALIKE = 0.01  # sides of such objects' boxes, by which they differ, at most, in sizes
MOST = 6  # letters left out in one place: PDFium compares seven


class Doubles(NamedTuple):
    """Letters that were left out: `after` [D] are the numbers of the letters that they repeat, `shift` [D, 2] how far
    from these they stand, in points of the page. `doubtful` letters stand where nothing tells whether they are doubled:
    on the place of the next one.
    """

    after: np.ndarray
    shift: np.ndarray
    doubtful: int = 0


def find_doubles(
    objects: np.ndarray,
    sizes: np.ndarray,
    cells: np.ndarray,
    ink: np.ndarray,
    origins: np.ndarray,
    generated: np.ndarray,
    blank: np.ndarray,
    bounds: Callable[[int], tuple[float, float, float, float] | None],
) -> Doubles:
    """The letters that PDFium left out of upright lines and lines that are turned by right angles.

    Args:
        objects: Of each of N characters in the content's order, the number of its text object, -1 where unknown.
        sizes: [N] of the type, in points.
        cells: [N, 4] left, top, right, bottom, as wide as the characters' advance.
        ink: [N, 4] left, bottom, right, top.
        origins: [N, 2].
        generated: [N] whether PDFium has put it in itself.
        blank: [N] whether it is a space.
        bounds: The box (left, bottom, right, top) of all letters of a text object, by its number.
    """
    nothing = Doubles(np.zeros(0, int), np.zeros((0, 2)))
    if len(objects) < 2:
        return nothing
    step = np.diff(origins, axis=0)
    same = (objects[1:] == objects[:-1]) & (objects[1:] >= 0) & ~generated[1:] & ~generated[:-1]
    # Letters of a ligature have one glyph, and stand at its place.
    same &= (origins[1:] != origins[:-1]).any(1) | (cells[1:] != cells[:-1]).any(1)
    axis = (np.abs(step[:, 1]) > np.abs(step[:, 0])).astype(int)
    rows = np.arange(len(step))
    width = np.abs(cells[:, 2:] - cells[:, :2])
    size = sizes[:-1]
    usable = same & (np.abs(step[rows, 1 - axis]) < EVEN * size) & (width[rows, axis] > 0)
    condensed = usable & (width[rows, axis] - np.abs(step[rows, axis]) > CONDENSED * size)
    if not condensed.any():
        return nothing
    starts = np.flatnonzero(np.concatenate([[True], objects[1:] != objects[:-1]]))
    many, every = (
        np.add.reduceat(np.append(those, False), starts, dtype=int) for those in (condensed, usable)
    )
    likely = np.flatnonzero((many > 0) & (many >= EVEN_SHARE * every))
    if not len(likely):
        return nothing
    ends = np.append(starts[1:], len(objects))
    doubtful = 0
    after: list[int] = []
    shifts: list[tuple[float, float]] = []
    for start, end in zip(starts[likely].tolist(), ends[likely].tolist(), strict=True):
        pairs = start + np.flatnonzero(usable[start : end - 1])
        em, line = float(size[start]), int(np.median(axis[pairs]))
        sign = float(np.sign(np.median(step[pairs, line]))) or 1.0
        onward = sign * step[pairs, line]
        closer = width[pairs, line] - onward
        by = float(np.quantile(closer, 0.5, method="higher"))  # a letter that is left out widens a distance
        even = np.abs(closer - by) < EVEN * em
        if by < CONDENSED * em or even.sum() < EVEN_SHARE * len(pairs):
            continue
        for at, distance in zip(pairs[~even].tolist(), onward[~even].tolist(), strict=True):
            pitch = float(width[at, line]) - by
            _add(after, shifts, at, _left_out(distance - pitch, pitch, em), sign * pitch, line)
        last = end - 1
        steps = (width[start:end, line] - by)[~blank[start:end]] / em
        doubtful += int((np.abs(steps) <= CLOSEST).sum())
        pitch = float(width[last, line]) - by
        if not generated[last] and CLOSEST * em < pitch < CLOSE * em:
            box = bounds(int(objects[last]))
            over = 0.0 if box is None else _reach(box, ink[start:end], line, sign)
            _add(after, shifts, last, _left_out(over, pitch, em), sign * pitch, line)
        elif not blank[last] and -CLOSE * em < pitch < -CLOSEST * em:
            doubtful += 1
    if not after:
        return nothing._replace(doubtful=doubtful)
    order = np.argsort(after, kind="stable")
    return Doubles(np.array(after)[order], np.array(shifts)[order], doubtful)


def add_repeated(
    doubles: Doubles,
    texts: Iterable[int | None],
    letter_of: Mapping[int | None, int],
    sizes: np.ndarray,
    ink: np.ndarray,
    bounds: Callable[[int], tuple[float, float, float, float] | None],
) -> Doubles:
    """The letters that were left out, with those that are text objects of their own.

    Args:
        texts: Addresses of all text objects in the order in which they are drawn.
        letter_of: The number of the letter of each object that has one alone, -1 of those that have more.
        sizes: [N] of the letters' type, in points.
        ink: [N, 4] left, bottom, right, top.
        bounds: The box of a text object by its address; within a form its points are not the page's.
    """
    after, shifts = doubles.after.tolist(), doubles.shift.tolist()
    letter, before = -1, 0  # the last letter that has characters, and its address
    first = last = None  # its box, and that of what was drawn last
    for address in texts:
        if address is None:
            continue
        if address in letter_of:
            letter, first, last, before = letter_of[address], None, None, address
            continue
        if letter < 0 or (box := bounds(address)) is None or box[0] >= box[2]:
            continue
        if first is None:
            first = last = bounds(before)
        if first is None or last is None or first[0] >= first[2]:
            continue
        scale = float(ink[letter, 2] - ink[letter, 0]) / (first[2] - first[0])
        if not scale > 0 or not _is_next(last, box, float(sizes[letter]) / scale):
            continue
        last = box
        after.append(letter)
        shifts.append((scale * (box[0] - first[0]), scale * (box[1] - first[1])))
    if len(after) == len(doubles.after):
        return doubles
    order = np.argsort(after, kind="stable")
    return Doubles(np.array(after)[order], np.array(shifts)[order], doubles.doubtful)


def _is_next(
    before: tuple[float, float, float, float], box: tuple[float, float, float, float], size: float
) -> bool:
    """Whether a text object stands beside one of its shape, neither at its place nor away from it."""
    moved = [b - a for a, b in zip(before, box, strict=True)]
    same = abs(moved[0] - moved[2]) < ALIKE * size and abs(moved[1] - moved[3]) < ALIKE * size
    level, on = sorted((abs(moved[0]), abs(moved[1])))
    return same and level < ALIKE * size and CLOSE * size < on < size


def insert_doubles(doubles: Doubles, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The characters [M] of `count` with those that were left out behind the ones that they repeat, and how far each is
    moved [M, 2].
    """
    every = np.sort(np.concatenate([np.arange(count), doubles.after]))
    shift = np.zeros((len(every), 2))
    shift[np.concatenate([[False], every[1:] == every[:-1]])] = doubles.shift
    return every, shift


def _left_out(space: float, pitch: float, em: float) -> int:
    """How many letters, each `pitch` from the next, have left a space."""
    if not CLOSEST * em < abs(pitch) < CLOSE * em:
        return 0
    count = round(space / pitch)
    return count if 0 < count <= MOST and abs(space - count * pitch) < STEP_SHARE * abs(pitch) else 0


def _add(
    after: list[int], shifts: list[tuple[float, float]], at: int, count: int, step: float, axis: int
) -> None:
    for number in range(1, count + 1):
        after.append(at)
        shifts.append((0.0, step * number) if axis else (step * number, 0.0))


def _reach(box: tuple[float, float, float, float], ink: np.ndarray, axis: int, sign: float) -> float:
    """By how much a text object is longer than to the end of its last letter that is known, 0 where other letters end
    it. Its box may be that of a form, whose points are not the page's: it is as high as its letters are.
    """
    low, high = ink[:, :2].min(0), ink[:, 2:].max(0)
    length, height = (float(v) for v in (high - low)[[axis, 1 - axis]])
    box_length, box_height = (box[2 + n] - box[n] for n in (axis, 1 - axis))
    over = box_length * height / box_height - length if box_height > 0 else 0.0
    last = high[axis] - ink[-1, 2 + axis] if sign > 0 else ink[-1, axis] - low[axis]
    return over + float(last) if over > LONGER * height else 0.0


def object_bounds(pointer: Handle) -> tuple[float, float, float, float] | None:
    """The box of a page's object in points, left, bottom, right, top."""
    import pypdfium2.raw as raw

    sides = [ctypes.c_float() for _ in range(4)]
    if not raw.FPDFPageObj_GetBounds(pointer, *map(ctypes.byref, sides)):
        return None
    left, bottom, right, top = (side.value for side in sides)
    return left, bottom, right, top


def bounds_at(address: int) -> tuple[float, float, float, float] | None:
    """`object_bounds` by the object's address."""
    import pypdfium2.raw as raw

    return object_bounds(cast(Handle, ctypes.cast(address, raw.FPDF_PAGEOBJECT)))
