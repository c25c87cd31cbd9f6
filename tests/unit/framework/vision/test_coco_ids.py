"""Ids of files in COCO's format, as numbers and as texts."""

from __future__ import annotations

import pytest

from framework.core.errors import InputError
from framework.vision.coco_ids import read_file_name, read_id


@pytest.mark.parametrize(
    ("value", "ids", "expected"),
    [
        (2, {"0002", "0003"}, "0002"),
        ("2", {"0002"}, "0002"),
        ("0002", {2, 3}, 2),
        (2.0, {"000000000002"}, "000000000002"),
        ("17", {"17", 17}, "17"),
        (17, {"017", 17}, 17),
        (2, {"20", "02a"}, None),
        ("cat", {2, "2"}, None),
        (10**15, {str(10**15)}, str(10**15)),
        (True, {1}, None),
        (2.5, {2}, None),
    ],
)
def test_an_id_that_is_written_in_another_way(value: object, ids: set[int | str], expected: object) -> None:
    assert read_id(value, ids) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [("17", 17), (3.0, 3), (-1, None), ("x", None), (10**30, None)]
)
def test_an_id_in_a_range_of_numbers(value: object, expected: object) -> None:
    """A range compares a text with each of its numbers: an id that is none took ten seconds."""
    assert read_id(value, range(1 << 24)) == expected


def test_the_name_of_an_image_of_lvis_is_the_end_of_its_address() -> None:
    address = "http://images.cocodataset.org/train2017/000000391895.jpg"
    assert read_file_name({"coco_url": address}, "") == "train2017/000000391895.jpg"
    assert read_file_name({"coco_url": address, "file_name": "a.jpg"}, "") == "a.jpg"
    with pytest.raises(InputError, match="file_name"):
        read_file_name({"id": 1}, "")
