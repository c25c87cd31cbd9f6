"""Parts of a page's image: whole pixels, within the page, and none beside it."""

from __future__ import annotations

import numpy as np
import pytest

from ocr.results.crops import cut_box

IMAGE = np.arange(20 * 30 * 3).reshape(20, 30, 3).astype(np.uint8)


@pytest.mark.parametrize(
    ("box", "least", "place"),
    [
        ((2.7, 3.2, 10.4, 8.6), 1, (2, 3, 10, 9)),
        ((-5, -5, 99, 99), 1, (0, 0, 30, 20)),
        ((4.1, 5.1, 4.2, 5.2), 1, (4, 5, 5, 6)),
        ((4.1, 5.1, 4.2, 5.2), 0, (4, 5, 4, 5)),
    ],
)
def test_pixels_of_a_box(
    box: tuple[float, float, float, float], least: int, place: tuple[int, int, int, int]
) -> None:
    crop, found = cut_box(IMAGE, box, least=least)
    left, top, right, bottom = place
    assert found == place and np.array_equal(crop, IMAGE[top:bottom, left:right])
    assert crop.flags.c_contiguous


def test_a_box_beside_the_image_has_no_pixels() -> None:
    assert not cut_box(IMAGE, (40, 5, 50, 9))[0].size and not cut_box(IMAGE, (3, 25, 9, 29))[0].size
