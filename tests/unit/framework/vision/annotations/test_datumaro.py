"""Datumaro's JSON, which CVAT exports too: shapes, groups, splits, what is left out and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from detection.data.annotated import AnnotatedDetection
from framework.core.errors import InputError
from framework.vision import image, masks
from framework.vision.annotations.formats import detect_format, read_set
from framework.vision.annotations.objects import AnnotatedSet
from framework.workflow.data.convert import convert_data

HEIGHT, WIDTH = 50, 100
SQUARE = [10.0, 5.0, 30.0, 5.0, 30.0, 25.0, 10.0, 25.0]


def save(folder: Path, split: str, *annotations: object, names: tuple[str, ...] = ("dog", "cat")) -> Path:
    image.write(folder / f"images/{split}/a.jpg", np.full((HEIGHT, WIDTH, 3), 90, np.uint8))
    item = {"id": "a", "annotations": list(annotations), "image": {"path": "a.jpg", "size": [HEIGHT, WIDTH]}}
    gone = {"id": "b", "annotations": [], "image": {"path": "b.jpg", "size": None}}
    labels = [{"name": name, "parent": ""} for name in names]
    data = {"dm_format_version": "1.0", "categories": {"label": {"labels": labels}}, "items": [item, gone]}
    (folder / "annotations").mkdir(exist_ok=True)
    (folder / f"annotations/{split}.json").write_text(json.dumps(data), encoding="utf-8")
    return folder


def shape(
    kind: str, label: object = 1, group: int = 0, attributes: object = None, **values: object
) -> object:
    return {"type": kind, "label_id": label, "group": group, "attributes": attributes or {}, **values}


def boxes(read: AnnotatedSet) -> list[tuple[str, list[float]]]:
    return [(one.label, [round(side, 1) for side in one.box]) for one in read.images[0].objects]


def test_shapes(tmp_path: Path) -> None:
    mask = np.zeros((HEIGHT, WIDTH), bool)
    mask[5:25, 10:30] = True
    runs = masks.encode_rle(mask)
    save(
        tmp_path,
        "default",
        shape("bbox", bbox=[10, 5, 20, 20], attributes={"occluded": True}),
        shape("bbox", 0, bbox=[5, 10, 30, 10], attributes={"rotation": 90.0}),
        shape("rotated_bbox", 0, points=[20, 15, 20, 20, 0]),
        shape("polygon", points=SQUARE),
        shape("ellipse", points=[10, 5, 30, 25]),
        shape("mask", rle={**runs}, attributes={"is_crowd": True}),
        shape("polyline", points=SQUARE),
        shape("label"),
        shape("bbox", 7, bbox=[10, 5, 20, 20]),
        shape("bbox", bbox=[10, 5, 0, 20]),
        shape("bbox", bbox=[10, 5, None, 20]),
        shape("mask", rle={"size": [3, 3], "counts": [9]}),
        "no annotation",
    )
    assert detect_format(tmp_path) == detect_format(tmp_path / "annotations/default.json") == "datumaro"
    read = read_set(tmp_path, "datumaro")
    assert read.class_names == ("dog", "cat")
    box = [10.0, 5.0, 30.0, 25.0]
    assert boxes(read) == [("cat", box), ("dog", [15.0, 0.0, 25.0, 30.0]), ("dog", box), *[("cat", box)] * 3]
    objects = read.images[0].objects
    assert [one.has_shape for one in objects] == [False, True, False, True, True, True]
    assert [one.is_valid for one in objects] == [True] * 5 + [False]
    assert objects[0].attributes == {"occluded": "True"} and not objects[1].attributes
    told = "\n".join(read.problems)
    for text in (
        "label_id is 7",
        "no area",
        "bbox are [10, 5, None",
        "another size",
        "kind polyline",
        "kind label",
    ):
        assert text in told
    assert "1 items have no image" in told and "b.jpg" in told


def test_polygons_of_one_group_are_one_object(tmp_path: Path) -> None:
    far = [side + 40 for side in SQUARE]
    save(
        tmp_path,
        "train",
        shape("polygon", group=3, points=SQUARE),
        shape("polygon", group=3, points=far),
        shape("polygon", 0, group=3, points=far),
        shape("polygon", points=SQUARE),
        shape("polygon", points=far),
    )
    read = read_set(tmp_path, "datumaro")
    assert boxes(read)[0] == ("cat", [10.0, 5.0, 70.0, 65.0]) and len(read.images[0].objects) == 4
    assert [len(one.outlines) for one in read.images[0].objects] == [2, 1, 1, 1]


def test_splits_train_and_are_converted(tmp_path: Path) -> None:
    for split in ("train", "val"):
        save(tmp_path / "data", split, shape("bbox", bbox=[10, 5, 20, 20]))
    dataset = AnnotatedDetection(tmp_path / "data", split="val")
    assert len(dataset) == 1 and dataset.class_names == ("dog", "cat")
    assert Path(str(dataset[0].id)).parent.name == "val"
    report = convert_data(tmp_path / "data", tmp_path / "out", "yolo")
    assert report.images == 2 and (tmp_path / "out/labels/val/a.txt").read_text("utf-8").startswith("1 0.2")


def test_faults(tmp_path: Path) -> None:
    save(tmp_path / "twice", "train", names=("cat", "cat"))
    with pytest.raises(InputError, match="a name of its own"):
        read_set(tmp_path / "twice", "datumaro")
    (save(tmp_path / "bare", "train") / "images/train/a.jpg").unlink()
    with pytest.raises(InputError, match=r"none of the images is there(?s:.)*--images"):
        read_set(tmp_path / "bare", "datumaro")
