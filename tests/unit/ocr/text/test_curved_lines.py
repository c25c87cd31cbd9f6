"""Curved lines: where they begin, which way up they are, and how they are straightened."""

from __future__ import annotations

import numpy as np
import pytest

from ocr.text.curved_lines import Band, find_band

CENTRE = 200.0


def at(angle: float | np.ndarray, radius: float) -> np.ndarray:
    """Points of a circle; 0 is to the right, 90 downwards."""
    turn = np.radians(angle)
    return np.stack([CENTRE + radius * np.cos(turn), CENTRE + radius * np.sin(turn)], axis=-1)


def ring(start: float, stop: float, inner: float = 120, outer: float = 160) -> np.ndarray:
    """The outline of a part of a ring, from an angle clockwise to another."""
    angles = np.linspace(start, stop, 60)
    return np.concatenate([at(angles, outer), at(angles[::-1], inner)]).astype(np.float32)


def radii(points: np.ndarray) -> np.ndarray:
    return np.linalg.norm(points - CENTRE, axis=1)


def found(outline: np.ndarray, shift: int = 0) -> Band:
    band = find_band(np.roll(outline, shift, axis=0))
    assert band is not None
    return band


@pytest.mark.parametrize("shift", [0, 17, 60, 95])
@pytest.mark.parametrize("span", [90, 180, 240, 320])
def test_text_over_a_ring_stands_with_its_head_outside(span: int, shift: int) -> None:
    start, stop = -90 - span / 2, -90 + span / 2
    band = found(ring(start, stop), shift)
    assert np.abs(radii(band.top) - 160).max() < 3 and np.abs(radii(band.bottom) - 120).max() < 3
    for points, radius in ((band.top, 160), (band.bottom, 120)):
        np.testing.assert_allclose(points[[0, -1]], at(np.array([start, stop]), radius), atol=9)
    assert band.outline.shape == (24, 2) and np.array_equal(band.quad[[0, 1]], band.top[[0, -1]].astype("f4"))


def test_text_under_a_ring_stands_with_its_head_inside() -> None:
    band = found(ring(20, 160))
    assert np.abs(radii(band.top) - 120).max() < 3 and np.abs(radii(band.bottom) - 160).max() < 3
    assert band.top[0][0] < band.top[-1][0]


def test_more_than_half_of_a_ring_below_is_read_clockwise() -> None:
    band = found(ring(-30, 210))
    assert np.abs(radii(band.top) - 160).max() < 3
    np.testing.assert_allclose(band.top[0], at(-30.0, 160), atol=9)


def test_text_beside_a_ring_is_read_downwards() -> None:
    for start, stop, head in ((-60, 60, 160), (120, 240, 120)):
        band = found(ring(start, stop))
        assert band.top[0][1] < band.top[-1][1] and np.abs(radii(band.top) - head).max() < 3


def test_a_wave() -> None:
    x = np.linspace(20, 380, 80)
    middle = np.stack([x, 200 + 45 * np.sin(x / 45)], axis=1)
    outline = np.concatenate([middle - (0, 18), middle[::-1] + np.array([0, 18])])
    band = found(outline, 30)
    assert band.top[0][0] < 40 and band.top[-1][0] > 360
    assert (band.bottom[1:-1, 1] > band.top[1:-1, 1] + 10).all()


def test_rectangles_and_blots_are_no_bands() -> None:
    square = np.array([[10, 10], [200, 12], [200, 50], [10, 48]], np.float32)
    assert find_band(square) is None
    angles = np.linspace(0, 360, 40)
    assert find_band(at(angles, 50).astype(np.float32)) is None
    star = np.concatenate([[at(a, 60.0), at(a + 36, 20.0)] for a in range(0, 360, 72)]).astype(np.float32)
    assert find_band(star) is None
    assert find_band(np.zeros((4, 2), np.float32)) is None
    assert find_band(np.array([[5, 5], [90, 5], [5, 5], [90, 5]], np.float32)) is None


def test_the_straight_line_is_as_long_as_the_middle_of_its_band() -> None:
    image = np.zeros((400, 400, 3), np.uint8)
    ys, xs = np.mgrid[:400, :400] + 0.5
    radius, angle = np.hypot(xs - CENTRE, ys - CENTRE), np.degrees(np.arctan2(ys - CENTRE, xs - CENTRE))
    image[..., 0] = np.where((radius > 120) & (radius < 160), 255, 0)
    image[..., 1] = np.clip(angle + 180, 0, 180)  # rises along the upper half
    image[..., 2] = np.clip(radius, 0, 255)
    warp = found(ring(-180, 0)).warp((400, 400))
    strip = warp.image(image)
    assert abs(strip.shape[0] - 40) <= 2 and abs(strip.shape[1] - np.pi * 140) <= 12
    inner = strip[4:-4, 8:-8].astype(int)
    assert (inner[..., 0] > 250).all() and (np.diff(inner[..., 1].mean(axis=0)) > -0.5).all()
    assert (np.diff(inner[..., 2].mean(axis=1)) < 0).all()  # the head is outside
    np.testing.assert_allclose(warp.source_points(np.array([0.0, 0.0])), at(-180.0, 160), atol=9)
