"""Annotations of labelme in COCO's format: what is written, and what is refused."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from detection.data.coco import CocoDetection
from framework.commands.data import main
from framework.core.errors import FormatError, InputError
from framework.vision import image
from framework.workflow.data.labelme import convert_labelme
from segmentation.data.coco import CocoMasks


def shape(label: str, points: list[list[float]], **more: Any) -> dict[str, Any]:
    return {"label": label, "points": points, "group_id": None, "shape_type": "polygon", "flags": {}, **more}


TRIANGLE = shape("leaf", [[10, 10], [30, 10], [10, 40]])
BOX = shape("bud", [[50, 30], [40.5, 20]], shape_type="rectangle")


def annotate(path: Path, *shapes: dict[str, Any], **more: Any) -> Path:
    """A .json, and the image beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image.write(path.with_suffix(".png"), np.full((50, 60, 3), 90, np.uint8))
    data = {"version": "5.2.1", "flags": {}, "shapes": shapes, "imagePath": f"{path.stem}.png"}
    path.write_text(
        json.dumps({**data, "imageData": None, "imageHeight": 50, "imageWidth": 60, **more}), encoding="utf-8"
    )
    return path


def test_polygons_and_rectangles(tmp_path: Path) -> None:
    annotate(tmp_path / "in/b.json", TRIANGLE, BOX)
    annotate(
        tmp_path / "in/deep/a.json", shape("bud", [[0, 0], [5, 0], [5, 5], [0, 5]], shape_type="rectangle")
    )
    image.write(tmp_path / "in/not_annotated.png", np.zeros((9, 9, 3), np.uint8))
    report = convert_labelme(tmp_path / "in", tmp_path / "out")
    assert report.counts == {"bud": 2, "leaf": 1} and report.image_count == 2
    data = json.loads(report.annotations.read_text(encoding="utf-8"))
    assert data["categories"] == [{"id": 1, "name": "bud"}, {"id": 2, "name": "leaf"}]
    assert [one["file_name"] for one in data["images"]] == ["b.png", "deep/a.png"]
    assert {path.relative_to(report.images).as_posix() for path in report.images.rglob("*.png")} == {
        "b.png",
        "deep/a.png",
    }
    leaf, bud, square = data["annotations"]
    assert leaf == {
        **{"id": 1, "image_id": 1, "category_id": 2, "iscrowd": 0, "area": 300.0, "bbox": [10, 10, 20, 30]},
        "segmentation": [[10, 10, 30, 10, 10, 40]],
    }
    assert bud["bbox"] == [40.5, 20, 9.5, 10] and bud["area"] == 95
    assert bud["segmentation"] == [[40.5, 20, 50, 20, 50, 30, 40.5, 30]]
    assert square["bbox"] == [0, 0, 5, 5] and square["image_id"] == 2

    boxes = CocoDetection(tmp_path / "out", Path("annotations.json"), "images")
    assert boxes.class_names == ("bud", "leaf") and len(boxes) == 2
    sample = boxes[0]
    assert sample.boxes is not None and sample.boxes.tolist() == [[10, 10, 30, 40], [40.5, 20, 50, 30]]
    mask = CocoMasks(tmp_path / "out", Path("annotations.json"), "images")[0].mask
    assert mask is not None and mask[12, 12] == 2 and mask[25, 45] == 1 and mask[45, 5] == 0


def test_shapes_of_one_group_are_one_object(tmp_path: Path) -> None:
    halves = [shape("leaf", [[x, 0], [x + 10, 0], [x + 10, 10], [x, 10]], group_id=3) for x in (0, 5)]
    annotate(tmp_path / "in/a.json", *halves, shape("bud", halves[0]["points"], group_id=3), BOX, BOX)
    data = json.loads(
        convert_labelme(tmp_path / "in", tmp_path / "out").annotations.read_text(encoding="utf-8")
    )
    leaf, *others = data["annotations"]
    assert len(leaf["segmentation"]) == 2 and leaf["bbox"] == [0, 0, 15, 10]
    assert leaf["area"] == 150  # what both cover counts once
    assert len(others) == 3


