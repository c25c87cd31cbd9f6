"""Lines whose readings and probabilities are written down here: what `read_directed` makes of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ocr.text.directions import read_directed
from ocr.text.postprocess import Text

UP, HEAD, UNSURE = (0.99, 0.01), (0.01, 0.99), (0.5, 0.5)


def read(
    *lines: tuple[str, float, str, float, tuple[float, float]], tall: Sequence[int] = ()
) -> tuple[list[str], list[bool], int]:
    """Each line: its text and score as it is, those on its head, and the classifier's probabilities.

    Returns the texts, which stand on their heads, and how many readings that took.
    """
    crops = [np.zeros((2, 4, 3), np.uint8) for _ in lines]
    for number, crop in enumerate(crops):
        crop[0, 0] = number + 1  # on its head this pixel is the last
    count = 0

    def recognize(images: Sequence[np.ndarray]) -> list[tuple[Text, int, float]]:
        nonlocal count
        count += len(images)
        out = []
        for image in images:
            upright = image[0, 0, 0] > 0
            line = lines[int(image[0, 0, 0] if upright else image[-1, -1, 0]) - 1]
            out.append((Text(line[0 if upright else 2], line[1 if upright else 3], ()), 1, 1.0))
        return out

    rotated = np.isin(np.arange(len(lines)), tall)
    texts, ways = read_directed(
        crops, np.array([line[4] for line in lines]).reshape(-1, 2), rotated, recognize, 0.9
    )
    return [text.text for text, _, _ in texts], ways.tolist(), count


WORD = ("Region", 0.99, "uoiba", 0.6, UP)


def test_an_upright_page_is_read_once():
    assert read(WORD, WORD) == (["Region"] * 2, [False] * 2, 2)


def test_upright_digits_are_not_turned_however_sure_the_other_reading_is():
    assert read(WORD, ("99", 0.98, "66", 1.0, HEAD), WORD)[:2] == (["Region", "99", "Region"], [False] * 3)
    assert read(WORD, ("sos", 0.6, "SOS", 0.99, HEAD), WORD, WORD)[0][1] == "sos"
    assert read(("99", 0.98, "66", 1.0, HEAD))[:2] == (["99"], [False])  # alone on its image


def test_a_page_of_digits_is_upright_unless_several_of_them_tell():
    pages = [("99", 0.99, "66", 1.0, HEAD), ("906", 0.98, "906", 1.0, HEAD), ("16", 0.99, "91", 0.99, HEAD)]
    assert read(*pages)[1] == [False] * 3
    telling = [("9%", 0.7, "%6", 1.0, HEAD)] * 4
    assert read(*pages, *telling)[1] == [True] * 7


def test_a_page_on_its_head_takes_its_digits_along():
    upside = ("uoiba", 0.6, "Region", 0.99, HEAD)
    assert read(upside, ("66", 1.0, "99", 0.98, UP), upside)[:2] == (["Region", "99", "Region"], [True] * 3)


def test_what_the_classifier_turns_and_reading_does_not_stays():
    wrong = [("Total", 0.99, "le1ol", 0.5, HEAD)] * 3
    assert read(*wrong, WORD)[:2] == (["Total"] * 3 + ["Region"], [False] * 4)


def test_a_line_on_its_head_on_an_upright_page():
    assert read(WORD, ("uoiba", 0.6, "Region", 0.99, HEAD), WORD)[:2] == (
        ["Region"] * 3,
        [False, True, False],
    )
    assert read(WORD, ("uoiba", 0.6, "Region", 0.99, UNSURE), WORD)[1] == [False, True, False]
    assert read(WORD, ("uoiba", 0.6, "Region", 0.8, UNSURE), WORD)[1] == [False, False, False]


def test_lines_up_and_down_one_page():
    up, down = ("uoiba", 0.6, "Region", 0.99, HEAD), ("Region", 0.99, "uoiba", 0.6, UP)
    assert read(WORD, up, down, tall=(1, 2))[:2] == (["Region"] * 3, [False, True, False])
    # A number goes with the others.
    assert read(up, up, ("66", 1.0, "99", 0.99, UNSURE), tall=(0, 1, 2))[0] == ["Region", "Region", "99"]


def test_no_lines():
    assert read() == ([], [], 0)
