"""Labelbox's exports: NDJSON with a data row a line, JSON, and the JSON of before 2023."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import FormatError, InputError
from framework.vision import image
from framework.vision.annotations.formats import detect_format, read_set
from framework.vision.annotations.labelbox import read_labelbox

HEIGHT, WIDTH = 60, 80
BOX = {"top": 5.0, "left": 10.5, "height": 8.0, "width": 20.0}
POINTS = [{"x": x, "y": y} for x, y in ((10, 10), (60, 10), (60, 50), (10, 50))]
ANSWERS = [
    {"name": "state", "radio_answer": {"name": "Good", "value": "good", "classifications": []}},
    {"name": "parts", "checklist_answers": [{"name": "head", "value": "h"}, {"name": "tail", "value": "t"}]},
    {"name": "note", "text_answer": {"content": "weiß"}},
]


def write_images(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        image.write(folder / name, np.full((HEIGHT, WIDTH, 3), 90, np.uint8))


def row(name: str, *objects: Mapping[str, object], labels: int = 1, **facts: object) -> Mapping[str, object]:
    label = {"label_kind": "Default", "annotations": {"objects": list(objects), **facts}}
    return {
        "data_row": {"id": "cl1", "global_key": f"key {name}", "external_id": name, "row_data": ""},
        "media_attributes": {"height": HEIGHT, "width": WIDTH, "asset_type": "image"},
        "projects": {"p1": {"name": "p", "labels": [label] * labels}},
    }


def shape(name: str, kind: str, **facts: object) -> Mapping[str, object]:
    return {"feature_id": "f", "name": name, "annotation_kind": kind, "classifications": [], **facts}


CAT = shape("cat", "ImageBoundingBox", bounding_box=BOX)


def write_rows(file: Path, rows: Sequence[Mapping[str, object]]) -> None:
    file.write_text("".join(f"{json.dumps(one)}\n" for one in rows), encoding="utf-8")


def test_boxes_and_polygons(tmp_path: Path) -> None:
    link = {"url": "https://api.labelbox.com/masks/1"}
    objects = [
        {**CAT, "classifications": ANSWERS},
        shape("leaf ü", "ImagePolygon", polygon=POINTS),
        shape("blob", "ImageSegmentationMask", mask=link, composite_mask={**link, "color_rgb": [1, 2, 3]}),
        shape("tip", "ImagePoint", point={"x": 1, "y": 2}),
        shape("road", "ImagePolyline", line=POINTS),
        shape("cat", "ImageBoundingBox", bounding_box={**BOX, "width": 0}),
        shape("cat", "ImageBoundingBox", bounding_box={"top": 1}),
        shape("leaf", "ImagePolygon", polygon=POINTS[:2]),
        {**CAT, "name": None},
    ]
    unlabelled = {**row("b.png"), "projects": {"p1": {"labels": []}}}
    rows = [
        row("a.png", *objects, classifications=[{"name": "scene", "radio_answer": {"name": "in"}}]),
        unlabelled,
        row("b.png", labels=2),
        row("a.png", CAT),
        row("c.png", CAT),
        row("d.mp4", frames={"1": {}}),
    ]
    write_rows(tmp_path / "export.ndjson", rows)
    write_images(tmp_path / "images", "a.png", "b.png")
    assert detect_format(tmp_path) == detect_format(tmp_path / "export.ndjson") == "labelbox"
    read = read_set(tmp_path, "labelbox")
    assert read.class_names == ("cat", "leaf ü")
    assert [(one.name, one.size_hw, len(one.objects)) for one in read.images] == [
        ("a.png", (HEIGHT, WIDTH), 2),
        ("b.png", (HEIGHT, WIDTH), 0),
    ]
    cat, leaf = read.images[0].objects
    assert cat.box == (10.5, 5, 30.5, 13)
    assert cat.attributes == {"state": "Good", "parts": "head, tail", "note": "weiß"}
    assert leaf.fill((HEIGHT, WIDTH)).sum() == 2000
    assert [line.replace(str(tmp_path / "export.ndjson"), "").strip(",: ") for line in read.problems] == [
        "row 1, object 6 (bounding_box): cat: [10.5, 5.0, 10.5, 13.0] has no area",
        "row 1, object 7 (bounding_box): cat: left, top, width and height are {'top': 1}",
        "row 1, object 8 (polygon): leaf: 2 points, but a polygon has three or more",
        "row 1, object 9 (bounding_box): its class is None",
        f"1 rows have no image in {tmp_path}: c.png",
        "1 x mask blob, which is a link: download it, or export polygons",
        "1 x point tip, which has no area",
        "1 x line road, which has no area",
        "1 x row that is not labelled",
        "1 x further label of a row",
        "1 x further row of an image",
        "1 x video, whose frames are no images",
    ]
    assert [line.rpartition(": ")[2] for line in read.notes] == [
        "1 x answer about an image (scene), which is of no object"
    ]


def test_splits_and_names(tmp_path: Path) -> None:
    address = "https://storage.labelbox.com/c%2Fb%20c.png?token=1"
    other = {**row("", CAT), "data_row": {"id": "1", "global_key": "7", "row_data": address}}
    write_rows(tmp_path / "train.ndjson", [row("a.png", CAT)])
    (tmp_path / "val.json").write_text(json.dumps([other]), encoding="utf-8")  # as json.dump writes a list
    write_images(tmp_path / "images", "train/a.png", "val/b c.png")
    read = read_set(tmp_path, detect_format(tmp_path))
    assert [(one.split, one.name) for one in read.images] == [
        ("val", "val/b c.png"),
        ("train", "train/a.png"),
    ]


def test_json_of_before_2023(tmp_path: Path) -> None:
    objects = [
        {"title": "cat", "value": "cat", "bbox": BOX, "classifications": [{"title": "state", "answer": "x"}]},
        {"title": "leaf", "value": "leaf", "polygon": POINTS, "instanceURI": "https://api.labelbox.com/1"},
        {"title": "blob", "value": "blob", "instanceURI": "https://api.labelbox.com/2"},
    ]
    entry = {"ID": "1", "DataRow ID": "2", "Labeled Data": "https://x/a.png", "External ID": "a.png"}
    rows = [
        {**entry, "Label": {"objects": objects, "classifications": []}, "Skipped": False},
        {**entry, "External ID": "b.png", "Label": {}, "Skipped": True},
    ]
    (tmp_path / "export.json").write_text(json.dumps(rows), encoding="utf-8")
    write_images(tmp_path, "a.png", "b.png")
    read = read_set(tmp_path / "export.json", detect_format(tmp_path / "export.json"))
    assert [(one.label, one.attributes) for one in read.images[0].objects] == [
        ("cat", {"state": "x"}),
        ("leaf", {}),
    ]
    assert len(read.images) == 1 and len(read.problems) == 2


def test_faults(tmp_path: Path) -> None:
    file = tmp_path / "export.ndjson"
    write_rows(file, [row("a.png", CAT)])
    with pytest.raises(InputError, match="none of the images is there") as caught:
        read_labelbox(file)
    assert "1 rows; a.png" in str(caught.value)
    write_rows(file, [{"file_name": "a.png"}])
    with pytest.raises(InputError, match="the format of these data is not known"):
        detect_format(file)
    with pytest.raises(FormatError, match="the file is not Labelbox's"):
        read_labelbox(file)
    file.write_text('{"data_row": {}, "projects": {}}\n{"data_row"\n', encoding="utf-8")
    with pytest.raises(FormatError, match=r"export.ndjson, line 2"):
        read_labelbox(file)
