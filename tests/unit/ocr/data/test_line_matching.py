"""Which regions a detected line shows, and what is made of their texts."""

from __future__ import annotations

import numpy as np
import pytest

from ocr.data.labels import Region, make_region
from ocr.data.line_matching import longest_run, match_line, says_another, take_case


def box(left: float, top: float, right: float, bottom: float) -> np.ndarray:
    return np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float32)


def regions(*boxes: tuple[float, float, float, float], unreadable: int | None = None) -> list[Region]:
    return [
        make_region(box(*one), "###" if place == unreadable else f"text {place}")
        for place, one in enumerate(boxes)
    ]


LINE = box(10, 10, 110, 30)


@pytest.mark.parametrize(
    ("boxes", "expected"),
    [
        ([(12, 12, 108, 28)], ((0,), "")),
        ([(62, 12, 108, 28), (12, 11, 58, 27)], ((1, 0), "")),  # two words, in reading order
        ([(12, 12, 108, 28), (12, 32, 108, 48)], ((0,), "")),  # the line below is another one's
        ([(12, 28, 108, 44)], ((), "no label")),  # it touches the line by an eighth of its height
        ([], ((), "no label")),
        ([(12, 12, 208, 28)], ((), "cut otherwise")),  # half of a label
        ([(12, 20, 108, 40)], ((), "cut otherwise")),  # at half of its height
        ([(12, 12, 58, 28)], ((), "cut otherwise")),  # the label ends 52 pixels before the line, 2.6 heights
        ([(12, 12, 95, 28)], ((0,), "")),  # 15 pixels
        ([(12, 10, 108, 20), (12, 20, 108, 30)], ((), "cut otherwise")),  # two lines above one another
    ],
)
def test_regions_of_a_line(boxes: list, expected: tuple) -> None:
    assert match_line(LINE, regions(*boxes)) == expected


def test_a_region_that_nobody_can_read() -> None:
    both = (12, 12, 58, 28), (62, 12, 108, 28)
    assert match_line(LINE, regions(*both)).regions == (0, 1)
    assert match_line(LINE, regions(*both, unreadable=1)) == ((), "unreadable")
    assert match_line(LINE, regions(both[0], (62, 42, 108, 58), unreadable=1)).problem == "cut otherwise"


@pytest.mark.parametrize("degrees", [30, 90, 180, 250])
def test_turned_lines_match_as_upright_ones(degrees: float) -> None:
    angle = np.radians(degrees)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    words = [(62, 12, 108, 28), (12, 11, 58, 27), (12, 32, 108, 48)]
    turned = [make_region(box(*one) @ turn, "text") for one in words]
    assert match_line(LINE @ turn, turned) == ((1, 0), "")
    assert match_line(LINE @ turn, turned[:1]).problem == "cut otherwise"


def test_a_column_is_read_from_top_to_bottom() -> None:
    column, parts = box(10, 10, 30, 110), regions((12, 62, 28, 108), (11, 12, 27, 58), (40, 12, 56, 108))
    assert match_line(column, parts, vertical=True) == ((1, 0), "")
    assert match_line(column, parts) == ((), "cut otherwise")  # as two lines they stand above one another


@pytest.mark.parametrize(
    ("label", "reading", "expected"),
    [
        ("TAX INVOICE", "Tax Invoice", "Tax Invoice"),
        ("TOTAL: 5", "Total:5", "Total: 5"),  # the reading lost a space
        ("SUMMARY", "Summery", "Summary"),  # another letter was read in its place
        ("SELANGOR", "Se1angor", "Selangor"),  # a digit: l is as the letter behind it
        ("TOTAL", "TotaI", "Total"),  # I for l says nothing of the case: as the letter before
        ("INVOICE", "lNVOICE", "INVOICE"),
        ("AMT", "Arnt", "Amt"),  # two letters for one: m is as t
        ("KUALA LUMPUR", "Kuala", "Kuala LUMPUR"),  # nothing is known of the second word
        ("CASH", "", "CASH"),
        ("", "Cash", ""),
        ("12.50", "12.5O", "12.50"),
        ("STRASSE", "Straße", "STRASSE"),
        ("ÉTÉ", "Été", "Été"),
    ],
)
def test_labels_take_the_case_of_readings(label: str, reading: str, expected: str) -> None:
    assert take_case(label, reading) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("Total 5000", 0), ("a-b", 1), ("*** Dine in **", 3), ("- - - -", 1), ("=====*", 5)],
)
def test_runs_of_signs(text: str, expected: int) -> None:
    assert longest_run(text) == expected


def test_labels_of_other_lines() -> None:
    assert not says_another("TOTAL : 12.50", "Total: 12.50", 0.0)  # neither spaces nor case are seen
    assert not says_another("1", "7", 0.0)  # one character is an error of reading
    assert says_another("10", "47", 0.2)
    assert not says_another("0123456789", "ab23456789", 0.2)
    assert says_another("0123456789", "abc3456789", 0.2)
    assert says_another("Total", "", 0.5)