def test_the_image_may_be_elsewhere_or_inside(tmp_path: Path) -> None:
    file = annotate(tmp_path / "in/a.json", BOX, imagePath="..\\photos\\one.png")
    photo = file.with_suffix(".png").rename(tmp_path / "one.png")
    inside = base64.b64encode(photo.read_bytes()).decode()
    with pytest.raises(InputError, match=r"a\.json, imagePath: the image of an annotation is not there"):
        convert_labelme(tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/one.png").write_bytes(photo.read_bytes())
    convert_labelme(tmp_path / "in", tmp_path / "beside")
    data = {**json.loads(file.read_text(encoding="utf-8")), "imageData": inside, "imagePath": "gone.png"}
    file.write_text(json.dumps(data), encoding="utf-8")
    convert_labelme(tmp_path / "in", tmp_path / "inside")
    for name in ("beside", "inside"):
        assert (tmp_path / name / "images/a.png").read_bytes() == photo.read_bytes()


def test_an_image_of_the_name_of_the_json(tmp_path: Path) -> None:
    """Both were renamed, and imagePath kept the old name (PaddleX#229)."""
    file = annotate(tmp_path / "in/a.json", BOX, imagePath="..\\old\\69.jpg")
    report = convert_labelme(tmp_path / "in", tmp_path / "out")
    assert (tmp_path / "out/images/a.png").read_bytes() == file.with_suffix(".png").read_bytes()
    assert "1 images are those of the .json's name, as imagePath names none: a.json" in str(report)


def test_unfinished_polygons_are_left_out(tmp_path: Path) -> None:
    """A stray click saves a polygon of two points or one; the rest of the folder is as good as before."""
    stray = [{**TRIANGLE, "group_id": 1, "points": points} for points in ([[1, 2], [3, 4]], [[5, 6]])]
    annotate(tmp_path / "in/a.json", *stray, {**TRIANGLE, "group_id": 1}, BOX)
    report = convert_labelme(tmp_path / "in", tmp_path / "out")
    assert report.counts == {"bud": 1, "leaf": 1}
    assert "2 shapes without an area are left out: 2 leaf whose points do not make a polygon" in str(report)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"shapes": 3}, r"a\.json: the field 'shapes' is of the wrong type"),
        ({"shapes": [3]}, r"a\.json, shapes\[0\]: a shape must be an object"),
        ({"shapes": [BOX, {**BOX, "label": ""}]}, r"a\.json, shapes\[1\]: the field 'label'"),
        ({"shapes": [{**BOX, "group_id": "x"}]}, r"shapes\[0\]: the field 'group_id'"),
        (
            {"shapes": [{**BOX, "shape_type": "star"}]},
            r"shapes\[0\]\.shape_type: labelme has no such shape",
        ),
        (
            {"shapes": [{**BOX, "points": [[1, 2]]}]},
            r"shapes\[0\]\.points: the points do not make a rectangle",
        ),
        ({"shapes": [{**TRIANGLE, "points": [[1, 2], [3, "4"], [5, 6]]}]}, r"do not make a shape"),
        ({"shapes": [{**TRIANGLE, "points": [[1, 2], [3, 4]]}]}, r"do not make a polygon"),
        ({"imagePath": None}, r"a\.json: the field 'imagePath'"),
        ({"imagePath": "gone.png", "imageData": "?"}, r"a\.json: the field 'imageData' is damaged"),
        ({"imagePath": "gone.png", "imageData": "AAAA"}, r"a\.json: an image of the data set cannot be read"),
        (
            {"imageWidth": 61},
            r"a\.json, imageWidth: the image has another size[\s\S]*61, but the image has 60",
        ),
    ],
)
def test_errors_name_file_and_field(tmp_path: Path, more: dict[str, Any], said: str) -> None:
    annotate(tmp_path / "in/a.json", BOX, **more)
    with pytest.raises(InputError, match=said):
        convert_labelme(tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()  # nothing half-written


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_text('{"images": []}', encoding="utf-8"),
        lambda path: path.write_text("[1]", encoding="utf-8"),
    ],
)
def test_other_json_files_are_named(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    spoil(annotate(tmp_path / "in/a.json", BOX))
    with pytest.raises(FormatError, match=r"a\.json: the file is not labelme's"):
        convert_labelme(tmp_path / "in", tmp_path / "out")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    annotate(tmp_path / "in/a.json", TRIANGLE, BOX)
    assert main(["labelme", str(tmp_path / "in"), str(tmp_path / "out")]) == 0
    assert "2 objects of 2 classes (bud 1, leaf 1)" in capsys.readouterr().out
    assert main(["labelme", str(tmp_path / "in"), str(tmp_path / "out")]) != 0
    assert "the output is there already" in capsys.readouterr().err
    assert main(["labelme", str(tmp_path / "out/images"), str(tmp_path / "other")]) != 0
    assert "there are no annotations of labelme" in capsys.readouterr().err


def test_circles_turned_rectangles_and_masks(tmp_path: Path) -> None:
    drawn = np.zeros((4, 6), np.uint8)
    drawn[1:, :3] = 1
    done, png = cv2.imencode(".png", drawn * 255)
    assert done
    annotate(
        tmp_path / "in/a.json",
        shape("cap", [[30, 25], [40, 25]], shape_type="circle"),
        shape("cap", [[10, 10], [14, 14], [10, 18], [6, 14]], shape_type="oriented_rectangle"),
        shape("tag", [[10, 10], [14, 14], [10, 18], [6, 14]], shape_type="rotation", direction=0.785),
        shape(
            "cap", [[2.7, 3.6], [7.7, 6.6]], shape_type="mask", mask=base64.b64encode(png.tobytes()).decode()
        ),
        shape("crack", [[1, 1], [20, 20], [30, 5]], shape_type="linestrip"),
        shape("tip", [[1, 1]], shape_type="point"),
    )
    report = convert_labelme(tmp_path / "in", tmp_path / "out")
    assert report.counts == {"cap": 3, "tag": 1} and report.left_out == {"linestrip crack": 1, "point tip": 1}
    assert "2 shapes without an area are left out: 1 linestrip crack, 1 point tip" in str(report)
    circle, turned, of_anylabeling, mask = json.loads(report.annotations.read_text(encoding="utf-8"))[
        "annotations"
    ]
    assert abs(circle["area"] - np.pi * 100) < 6 and circle["bbox"] == pytest.approx(
        [20, 15, 20, 20], abs=0.3
    )
    assert (turned["area"], turned["bbox"]) == (32, [6, 10, 8, 8])
    assert of_anylabeling["segmentation"] == turned["segmentation"]
    assert (mask["area"], mask["bbox"]) == (9, [2, 4, 3, 3])
    sample = CocoMasks(tmp_path / "out", Path("annotations.json"), "images")[0]
    assert sample.mask is not None and sample.mask[4:7, 2:5].all() and sample.mask[25, 30] == 1


def test_all_faults_stand_in_one_message(tmp_path: Path) -> None:
    annotate(tmp_path / "in/a.json", shape("cap", [[1, 1]], shape_type="circle"), TRIANGLE)
    annotate(tmp_path / "in/b.json", shape("cap", [[1, 1], [1, 1]], shape_type="circle"))
    annotate(tmp_path / "in/c.json", shape("cap", [[1, 1], [5, 5]], shape_type="mask", mask="?"))
    with pytest.raises(InputError, match="3 shapes cannot be read") as caught:
        convert_labelme(tmp_path / "in", tmp_path / "out")
    assert all(f"{name}.json, shapes[0]" in str(caught.value) for name in "abc")
    assert not (tmp_path / "out").exists()


def test_shapes_without_an_area_alone_are_told(tmp_path: Path) -> None:
    annotate(tmp_path / "in/a.json", shape("cap", [[1, 1]], shape_type="point"))
    with pytest.raises(
        InputError, match=r"no annotation has an object(?s:.)*1 files of annotations, with 1 point cap"
    ):
        convert_labelme(tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()
