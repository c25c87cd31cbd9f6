from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework.core.errors import ConfigError, FormatError, InputError
from framework.vision import image, masks
from segmentation.data.annotated import AnnotatedMasks
from segmentation.data.check import validate
from segmentation.data.coco import CocoMasks

SQUARE = [[0.0, 0.0, 4.0, 0.0, 4.0, 4.0, 0.0, 4.0]]


def write_coco(folder: Path, *annotations: dict[str, Any], **changes: Any) -> Path:
    for number in (1, 2):
        image.write(folder / "val" / f"{number}.png", np.zeros((4, 6, 3), np.uint8))
    data = {
        "images": [{"id": n, "file_name": f"{n}.png", "height": 4, "width": 6} for n in (2, 1)],
        "categories": [{"id": 17, "name": "cat"}, {"id": 3, "name": "car"}],
        "annotations": [{"id": number, "image_id": 1, **one} for number, one in enumerate(annotations)],
    }
    (folder / "val.json").write_text(json.dumps(data | changes), encoding="utf-8")
    return folder


def mask(data: CocoMasks, index: int = 0) -> list[list[int]]:
    found = data[index].mask
    assert found is not None
    return found.tolist()


def run_lengths(compressed: bool) -> dict[str, Any]:
    region = np.zeros((4, 6), bool)
    region[1:3, 3:5] = True
    return masks.encode_rle(region, compressed=compressed)


@pytest.mark.parametrize("compressed", [False, True])
def test_the_smaller_object_is_seen(tmp_path: Path, compressed: bool) -> None:
    small = {"category_id": 3, "segmentation": run_lengths(compressed), "iscrowd": 1}
    large = {"category_id": 17, "segmentation": SQUARE}
    data = CocoMasks(write_coco(tmp_path, small, large), Path("val.json"), "val")
    assert (
        data.class_names == ("background", "car", "cat") and len(data) == 2 and data.palette.shape == (3, 3)
    )
    want = [[2, 2, 2, 2, 0, 0], [2, 2, 2, 1, 1, 0], [2, 2, 2, 1, 1, 0], [2, 2, 2, 2, 0, 0]]
    assert mask(data) == want
    assert mask(data, 1) == [[0] * 6] * 4 and data[1].id == str(tmp_path / "val" / "2.png")


def test_without_a_background(tmp_path: Path) -> None:
    root = write_coco(tmp_path, {"category_id": 17, "segmentation": SQUARE})
    data = CocoMasks(root, Path("val.json"), "val", background=None)
    assert data.class_names == ("car", "cat") and mask(data)[0] == [1, 1, 1, 1, 255, 255]
    with pytest.raises(ConfigError, match="the background has no name"):
        CocoMasks(root, Path("val.json"), "val", background="")


def test_parts_that_overlap_are_one_object(tmp_path: Path) -> None:
    root = write_coco(tmp_path, {"category_id": 3, "segmentation": SQUARE * 2})
    assert mask(CocoMasks(root, Path("val.json"), "val"))[0] == [1, 1, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ({"category_id": 3, "bbox": [0, 0, 1, 1]}, "annotation 0 on image 1: no mask"),
        ({"category_id": 3, "segmentation": []}, "annotation 0 on image 1: no mask"),
        ({"category_id": 3, "segmentation": [[0, 0, 1, 1, 2]]}, "annotation 0 on image 1: no mask"),
        ({"category_id": 5, "segmentation": SQUARE}, "annotation 0 has category_id 5"),
        ({"category_id": 3, "segmentation": SQUARE, "image_id": 9}, "annotation 0 has image_id 9"),
    ],
)
def test_annotations_that_cannot_be_drawn(tmp_path: Path, annotation: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match="1 of 1 annotations cannot be drawn") as caught:
        len(CocoMasks(write_coco(tmp_path, annotation), Path("val.json"), "val"))
    assert message in str(caught.value) and "val.json" in str(caught.value)


def test_damaged_run_lengths(tmp_path: Path) -> None:
    for one, message in (
        (
            {"size": [4, 6], "counts": [3, 4]},
            "annotation 0 on image 1: no mask, but run lengths that are damaged",
        ),
        (
            {"size": [4, 6], "counts": "4 "},
            "annotation 0 on image 1: no mask, but run lengths that are damaged",
        ),
        (
            {"size": [4, 6], "counts": "\ud800"},
            "annotation 0 on image 1: no mask, but run lengths that are no",
        ),
        ({"size": [4, 6], "counts": None}, "annotation 0 on image 1: no mask"),
        ({"size": [4, -6], "counts": []}, "annotation 0 on image 1: no mask"),
        ({"size": [6, 4], "counts": [24]}, "another size than its image"),
    ):
        data = CocoMasks(
            write_coco(tmp_path, {"category_id": 3, "segmentation": one}), Path("val.json"), "val"
        )
        with pytest.raises(InputError, match=message) as caught:
            _ = data[0]
        assert "annotation 0" in str(caught.value)


