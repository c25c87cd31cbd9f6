"""What becomes of a layout detector's boxes, in the order of PaddleX's rules."""

from __future__ import annotations

import numpy as np
import pytest

from framework.core.errors import ConfigError
from ocr.documents.layout_regions import LayoutRules, Region, clean_regions, with_labels

PAGE = (1000, 800)


def labels(regions: tuple[Region, ...]) -> list[str]:
    return [one.label for one in regions]


def test_each_label_has_its_threshold() -> None:
    found = [
        Region("table", (0, 0, 100, 100), 0.49),
        Region("text", (0, 200, 100, 300), 0.41),
        Region("paragraph_title", (0, 400, 100, 420), 0.31),
        Region("footer", (0, 900, 100, 920), 0.5),
    ]
    assert labels(clean_regions(found, PAGE)) == ["text", "paragraph_title"]
    low = LayoutRules(threshold=0.1, thresholds={})
    assert labels(clean_regions(found, PAGE, low)) == ["footer", "table", "text", "paragraph_title"]


def test_overlaps_of_one_label_and_of_two() -> None:
    """100 x 100 moved by 20: 80 / 120 = 0.67; by 26: 74 / 126 = 0.587."""
    box = (0.0, 0.0, 100.0, 100.0)
    better = Region("text", box, 0.9)
    assert len(clean_regions([better, Region("text", (20, 0, 120, 100), 0.8)], PAGE)) == 1
    assert len(clean_regions([better, Region("text", (26, 0, 126, 100), 0.8)], PAGE)) == 2
    assert len(clean_regions([better, Region("table", (20, 0, 120, 100), 0.8)], PAGE)) == 2
    assert labels(clean_regions([Region("table", box, 0.8), better], PAGE)) == ["text"]


@pytest.mark.parametrize(("size", "height", "kept"), [((1000, 800), 900, 1), ((800, 1000), 700, 1)])
def test_an_image_of_the_whole_page_goes_where_others_are(
    size: tuple[int, int], height: int, kept: int
) -> None:
    whole = Region("image", (0, 0, size[1], size[0]), 0.9)
    text = Region("text", (10, 10, 60, 20), 0.9)
    assert labels(clean_regions([whole, text], size)) == ["text"]
    assert labels(clean_regions([whole], size)) == ["image"]
    part = Region("image", (0, 0, size[1], height), 0.9)  # 0.9 of an upright page, 0.875 of a wide one
    found = clean_regions([part, Region("text", (10, size[0] - 40, 60, size[0] - 20), 0.9)], size)
    assert labels(found) == (["image", "text"] if size[0] > size[1] else ["text"])


def test_boxes_within_boxes() -> None:
    outer, inner = (0.0, 0.0, 400.0, 400.0), (10.0, 10.0, 60.0, 60.0)
    image = [Region("image", outer, 0.9), Region("text", inner, 0.8)]
    assert labels(clean_regions(image, PAGE)) == ["image"]  # "large"
    table = [Region("table", outer, 0.9), Region("text", inner, 0.8)]
    assert labels(clean_regions(table, PAGE)) == ["table", "text"]  # "union"
    small = LayoutRules(merge={"text": "small"})
    assert labels(clean_regions(table, PAGE, small)) == ["text"]
    formula = [Region("image", outer, 0.9), Region("formula", inner, 0.8)]
    assert labels(clean_regions(formula, PAGE)) == ["image", "formula"]


def test_boxes_grow_and_stay_on_the_page() -> None:
    (one,) = clean_regions([Region("table", (0, 100, 100, 200), 0.9)], PAGE, LayoutRules(unclip=(1.2, 1.1)))
    np.testing.assert_allclose(one.box, (0, 95, 110, 205))
    assert clean_regions([Region("table", (900, 10, 950, 60), 0.9)], PAGE) == ()
    assert clean_regions([], PAGE) == ()


def test_classes_become_labels_of_blocks() -> None:
    boxes = np.array([[0, 0, 9, 9]] * 4, np.float64)
    names = ("title", "figure", "inline_formula", "horse")
    found = with_labels(boxes, np.full(4, 0.5), np.array([0, 1, 2, 3]), names)
    assert [one.label for one in found] == ["paragraph_title", "image"]
    assert with_labels(boxes[:1], np.ones(1), np.array([7]), names) == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"threshold": 1.5}, "out of range"),
        ({"unclip": (0.0, 1.0)}, "cannot grow"),
        ({"merge": {"text": "huge"}}, "no such label or mode"),
        ({"thresholds": {"txt": 0.5}}, "no such label or mode"),
    ],
)
def test_wrong_rules(wrong: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        LayoutRules(**wrong)
