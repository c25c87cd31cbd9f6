"""Where each recognised character stands: from CTC steps to quads in the source image.

A CTC head says at which step it saw a character, not how wide it is. Steps are `crop width / (num_steps * valid_ratio)`
apart, so centres are known to half a step and widths are estimated: characters that follow one another share the space
between their centres in proportion to their usual widths, and a wider gap is left free.

Source: the idea of equal widths around step centres is PaddleOCR's (tools/infer/utility.py, cal_ocr_word_box).
Differs: there every character of a line has the same width, and spaces have no box.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np

from framework.core.errors import ShapeError
from ocr.text.postprocess import TextChar

_NARROW, _BROAD = frozenset("fijlrtI1.,:;'`!|()[]{}\"- "), frozenset("mwMW@%&—…")
_TOUCHING = 1.5  # beyond this many usual widths between their centres, neighbours share no border


def char_spans(chars: Sequence[TextChar], num_steps: int, valid_ratio: float = 1.0) -> np.ndarray:
    """Intervals [K, 2] float32 of the crop's width, each within 0..1, left to right, without overlap.

    Args:
        chars: As `ctc_decode` gives them, left to right.
        num_steps: Steps of the whole padded input, T of the head's [T, classes].
        valid_ratio: Width of the resized crop over the width of the padded input, in (0, 1].
    """
    if len(chars) < 2:  # a lone character has nobody to share with
        return np.array([[0, 1]] * len(chars), np.float32).reshape(-1, 2)
    valid_steps = num_steps * valid_ratio
    centres = np.array([(char.start_step + char.end_step) / 2 for char in chars]) / valid_steps
    widths = np.array([_usual_width(char.char) for char in chars])
    pairs = (widths[1:] + widths[:-1]) / 2
    gaps = np.diff(centres)
    halves = widths / 2 * np.sort(gaps / pairs)[len(gaps) // 2]  # np.median takes longer than all the rest
    borders = centres[:-1] + gaps * widths[:-1] / (widths[:-1] + widths[1:])
    touching = gaps <= _TOUCHING * (halves[:-1] + halves[1:])
    spans = np.stack([centres - halves, centres + halves], axis=1)
    spans[1:, 0] = np.where(touching, borders, spans[1:, 0])
    spans[:-1, 1] = np.where(touching, borders, spans[:-1, 1])
    return spans.clip(0, 1).astype(np.float32)


def _usual_width(char: str) -> float:
    """In units of an average Latin letter."""
    if unicodedata.east_asian_width(char[:1] or " ") in "WF":
        return 2.0
    return 0.5 if char in _NARROW else 1.5 if char in _BROAD else 1.0


def text_quads(
    spans: np.ndarray, quad: np.ndarray, *, rotated_90: bool = False, rotated_180: bool = False
) -> np.ndarray:
    """Quads [K, 4, 2] float32 in source pixels of intervals `spans` [K, 2] of a crop's width.

    Each runs clockwise from the top-left corner of the text itself: a line on its head starts at the image's lower
    right, and a tall quad whose crop was turned starts at its upper right. `[[0, 1]]` gives the whole line that way.

    Args:
        quad: [4, 2] as the detector gave it to `crop_lines`, clockwise from the image's top-left.
        rotated_90: Whether `crop_lines` turned the crop a quarter counter-clockwise.
        rotated_180: Whether `apply_orientation` then turned it on its head.

    Raises: ShapeError when `quad` is not [4, 2].
    """
    quad = np.asarray(quad, np.float64)
    if quad.shape != (4, 2):
        raise ShapeError(
            "this is no quadrilateral", where="text_quads", received=list(quad.shape), allowed="[4, 2]"
        )
    spans = np.asarray(spans, np.float64).reshape(-1, 2)
    left, right = spans[:, 0], spans[:, 1]
    u = np.stack([left, right, right, left], axis=1)
    v = np.broadcast_to([0.0, 0.0, 1.0, 1.0], u.shape)
    if rotated_180:
        u, v = 1 - u, 1 - v
    if rotated_90:
        u, v = 1 - v, u
    return _from_unit_square(quad, u, v).astype(np.float32)


def upright_quads(quads: np.ndarray) -> np.ndarray:
    """`text_quads` of a column of upright characters, each starting at the top-left corner of its character.

    The crop of such a column shows its characters lying on their left side, so what `text_quads` takes for their top is
    their right.
    """
    return np.roll(quads, 1, axis=-2)


def _from_unit_square(quad: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Points of the perspective image of the unit square that takes its corners to `quad`.

    Source: Heckbert, Fundamentals of Texture Mapping and Image Warping (1989), section 2.2.3.
    """
    p0, p1, p2, p3 = quad
    across, down, skew = p1 - p2, p3 - p2, p0 - p1 + p2 - p3
    area = across[0] * down[1] - across[1] * down[0]
    if area == 0:  # three corners on one line: bilinear is as good as anything
        u, v = u[..., None], v[..., None]
        return (1 - v) * ((1 - u) * p0 + u * p1) + v * ((1 - u) * p3 + u * p2)
    g = (skew[0] * down[1] - skew[1] * down[0]) / area
    h = (across[0] * skew[1] - across[1] * skew[0]) / area
    u, v = u[..., None], v[..., None]
    return (p0 + u * (p1 - p0 + g * p1) + v * (p3 - p0 + h * p3)) / (1 + g * u + h * v)
