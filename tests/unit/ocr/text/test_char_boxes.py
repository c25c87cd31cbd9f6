from __future__ import annotations

import math

import numpy as np
import pytest
from PIL import ImageFont

from framework.core.errors import ShapeError
from framework.vision.warp import Warp
from ocr.text.char_boxes import char_spans, text_quads, upright_quads
from ocr.text.postprocess import TextChar
from ocr.text.preprocess import crop_lines


def steps(text, starts, length=1):
    return [TextChar(char, 1.0, start, start + length) for char, start in zip(text, starts, strict=True)]


# ----------------------------------------------------------------------------------------------------------- spans


def test_equal_letters_tile_the_line():
    spans = char_spans(steps("nnnn", [1, 4, 7, 10], length=1), 12)
    assert spans.dtype == np.float32
    # Centres 1.5, 4.5, 7.5, 10.5 of 12, each 3 wide.
    np.testing.assert_allclose(spans * 12, [[0, 3], [3, 6], [6, 9], [9, 12]], atol=1e-5)


def test_padding_stretches_the_steps():
    half = char_spans(steps("nn", [1, 4]), 12, valid_ratio=0.5)
    np.testing.assert_allclose(half * 6, [[0, 3], [3, 6]], atol=1e-5)


def test_centres_are_those_of_the_whole_run():
    np.testing.assert_allclose(
        char_spans(steps("nn", [0, 4], length=3), 8) * 8, [[0, 3.5], [3.5, 7.5]], atol=1e-5
    )


def test_widths_of_scripts_and_letters():
    # Centres 2, 5, 7, 8.25 steps for the units 2, 1, 1, 0.5: a unit is 2 steps, and neighbours touch.
    chars = [TextChar("是", 1, 1, 3), TextChar("n", 1, 4, 6), TextChar("o", 1, 6, 8), TextChar("i", 1, 8, 9)]
    spans = char_spans(chars, 12) * 12
    np.testing.assert_allclose(spans[0], [0, 4], atol=1e-5)
    np.testing.assert_allclose(spans[1], [4, 6], atol=1e-5)
    np.testing.assert_allclose(spans[2], [6, 8], atol=1e-5)
    np.testing.assert_allclose(spans[3], [8, 9], atol=1e-5)


def test_a_wide_gap_is_left_free():
    spans = char_spans(steps("nnnoo", [0, 2, 4, 20, 22]), 30) * 30
    np.testing.assert_allclose(spans[2], [3.5, 5.5], atol=1e-5)
    np.testing.assert_allclose(spans[3], [19.5, 21.5], atol=1e-5)


def test_one_character_and_none():
    np.testing.assert_allclose(char_spans(steps("n", [3], length=2), 8), [[0, 1]])
    assert char_spans([], 8).shape == (0, 2)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("Total amount 1,234.56", 0.8),
        ("HELLO WORLD", 0.8),
        ("illimitWMWm iiii", 0.7),  # an i is as wide as a step, so half of it is chance
        ("a", 1.0),
    ],
)
@pytest.mark.parametrize("margin", [3, 12])
def test_spans_cover_the_glyphs_of_a_rendered_line(text, share, margin):
    font = ImageFont.load_default(40)
    assert isinstance(font, ImageFont.FreeTypeFont)
    width, height = math.ceil(font.getlength(text)) + 2 * margin, 50
    # An ideal recogniser sees the line 48 high, padded to 1.25 times its width, in steps of 8 pixels; it is lit at the
    # step in which a glyph's centre is, which leaves the centre open by half a step.
    num_steps, valid_ratio = math.ceil(48 * width / height * 1.25 / 8), 0.8
    step = width / (num_steps * valid_ratio)
    ink, starts = [], []
    for index, char in enumerate(text):
        left, _, right, _ = font.getbbox(char)
        origin = margin + font.getlength(text[:index])
        ink.append((origin + left, origin + right))
        starts.append(max(int((origin + (left + right) / 2) / step), starts[-1] + 1 if starts else 0))
    spans = char_spans(steps(text, starts), num_steps, valid_ratio) * width
    assert (np.diff(spans.reshape(-1)) >= -1e-3).all()  # left to right, no overlap
    covered = []
    for char, (left, right), (start, end) in zip(text, ink, spans.tolist(), strict=True):
        if char != " ":
            assert start <= (left + right) / 2 <= end, char
            covered.append((min(right, end) - max(left, start)) / (right - left))
    assert np.mean(covered) >= share
    assert min(covered) > 0.5


