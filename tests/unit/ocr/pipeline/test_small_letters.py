from __future__ import annotations

import numpy as np

from framework.vision.contours import find_contours, min_area_rects, order_corners
from ocr.pipeline.small_letters import are_among, are_low, are_narrow, badly_read, closer_scale, merge_looks
from ocr.results.lines import Line
from ocr.text.tiles import detect_in_grid


def quad(left: float, top: float, width: float, height: float) -> np.ndarray:
    right, bottom = left + width, top + height
    return np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float32)


def line(score: float) -> Line:
    return Line("text", score, tuple((float(x), float(y)) for x, y in quad(0, 0, 40, 10)))


def test_bad_lines_count_where_they_are_many():
    assert badly_read([line(0.99)] * 20, 20, 0) == 0
    assert badly_read([line(0.99)] * 18, 20, 0) == 0  # two of twenty: a logo, a barcode
    assert badly_read([line(0.99)] * 10, 12, 4) == 6  # faint regions count as lines that were not read
    assert badly_read([line(0.6)] * 5, 5, 0) == 5
    assert badly_read([], 0, 2) == 0


def test_lines_of_narrow_characters_are_small_however_surely_they_are_read():
    """A screenshot of 3840 x 2160 with letters of 14 pixels, 72 lines of which 45 were right and 64 sure of it."""

    def lines(text: str, width: float, count: int) -> list[Line]:
        corners = tuple((float(x), float(y)) for x, y in quad(0, 0, width, 40))
        return [Line(text, 0.99, corners)] * count

    small, large = lines("Queue 1133", 85, 4), lines("Queue 1133", 170, 16)
    assert are_narrow(small, 0.25) and are_narrow(small + large, 0.25)
    assert not are_narrow(small, 0.5)  # seen at half its size
    assert not are_narrow(small[:2] + large, 0.25)  # two of eighteen
    assert are_narrow(
        lines("\u8ba2\u5355\u53f7", 60, 4), 0.25
    )  # 5 pixels for strokes as many as of two letters
    assert not are_narrow([], 0.25)


def test_how_close_the_second_look_is():
    low, high = np.stack([quad(0, 0, 100, 44)] * 3), np.stack([quad(0, 0, 100, 200)] * 3)
    assert closer_scale(low, 0.9) is None  # seen about as large as it is
    assert abs((closer_scale(low, 0.25) or 0) - 0.25 * 24 / 11) < 1e-6
    assert closer_scale(high, 0.25) == 0.5 and closer_scale(np.zeros((0, 4, 2)), 0.1) == 0.4
    assert (
        are_low(low, 0.25)
        and not are_low(high, 0.25)
        and not are_low(low, 0.5)
        and not are_low(low[:1], 0.25)
    )


def test_lines_of_two_looks():
    title, blurred, alone = quad(0, 0, 900, 300), quad(0, 400, 300, 60), quad(0, 800, 300, 40)
    fine = [quad(5, 415, 90, 20), quad(10, 20, 200, 100)]  # a line in the blur, and a part of the title
    merged = merge_looks(np.stack([title, blurred, alone]), np.stack(fine), 0.25)
    assert merged.tolist() == [title.tolist(), alone.tolist(), fine[0].tolist()]
    assert are_among(np.zeros((0, 4, 2)), np.stack(fine)).tolist() == []


def test_a_grid_finds_each_line_once_and_joins_long_ones():
    image = np.zeros((700, 1000, 3), np.uint8)
    lines = [(30, 40, 60, 12), (380, 330, 60, 12), (100, 336 + 40, 800, 14), (600, 650, 70, 12)]
    for left, top, width, height in lines:
        image[top : top + height, left : left + width] = 255
    seen = []

    def detect(tile: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seen.append(tile.shape[:2])
        quads, _ = min_area_rects(find_contours(tile[..., 0] > 0))
        quads = order_corners(quads)
        return quads.astype(np.float32), np.ones(len(quads), np.float32)

    quads, scores = detect_in_grid(detect, image, 400)
    boxes = sorted(
        (*q.min(axis=0).round().astype(int).tolist(), *np.ptp(q, axis=0).round().astype(int).tolist())
        for q in quads
    )
    assert len(boxes) == len(scores) == len(lines)
    assert all(max(abs(a - b) for a, b in zip(box, want)) <= 2 for box, want in zip(boxes, sorted(lines)))
    assert set(seen) == {(400, 400)}
    seen.clear()
    assert len(detect_in_grid(detect, np.full_like(image, 90), 400)[0]) == 0 and not seen  # of one colour
