"""VoTT's JSON, Create ML's and FiftyOne's: what is read, told and refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from detection.data.annotated import AnnotatedDetection
from framework.core.errors import FormatError, InputError
from framework.vision import image
from framework.vision.annotations.formats import Format, detect_format, read_set
from framework.vision.annotations.objects import AnnotatedSet

HEIGHT, WIDTH = 50, 100
BOX = {"left": 10, "top": 5, "width": 20, "height": 20}


def photo(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.write(path, np.full((HEIGHT, WIDTH, 3), 90, np.uint8))


def write(path: Path, data: object) -> None:
    path.write_text(json.dumps(data), encoding="utf-8")


def read(source: Path, kind: Format) -> AnnotatedSet:
    assert detect_format(source) == kind
    return read_set(source, kind)


def boxes(objects: AnnotatedSet) -> list[tuple[str, str, list[float]]]:
    return [
        (one.name, each.label, [round(side, 2) for side in each.box])
        for one in objects.images
        for each in one.objects
    ]


def asset(name: str, *regions: object, state: int = 2) -> dict[str, object]:
    size = {"width": WIDTH, "height": HEIGHT}
    facts = {"id": name, "name": name, "path": f"file:C:/x/{name}", "size": size, "state": state}
    return {"asset": facts, "regions": list(regions), "version": "2.2.0"}


def region(kind: str, *tags: str, **others: object) -> dict[str, object]:
    return {"id": "r", "type": kind, "tags": list(tags), "boundingBox": BOX, "points": [], **others}


def test_an_export_of_vott(tmp_path: Path) -> None:
    for name in ("a.png", "b.png", "c.png"):
        photo(tmp_path / name)
    corners = [{"x": 10, "y": 5}, {"x": 30, "y": 5}, {"x": 30, "y": 25}]
    regions = (
        region("RECTANGLE", "dog", "small"),
        region("POLYGON", "cat", points=corners),
        region("POINT", "cat"),
        region("RECTANGLE"),
        region("RECTANGLE", "cat", boundingBox={**BOX, "width": 0}),
    )
    assets = [asset("a.png", *regions), asset("b.png", state=1), asset("c.png", state=0)]
    tags = [{"name": name, "color": "#fff"} for name in ("dog", "cat", "unused")]
    write(tmp_path / "x-export.json", {"tags": tags, "assets": dict(enumerate(assets))})
    objects = read(tmp_path, "vott")
    box = [10.0, 5.0, 30.0, 25.0]
    assert boxes(objects) == [("a.png", "dog", box), ("a.png", "small", box), ("a.png", "cat", box)]
    assert [len(one.outlines) for one in objects.images[0].objects] == [0, 0, 1]
    assert objects.class_names == ("dog", "cat", "unused", "small")
    assert [one.name for one in objects.images] == ["a.png", "b.png"]  # nobody has looked at c.png
    assert [line.rpartition("/")[2] for line in objects.problems] == [
        "x-export.json, a.png, region 5 (rectangle): cat: [10.0, 5.0, 10.0, 25.0] has no area",
        "c.png: nobody has looked at it",
        "x-export.json: 1 x point cat, which has no area",
        "x-export.json: 1 x region without a tag",
    ]


def test_files_of_assets_of_vott(tmp_path: Path) -> None:
    for number in (1, 2):
        photo(tmp_path / f"{number}.png")
        write(
            tmp_path / f"train{number}-asset.json",
            asset(f"{number}.png", region("RECTANGLE", f"kind{number}")),
        )
    objects = read(tmp_path, "vott")
    assert [(name, label) for name, label, _ in boxes(objects)] == [("1.png", "kind1"), ("2.png", "kind2")]
    assert {one.split for one in objects.images} == {""}  # a file an image tells no split
    write(tmp_path / "train3-asset.json", asset("2.png", region("RECTANGLE", "kind2")))
    with pytest.raises(InputError, match=r"several files of annotations have the same images(.*\n)*.*2\.png"):
        read(tmp_path, "vott")


def test_what_is_no_vott(tmp_path: Path) -> None:
    photo(tmp_path / "a.png")
    write(tmp_path / "old.json", {"frames": {"a.png": []}, "inputTags": "cat", "framerate": "1"})
    with pytest.raises(FormatError, match=r"of VoTT 1(.*\n)+.*Pascal VOC"):
        read(tmp_path / "old.json", "vott")
    write(tmp_path / "old.json", {"tags": [], "assets": {"x": {"asset": {}}}})
    with pytest.raises(FormatError, match=r"old\.json, x: an asset has no name"):
        read(tmp_path / "old.json", "vott")
    write(tmp_path / "old.json", {"tags": [], "assets": {"x": asset("b.png")}})
    with pytest.raises(InputError, match=r"image of the annotations is not there(.*\n)+.*b\.png"):
        read(tmp_path / "old.json", "vott")


@pytest.mark.parametrize(("name", "objects"), [("image", "annotations"), ("imagefilename", "annotation")])
def test_create_ml(name: str, objects: str, tmp_path: Path) -> None:
    photo(tmp_path / "train/a.png")
    photo(tmp_path / "valid/b.png")
    sides = {"x": 20, "y": 15, "width": 20, "height": 20}
    wrong = [
        {"label": "cat", "coordinates": {**sides, "x": "?"}},
        {"coordinates": sides},
        {"label": "cat", "coordinates": {**sides, "width": 0}},
    ]
    for split, file in (("train", "a.png"), ("valid", "b.png")):
        listed = [{"label": "cat", "coordinates": sides}, *(wrong if split == "train" else [])]
        write(tmp_path / split / "_annotations.createml.json", [{name: file, objects: listed}])
    read_objects = read(tmp_path, "createml")
    assert boxes(read_objects) == [(file, "cat", [10.0, 5.0, 30.0, 25.0]) for file in ("a.png", "b.png")]
    assert [one.split for one in read_objects.images] == ["train", "val"]
    assert [line.rpartition(", ")[2] for line in read_objects.problems[1:2]] == ["object 3: no label"]
    assert len(read_objects.problems) == 3
    data = AnnotatedDetection(tmp_path, split="val")
    assert data.class_names == ("cat",) and len(data) == 1


def test_a_file_of_create_ml_an_image(tmp_path: Path) -> None:
    for stem in ("train_1", "train_2"):
        photo(tmp_path / f"{stem}.png")
        write(tmp_path / f"{stem}.json", [{"image": f"{stem}.png", "verified": False, "annotations": []}])
    objects = read(tmp_path, "createml")
    assert [one.name for one in objects.images] == ["train_1.png", "train_2.png"]
    assert not any(one.split for one in objects.images)


@pytest.mark.parametrize("classes", [["dog", "cat", "none"], None])
def test_boxes_of_fiftyone(tmp_path: Path, classes: list[str] | None) -> None:
    photo(tmp_path / "data/a.png")
    photo(tmp_path / "data/b.png")
    cat, dog = (1, 0) if classes else ("cat", "dog")
    boxes_of_a = [
        {"label": cat, "bounding_box": [0.1, 0.2, 0.5, 0.4], "attributes": {"iscrowd": 1, "colour": "red"}},
        {"label": dog, "bounding_box": [0, 0, 1, 1]},
        {"label": dog, "bounding_box": [0, 0, 1]},
        {"label": 7, "bounding_box": [0, 0, 1, 1]},
        {"label": dog, "bounding_box": [0.5, 0.5, 0, 0.1]},
    ]
    write(tmp_path / "labels.json", {"classes": classes, "labels": {"a": boxes_of_a, "b": None}})
    objects = read(tmp_path, "fiftyone")
    assert boxes(objects) == [("a.png", "cat", [10, 10, 60, 30]), ("a.png", "dog", [0, 0, 100, 50])]
    crowd, other = objects.images[0].objects
    assert (crowd.is_valid, crowd.attributes, other.is_valid) == (False, {"colour": "red"}, True)
    assert objects.class_names == (tuple(classes) if classes else ("cat", "dog"))
    assert [one.name for one in objects.images] == ["a.png", "b.png"]
    assert [line.partition("object ")[2] for line in objects.problems] == [
        "3: dog: bounding_box is [0, 0, 1]",
        f"4: the class is 7, and there are {len(classes or ())}",
        "5: dog: [50.0, 25.0, 50.0, 30.0] has no area",
    ]
    write(tmp_path / "labels.json", {"classes": [], "labels": {"a": "cat"}})  # of images, not of objects
    with pytest.raises(FormatError, match="the file is not FiftyOne's"):
        read_set(tmp_path / "labels.json", "fiftyone")
