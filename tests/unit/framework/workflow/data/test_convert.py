"""Data sets from one format to another: what is written, said, and refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from detection.data.annotated import CvatDetection, YoloDetection
from detection.data.coco import CocoDetection
from framework.commands.data import main
from framework.core.errors import InputError
from framework.vision import image
from framework.workflow.data.convert import convert_data, detect_format
from segmentation.data.annotated import CvatMasks, YoloMasks
from segmentation.data.coco import CocoMasks

SQUARE = [10, 5, 30, 5, 30, 25, 10, 25]


def coco(root: Path, *, outlines: bool = True, crowd: int = 0) -> Path:
    for name in ("a.jpg", "cam/b.jpg"):
        (root / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        image.write(root / "images" / name, np.full((50, 100, 3), 90, np.uint8))
    names = ("a.jpg", "cam/b.jpg")
    images = [{"id": key, "file_name": name, "height": 50, "width": 100} for key, name in enumerate(names)]
    annotations = [
        {
            "id": 1,
            "image_id": 0,
            "category_id": 5,
            "bbox": [10, 5, 20, 20],
            "iscrowd": 0,
            "attributes": {"age": "3"},
        },
        {"id": 2, "image_id": 1, "category_id": 2, "bbox": [10, 5, 20, 20], "iscrowd": crowd},
    ]
    for one in annotations:
        one["segmentation"] = [SQUARE] if outlines or one["id"] == 1 else []
    categories = [{"id": 5, "name": "dog"}, {"id": 2, "name": "cat"}]
    file = root / "all.json"
    file.write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": categories}), encoding="utf-8"
    )
    return file


def boxes_of(
    dataset: CocoDetection | YoloDetection | CvatDetection,
) -> list[tuple[list[int], list[list[float]]]]:
    samples = [dataset[index] for index in range(len(dataset))]
    return [
        (one.labels.tolist(), one.boxes.tolist())
        for one in samples
        if one.labels is not None and one.boxes is not None
    ]


def test_coco_to_yolo_to_cvat_and_back(tmp_path: Path) -> None:
    source = coco(tmp_path)
    report = convert_data(source, tmp_path / "yolo", "yolo")
    assert report.source_format == "coco" and report.counts == {"cat": 1, "dog": 1}
    assert "attributes of 1 objects are not written" in str(report) and "no part to evaluate" in str(report)
    assert (
        (tmp_path / "yolo/labels/cam/b.txt")
        .read_text(encoding="utf-8")
        .startswith("0 0.100000 0.100000 0.300000")
    )
    convert_data(tmp_path / "yolo/data.yaml", tmp_path / "cvat", "cvat")
    convert_data(tmp_path / "cvat/annotations.xml", tmp_path / "coco", "coco")
    expected = boxes_of(CocoDetection(tmp_path, Path("all.json"), "images"))
    assert boxes_of(YoloDetection(tmp_path / "yolo", "train")) == [
        (labels, [pytest.approx(box, abs=1e-3) for box in boxes]) for labels, boxes in expected
    ]
    assert boxes_of(CvatDetection(tmp_path / "cvat", split="train")) == expected
    assert boxes_of(CocoDetection(tmp_path / "coco", Path("train.json"), "images")) == expected


def test_masks_of_every_format_are_the_same(tmp_path: Path) -> None:
    source = coco(tmp_path)
    convert_data(source, tmp_path / "yolo", "yolo")
    convert_data(source, tmp_path / "cvat", "cvat")
    sets = [
        CocoMasks(tmp_path, Path("all.json"), "images"),
        YoloMasks(tmp_path / "yolo"),
        CvatMasks(tmp_path / "cvat"),
    ]
    assert {data.class_names for data in sets} == {("background", "cat", "dog")}
    for index in range(2):
        first, *others = (data[index].mask for data in sets)
        assert first is not None and first.max() and all(np.array_equal(first, other) for other in others)


def test_boxes_where_an_object_has_no_outline_and_no_crowds(tmp_path: Path) -> None:
    report = convert_data(coco(tmp_path, outlines=False), tmp_path / "yolo", "yolo")
    assert "boxes are written: 1 of 2 objects have no outline" in str(report)
    assert (tmp_path / "yolo/labels/a.txt").read_text(
        encoding="utf-8"
    ) == "1 0.200000 0.300000 0.200000 0.400000\n"
    report = convert_data(coco(tmp_path, crowd=1), tmp_path / "crowds", "yolo")
    assert "1 objects that are crowds or difficult" in str(report)
    assert (tmp_path / "crowds/labels/cam/b.txt").read_text(encoding="utf-8") == ""


def test_voc_and_labelme_are_known_by_their_files(tmp_path: Path) -> None:
    for folder in ("voc/images", "voc/annotations", "me"):
        (tmp_path / folder).mkdir(parents=True)
    pixels = np.full((50, 100, 3), 90, np.uint8)
    image.write(tmp_path / "voc/images/a.jpg", pixels)
    image.write(tmp_path / "voc/images/b.jpg", pixels)
    box = "<bndbox><xmin>11</xmin><ymin>6</ymin><xmax>30</xmax><ymax>25</ymax></bndbox>"
    size = "<size><width>100</width><height>50</height></size>"
    xml = f"<annotation>{size}<object><name>dog</name>{box}</object></annotation>"
    (tmp_path / "voc/annotations/a.xml").write_text(xml, encoding="utf-8")
    report = convert_data(tmp_path / "voc", tmp_path / "out", "yolo")
    assert (report.source_format, report.counts) == ("voc", {"dog": 1}) and "b.jpg has no annotation" in str(
        report
    )
    assert (tmp_path / "out/labels/a.txt").read_text(
        encoding="utf-8"
    ) == "0 0.200000 0.300000 0.200000 0.400000\n"
    image.write(tmp_path / "me/a.jpg", pixels)
    shapes = [
        {"label": "dog", "points": [[10, 5], [30, 25]], "shape_type": "rectangle"},
        {"label": "dog", "points": [[10, 5], [30, 25]], "shape_type": "line"},
    ]
    (tmp_path / "me/a.json").write_text(
        json.dumps({"shapes": shapes, "imagePath": "a.jpg"}), encoding="utf-8"
    )
    report = convert_data(tmp_path / "me", tmp_path / "out2", "cvat")
    assert report.source_format == "labelme" and "1 line dog: no area" in str(report)


def test_what_cannot_be_converted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="the format of these data is not known"):
        detect_format(tmp_path)
    source = coco(tmp_path)
    (tmp_path / "images/a.jpg").unlink()
    with pytest.raises(InputError, match="1 of 2 images are not there"):
        convert_data(source, tmp_path / "out", "yolo")
    assert not (tmp_path / "out").exists()
    coco(tmp_path)
    assert main(["convert", str(source), str(tmp_path / "out"), "--to", "yolo", "--boxes_only"]) == 0
    assert "data.yaml: 2 objects of 2 classes" in capsys.readouterr().out
    assert main(["convert", str(source), str(tmp_path / "out"), "--to", "yolo"]) == 2
    assert "the output is there already" in capsys.readouterr().err