def test_one_damaged_mask_is_left_out_and_told_before_the_training(tmp_path: Path) -> None:
    damaged = {"category_id": 3, "segmentation": {"size": [4, 6], "counts": [3, 4]}}
    root = write_coco(tmp_path, damaged, {"category_id": 17, "segmentation": SQUARE})
    data = CocoMasks(root, Path("val.json"), "val")
    assert mask(data)[0] == [2, 2, 2, 2, 0, 0]
    (problem,) = data.problems
    assert problem.startswith("annotation 0 on image 1: no mask, but run lengths that are damaged")


def test_files_of_other_formats(tmp_path: Path) -> None:
    for changes in (
        {"images": None},
        {"categories": []},
        {"images": ["a"]},
    ):
        with pytest.raises(FormatError, match="not in COCO's format"):
            len(CocoMasks(write_coco(tmp_path, **changes), Path("val.json"), "val"))
    for entry in ({"file_name": "a"}, {"id": ""}):
        with pytest.raises(InputError, match="an image has no id of its own"):
            len(CocoMasks(write_coco(tmp_path, images=[entry]), Path("val.json"), "val"))
    (tmp_path / "val.json").write_text("{", encoding="utf-8")
    with pytest.raises(FormatError, match="not JSON"):
        len(CocoMasks(tmp_path, Path("val.json"), "val"))


def test_classes_and_files_that_do_not_fit(tmp_path: Path) -> None:
    root = write_coco(tmp_path, categories=[{"id": 3, "name": "background"}])
    with pytest.raises(InputError, match="the labels must be 2 or more classes of different names"):
        len(CocoMasks(root, Path("val.json"), "val"))
    with pytest.raises(InputError, match="2 of 2 files of the data set are not there"):
        len(CocoMasks(write_coco(tmp_path), Path("val.json")))


@pytest.mark.parametrize(
    ("segmentation", "message"),
    [
        ([[0, 0, 1, 1]], "no mask, but"),
        ([], "no mask, but"),
        ([*SQUARE, [1, 2]], "1 of 2 polygons have no three points"),
    ],
)
def test_what_cannot_be_drawn_is_left_out_and_said(tmp_path: Path, segmentation: Any, message: str) -> None:
    good = {"category_id": 3, "segmentation": SQUARE}
    bad = {"category_id": 17, "segmentation": segmentation}
    data = CocoMasks(write_coco(tmp_path, bad, good), Path("val.json"), "val")
    assert len(data) and len(data.problems) == 1 and message in data.problems[0]
    assert mask(data)[0][:4] == [1, 1, 1, 1]
    usable = 2 if segmentation[:1] == SQUARE else 1
    assert [len(one.objects) for one in data._records.images if one.objects] == [usable]
    assert message in str(validate(data))


def test_more_classes_than_a_byte_has(tmp_path: Path) -> None:
    many = [{"id": number, "name": f"kind {number}"} for number in range(1, 300)]
    root = write_coco(tmp_path, {"category_id": 290, "segmentation": SQUARE}, categories=many)
    with pytest.raises(InputError, match=r"ignore_index 255, 300 classes\n  allowed: 300 to 65535"):
        len(CocoMasks(root, Path("val.json"), "val"))
    data = CocoMasks(root, Path("val.json"), "val", ignore_index=65535)
    assert mask(data)[0] == [290, 290, 290, 290, 0, 0] and data.palette.shape == (300, 3)
    assert data.count_pixels()[290] == 16
    bare = CocoMasks(root, Path("val.json"), "val", background=None, ignore_index=65535)
    assert mask(bare)[0] == [289, 289, 289, 289, 65535, 65535]


def test_an_image_with_two_entries_of_other_objects(tmp_path: Path) -> None:
    """As files of several annotators have it: what one has drawn is background in the other's entry."""
    image.write(tmp_path / "a.png", np.zeros((8, 8, 3), np.uint8))
    squares = [[0, 0, 4, 0, 4, 4, 0, 4], [4, 4, 8, 4, 8, 8, 4, 8]]
    content: dict[str, Any] = {
        "images": [{"id": key, "file_name": "a.png", "height": 8, "width": 8} for key in (1, 2)],
        "categories": [{"id": 1, "name": "cell"}],
        "annotations": [
            {
                "id": key,
                "image_id": key,
                "category_id": 1,
                "segmentation": [square],
                "bbox": [*square[:2], 4, 4],
            }
            for key, square in enumerate(squares, start=1)
        ],
    }
    (tmp_path / "file.json").write_text(json.dumps(content), encoding="utf-8")
    for data in (CocoMasks(tmp_path, Path("file.json")), AnnotatedMasks(tmp_path, annotations="file.json")):
        assert len(data) == 2 and "1 images have several entries with other objects" in data.problems[-1]
    content["annotations"] = [{**content["annotations"][0], "id": key, "image_id": key} for key in (1, 2)]
    (tmp_path / "file.json").write_text(json.dumps(content), encoding="utf-8")
    assert CocoMasks(tmp_path, Path("file.json")).problems == ()
