"""Letters of a text layer that follow a curve, as around a logo, a stamp or a bend of a map: each is turned a little
farther than the one before it, so that no two of them stand on one baseline. They are one line, in the content's order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from framework.workflow.files.pdf_content import PageText
from ocr.results.geometry import bounding_box, box_polygon
from ocr.results.lines import Char, Line, Word

LEAST = 4  # letters of a curve
TURN_RANGE = (0.5, 35.0)  # degrees from one letter to the next: less is straight, more a corner
TURNING = 0.75  # of a curve's steps turn, at least: all but those of a straight end
STEP = (
    1.6  # multiples of the type's size from one letter to the next, at most; a space more where there is one
)
ASIDE = 40.0  # degrees by which the way to the next letter differs from the letters' own, at most
SPACE = 0.17  # of the type's size, beyond a curve's usual gap: between words
PITCH = 1.5  # the same of letters whose middles stand equally far apart, as a multiple of their distance
HIGH = 1.2  # a font's ascent and descent in sizes, where its letters do not tell


def find_curves(
    text: PageText, codes: Sequence[str], angles: np.ndarray, sizes: np.ndarray, members: np.ndarray
) -> list[list[int]]:
    """The characters of each curved line, in the content's order.

    Args:
        codes: What the characters [N] of the page say.
        angles: [N] degrees clockwise.
        sizes: [N] of the type.
        members: [N] which characters are looked at.
    """
    at = np.flatnonzero(members)
    if len(at) < LEAST:
        return []
    turn = (angles[at[1:]] - angles[at[:-1]] + 180) % 360 - 180
    turning = (np.abs(turn) > TURN_RANGE[0]) & (np.abs(turn) < TURN_RANGE[1])
    if not turning.any():
        return []
    step = text.origins[at[1:]] - text.origins[at[:-1]]
    size = np.maximum(sizes[at[1:]], sizes[at[:-1]])
    length = np.hypot(*step.T)
    spaced = np.diff(at) > 1
    aside = np.degrees(np.arctan2(step[:, 1], step[:, 0])) - (angles[at[:-1]] + turn / 2)
    follows = np.abs((aside + 180) % 360 - 180) < ASIDE
    follows &= (length > 0) & (length < (STEP + spaced) * size) & (np.abs(turn) < TURN_RANGE[1])
    follows &= np.minimum(sizes[at[1:]], sizes[at[:-1]]) > 0.8 * size
    curves: list[list[int]] = []
    breaks = np.flatnonzero(np.concatenate([[True], ~follows, [True]])).tolist()
    for start, end in pairwise(breaks):
        steps = turning[start : end - 1]
        if end - start >= LEAST and steps.sum() >= max(TURNING * len(steps), LEAST - 1):
            curves.append(at[start:end].tolist())
    return curves


def curved_line(text: PageText, codes: Sequence[str], sizes: np.ndarray, curve: Sequence[int]) -> Line:
    """The line of a curve's characters, in the upright box that holds all of them."""
    words: list[list[int]] = [[curve[0]]]
    for after, is_end in zip(curve[1:], _word_ends(text, sizes, curve).tolist(), strict=True):
        if is_end:
            words.append([])
        words[-1].append(after)
    boxes = {i: _char_box(text, sizes, i) for i in curve}
    polygons = {i: box_polygon(box) for i, box in boxes.items()}
    tokens = []
    for members in words:
        word_text = "".join(codes[i] for i in members)
        outer = box_polygon(bounding_box([boxes[i] for i in members]))
        tokens.append(Word(word_text, 1.0, outer, tuple(Char(codes[i], 1.0, polygons[i]) for i in members)))
    outer = box_polygon(bounding_box(list(boxes.values())))
    return Line(" ".join(word.text for word in tokens), 1.0, outer, tuple(tokens))


def _word_ends(text: PageText, sizes: np.ndarray, curve: Sequence[int]) -> np.ndarray:
    """After which letters of a curve [C - 1] a word ends: PDFium sees gaps of straight text alone."""
    at = np.array(curve)
    drawn = np.cumsum([value == " " for value in text.text] & ~text.generated)
    origins = text.origins[at]
    advance = turned_advances(text, sizes[at], at)
    turn = np.radians([text.styles[n].angle for n in text.style[at]])
    middles = origins + advance[:, None] / 2 * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    pitch = np.hypot(*np.diff(middles, axis=0).T)
    gap = np.hypot(*np.diff(origins, axis=0).T) - advance[:-1]
    usual = float(np.median(pitch))
    if _spread(pitch) < _spread(gap):
        wide = pitch > PITCH * usual
    else:
        wide = gap > np.median(gap) + SPACE * sizes[at[1:]]
    return wide | (np.diff(drawn[at]) > 0)


def _spread(values: np.ndarray) -> float:
    return float(np.median(np.abs(values - np.median(values))))


def turned_advances(text: PageText, size: np.ndarray, at: np.ndarray) -> np.ndarray:
    """How wide the characters `at` are along their baselines, of type of a `size` each: their cells are the upright
    boxes of turned ones, all equally high.
    """
    turn = np.radians([text.styles[n].angle for n in text.style[at]])
    cos, sin = np.abs(np.cos(turn)), np.abs(np.sin(turn))
    width, height = (text.cells[at, 2:] - text.cells[at, :2]).T
    level = cos >= sin
    # The longer side tells the width of a letter best, and the shorter one then its height.
    side, along, across = np.where(level, width, height), np.maximum(cos, sin), np.minimum(cos, sin)
    clear = along**2 - across**2 > 0.3
    if clear.any():
        other = np.where(level, height, width)
        highs = ((other * along - side * across) / (along**2 - across**2))[clear] / size[clear]
    else:  # at half a right angle both sides are alike: letters are as wide as the next one is away
        step = np.hypot(*np.diff(text.origins[at], axis=0).T)
        near = (np.diff(at) == 1) & (step < size[:-1])
        highs = ((side[:-1] - step * along[:-1]) / across[:-1])[near] / size[:-1][near]
    tall = (float(np.median(highs)) if len(highs) else HIGH) * size
    return np.clip((side - tall * across) / along, 0.0, 1.5 * size)


def _char_box(text: PageText, sizes: np.ndarray, i: int) -> tuple[float, float, float, float]:
    """The ink of a character; where that is not known, a square on its baseline."""
    left, top, right, bottom = text.boxes[i].tolist()
    if right > left and bottom > top and math.isfinite(left + top + right + bottom):
        return left, top, right, bottom
    x, y = text.origins[i].tolist()
    return x, y - float(sizes[i]), x + float(sizes[i]), y
