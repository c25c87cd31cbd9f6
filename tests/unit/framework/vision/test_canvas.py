"""Shapes and text on a canvas: where their pixels are."""

from __future__ import annotations

import numpy as np

from framework.vision.canvas import Canvas, measure_text


def ink(canvas: Canvas) -> np.ndarray:
    """Where something is drawn, [H, W] bool."""
    return (canvas.pixels() != 255).any(axis=2)


def test_boxes_end_before_their_right_and_bottom() -> None:
    canvas = Canvas((6, 8))
    canvas.box((2, 1, 5, 3), (0, 0, 0))
    wanted = np.zeros((6, 8), bool)
    wanted[1:3, 2:5] = True
    np.testing.assert_array_equal(ink(canvas), wanted)
    canvas.box((3, 3, 3, 5), (0, 0, 0))  # without an area
    np.testing.assert_array_equal(ink(canvas), wanted)


def test_text_stands_on_its_baseline() -> None:
    canvas = Canvas((40, 100), (255, 255, 255))
    canvas.text((10, 30), "HE", "", 20, (200, 0, 0))
    rows, columns = np.nonzero(ink(canvas))
    assert 28 <= rows.max() <= 30 and 12 <= rows.min() <= 18 and columns.min() >= 10
    assert columns.max() <= 10 + measure_text("HE", "", 20)
    assert measure_text("HEHE", "", 20) > 1.8 * measure_text("HE", "", 20) and measure_text("", "", 20) == 0


def test_lines_shapes_and_images() -> None:
    canvas = Canvas((20, 20), (10, 20, 30))
    assert canvas.pixels().dtype == np.uint8 and (canvas.pixels() == (10, 20, 30)).all()
    canvas.paste(np.full((20, 20, 3), 255, np.uint8), (0, 0))
    assert not ink(canvas).any()
    canvas.line([(2, 5), (12, 5)], width=0.2)
    assert ink(canvas)[5, 2:12].all() and ink(canvas).sum() <= 11
    for draw in (
        lambda c: c.ellipse((4, 4, 14, 14), (0, 0, 0)),
        lambda c: c.slice((4, 4, 14, 14), 0, 360, (0, 0, 0)),
        lambda c: c.polygon([(4, 4), (14, 4), (14, 14), (4, 14)], (0, 0, 0)),
    ):
        canvas = Canvas((20, 20))
        draw(canvas)
        seen = ink(canvas)
        assert seen[9, 9] and not seen[1, 1] and 60 <= seen.sum() <= 121
    canvas = Canvas((20, 20))
    canvas.ellipse((4, 4, 4, 14), (0, 0, 0))
    assert not ink(canvas).any()
