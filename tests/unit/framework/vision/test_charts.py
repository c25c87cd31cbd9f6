"""Curves stand where their numbers say, and a matrix has the shade of each share."""

from __future__ import annotations

import numpy as np
import pytest

from framework.core.errors import ShapeError
from framework.vision.charts import Panel, draw_matrix, draw_panels

BLUE = np.array([0, 114, 178])


def places(image: np.ndarray, color: np.ndarray = BLUE) -> np.ndarray:
    """[N, 2] xy of the pixels of a colour."""
    return np.argwhere((image == color).all(-1))[:, ::-1]


def test_a_curve_goes_from_corner_to_corner() -> None:
    drawn = draw_panels([Panel("rising", {"y": ([0, 1], [0.0, 2.0])})])
    assert drawn.shape == (380, 640, 3) and drawn.dtype == np.uint8
    xy = places(drawn)
    left, right = xy[xy[:, 0].argmin()], xy[xy[:, 0].argmax()]
    assert left[0] <= 80 and right[0] >= 615 and left[1] > 320 and right[1] < 60


def test_a_log_axis_and_a_mark() -> None:
    """On a log axis from 1 to 100 the value 10 stands in the middle; 0 has no place there."""
    drawn = draw_panels([Panel("", {"y": ([0, 1, 10, 100], [9.0, 0.0, 1.0, 0.0])}, log_x=True, mark=10)])
    xy = places(drawn)
    assert xy[xy[:, 1].argmin(), 0] == pytest.approx((76 + 620) / 2, abs=4)
    assert places(drawn, np.array([213, 94, 0]))[:, 0].mean() == pytest.approx(348, abs=2)


@pytest.mark.parametrize(
    "curves",
    [
        {},
        {"y": ([], [])},
        {"y": ([1], [1])},
        {"y": ([1, 2], [3, 3])},
        {"y": ([0, 1], [np.nan, np.inf])},
        {"y": ([1, 2], [1e-30, 1e30])},
        {f"name {n}": ([1, 2], [0, n]) for n in range(12)},
        {"y": (np.arange(10_000), np.arange(10_000) == 5000)},
    ],
)
def test_whatever_the_numbers_are(curves) -> None:
    drawn = draw_panels([Panel("title", curves)] * 3)
    assert drawn.shape == (760, 1280, 3) and drawn.min() < 100


def test_no_peak_is_lost() -> None:
    drawn = draw_panels([Panel("", {"y": (np.arange(10_000), np.arange(10_000) == 5000)})])
    assert places(drawn)[:, 1].min() < 60


def test_a_matrix_has_the_share_of_each_row() -> None:
    counts = np.array([[3, 1], [0, 0]])
    drawn = draw_matrix(counts, ["a", "猫"], "title", ("label", "prediction"))
    for share in (0.75, 0.25):
        assert len(places(drawn, np.rint(255 - share * (255 - BLUE)))) > 2000  # of a field of 56 x 56
    for size in (1, 31, 300):
        assert draw_matrix(np.eye(size, dtype=int) * 1_234_567, [str(n) for n in range(size)]).min() < 120


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: draw_panels([]), "there is no panel"),
        (lambda: draw_panels([Panel("", {"y": ([1], [1, 2])})]), "x and y are not as many"),
        (lambda: draw_matrix(np.zeros((2, 3), int), ["a", "b"]), "counts of classes have"),
        (lambda: draw_matrix(np.zeros((2, 2), int), ["a"]), r"counts \[2, 2\], 1 names"),
    ],
)
def test_errors(draw, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        draw()