# ----------------------------------------------------------------------------------------------------------- quads

QUAD = np.array([[10, 20], [110, 20], [110, 50], [10, 50]], np.float32)
SPANS = np.array([[0, 0.25], [0.5, 1]], np.float32)


def test_quads_of_an_upright_line():
    found = text_quads(SPANS, QUAD)
    assert found.dtype == np.float32
    assert found.tolist() == [
        [[10, 20], [35, 20], [35, 50], [10, 50]],
        [[60, 20], [110, 20], [110, 50], [60, 50]],
    ]
    assert text_quads(np.zeros((0, 2)), QUAD).shape == (0, 4, 2)


def test_quads_of_a_line_on_its_head_start_at_the_lower_right():
    found = text_quads(SPANS, QUAD, rotated_180=True)
    assert found[0].tolist() == [[110, 50], [85, 50], [85, 20], [110, 20]]


def test_quads_of_a_turned_line_run_down():
    tall = np.array([[10, 20], [40, 20], [40, 120], [10, 120]], np.float32)
    found = text_quads(SPANS, tall, rotated_90=True)
    assert found[0].tolist() == [[40, 20], [40, 45], [10, 45], [10, 20]]
    assert upright_quads(found)[0].tolist() == [[10, 20], [40, 20], [40, 45], [10, 45]]
    on_its_head = text_quads(SPANS, tall, rotated_90=True, rotated_180=True)
    assert on_its_head[0].tolist() == [[10, 120], [10, 95], [40, 95], [40, 120]]


@pytest.mark.parametrize("rotated_180", [False, True])
@pytest.mark.parametrize("rotated_90", [False, True])
def test_quads_hold_what_the_crop_shows(rotated_90, rotated_180):
    """A mark in the crop's second quarter is found back in the source, through the crop's own turns."""
    image = np.zeros((200, 200, 3), np.uint8)
    quad = np.array(
        [[60, 20], [100, 30], [70, 160], [30, 150]]
        if rotated_90
        else [[20, 30], [170, 60], [165, 90], [15, 60]]
    )
    image[..., 1], image[..., 0] = np.mgrid[:200, :200]
    (crop,) = crop_lines(image, quad[None].astype(np.float32), np.array([rotated_90]))
    crop = crop[::-1, ::-1] if rotated_180 else crop
    height, width = crop.shape[:2]
    (found,) = text_quads(np.array([[0.25, 0.5]]), quad, rotated_90=rotated_90, rotated_180=rotated_180)
    row, column = height // 2, int(0.375 * width)
    seen = crop[row, column, :2].astype(float)  # the source pixel that stands there
    np.testing.assert_allclose(found.mean(axis=0), seen, atol=2)
    corner = crop[1, int(0.25 * width), :2].astype(float)
    np.testing.assert_allclose(found[0], corner, atol=3)


def test_quads_follow_the_perspective():
    quad = np.array([[10, 10], [110, 30], [90, 80], [20, 60]])
    warp = Warp.perspective((200, 200), quad, (40, 100)).inverse()
    for start, end in ((0, 0.3), (0.3, 0.8)):
        (found,) = text_quads(np.array([[start, end]]), quad)
        corners = np.array([[start * 100, 0], [end * 100, 0], [end * 100, 40], [start * 100, 40]])
        np.testing.assert_allclose(found, warp.points(corners), atol=1e-3)


def test_quads_of_a_degenerate_line_are_finite():
    line = np.array([[0, 0], [10, 0], [20, 0], [5, 0]])
    assert np.isfinite(text_quads(SPANS, line)).all()


def test_quads_want_four_corners():
    with pytest.raises(ShapeError, match=r"this is no quadrilateral\n  received: \[3, 2\]"):
        text_quads(SPANS, QUAD[:3])
