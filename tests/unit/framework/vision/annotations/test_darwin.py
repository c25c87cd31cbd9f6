"""V7's Darwin JSON, 2.0 and 1.0. That paths are filled by the even-odd rule is what darwin-py 3.6 does."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import FormatError, InputError
from framework.vision import image
from framework.vision.annotations.darwin import read_darwin
from framework.vision.annotations.formats import detect_format, read_set

HEIGHT, WIDTH = 60, 80
SIZE_HW = (HEIGHT, WIDTH)


def write_image(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.write(path, np.full((HEIGHT, WIDTH, 3), 90, np.uint8))


def square(x0: float, y0: float, x1: float, y1: float) -> list[dict[str, float]]:
    return [{"x": x, "y": y} for x, y in ((x0, y0), (x1, y0), (x1, y1), (x0, y1))]


def shape(name: str, key: str = "", **facts: object) -> Mapping[str, object]:
    return {"id": key or name, "name": name, "slot_names": ["0"], "properties": [], "annotators": [], **facts}


def write_item(
    file: Path,
    annotations: Sequence[Mapping[str, object]],
    *,
    name: str = "a.png",
    folder: str = "/",
    kind: str = "image",
) -> None:
    slot = {"type": kind, "slot_name": "0", "width": WIDTH, "height": HEIGHT}
    sources = {"source_files": [{"file_name": "DSC_1.png", "url": "https://darwin.v7labs.com/1"}]}
    item = {"name": name, "path": folder, "slots": [{**slot, **sources}]}
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"version": "2.0", "item": item, "annotations": annotations})
    file.write_text(text, encoding="utf-8")


def test_all_shapes(tmp_path: Path) -> None:
    layer = np.zeros(SIZE_HW, int)
    layer[5:10, 3:13], layer[20:24, 3:5] = 7, 2
    runs = [int(one) for value in layer.ravel() for one in (value, 1)]
    numbers = {"blob-1": 7, "blob-2": 2, "blob-3": 9}
    box = {"x": 10.5, "y": 5, "w": 20, "h": 8}
    annotations = [
        shape(
            " Katze ü ", bounding_box=box, properties=[{"name": "state", "value": "ok"}], attributes=["wet"]
        ),
        shape("leaf", polygon={"paths": [square(10, 10, 60, 50)]}, bounding_box=box),
        shape("leaf", polygon={"paths": [square(10, 10, 60, 50), square(20, 20, 30, 30)]}, bounding_box=box),
        shape("leaf", polygon={"paths": [square(10, 10, 20, 20), square(40, 10, 50, 20)]}),
        shape(
            "egg",
            ellipse={"angle": math.pi / 2, "center": {"x": 40, "y": 30}, "radius": {"x": 20, "y": 10}},
        ),
        shape("blob", "blob-1", mask={"sparse_rle": None}),
        shape("blob", "blob-2", mask={"sparse_rle": None}),
        shape(
            "__raster_layer__",
            raster_layer={"dense_rle": runs, "mask_annotation_ids_mapping": numbers, "total_pixels": 4800},
        ),
        shape("indoor", tag={}),
        shape("tip", keypoint={"x": 1, "y": 2}),
        {**shape("leaf", bounding_box=box), "slot_names": ["1"]},
        shape("leaf", bounding_box={"x": 1, "y": 2, "w": 0, "h": 5}),
        shape("blob", "blob-3", mask={"sparse_rle": None}),
        shape("blob", "blob-4", mask={"sparse_rle": None}),
        shape("leaf", polygon={"paths": []}),
        shape("", bounding_box=box),
    ]
    write_item(tmp_path / "a.json", annotations, name="a.jpg")  # as darwin-py stores it: a.png
    write_image(tmp_path / "images" / "a.png")
    assert detect_format(tmp_path) == detect_format(tmp_path / "a.json") == "darwin"
    read = read_set(tmp_path, "darwin")
    assert read.class_names == ("Katze ü", "blob", "egg", "leaf")
    (only,) = read.images
    assert (only.name, only.size_hw, len(only.objects)) == ("a.png", SIZE_HW, 7)
    found = only.objects
    assert found[0].box == (10.5, 5, 30.5, 13) and found[0].attributes == {"state": "ok", "wet": "1"}
    assert [one.fill(SIZE_HW).sum() for one in found[1:4]] == [2000, 1900, 200]
    assert [len(one.outlines) for one in found[1:4]] == [1, 0, 2]
    assert np.allclose(found[4].box, (30, 10, 50, 50), atol=0.1)
    assert [(one.box, one.fill(SIZE_HW).sum()) for one in found[5:]] == [
        ((3, 5, 13, 10), 50),
        ((3, 20, 5, 24), 8),
    ]
    assert [line.rpartition("a.json, ")[2] for line in read.problems] == [
        "annotation 12 (bounding_box): leaf: [1.0, 2.0, 1.0, 7.0] has no area",
        "annotation 13 (mask): the mask has no pixel",
        "annotation 14 (mask): no raster_layer has its pixels",
        "annotation 15 (polygon): leaf: no path",
        "annotation 16 (bounding_box): its class is ''",
        "1 x keypoint tip, which has no area",
        "1 x annotation of a further slot of an item",
    ]
    assert read.notes == ("1 x tag indoor, which is of no object",)


def test_folders_of_items_and_of_releases(tmp_path: Path) -> None:
    one = [shape("cat", bounding_box={"x": 1, "y": 2, "w": 3, "h": 4})]
    release = tmp_path / "releases" / "latest" / "annotations"
    for folder in ("north", "süd"):
        write_item(release / folder / "a.json", one, folder=f"/{folder}")
        write_image(tmp_path / "images" / folder / "a.png")
    read = read_set(tmp_path, detect_format(tmp_path))
    assert [(one.name, len(one.objects)) for one in read.images] == [("north/a.png", 1), ("süd/a.png", 1)]
    assert [one.name for one in read_darwin(release).images] == ["north/a.png", "süd/a.png"]


def test_splits(tmp_path: Path) -> None:
    for split, label in (("train", "cat"), ("valid", "dog")):
        shapes = [shape(label, bounding_box={"x": 1, "y": 2, "w": 3, "h": 4})]
        write_item(tmp_path / split / "annotations" / "a.json", shapes)
        write_image(tmp_path / split / "images" / "a.png")
    read = read_set(tmp_path, detect_format(tmp_path))
    assert [(one.split, one.objects[0].label) for one in read.images] == [("train", "cat"), ("val", "dog")]


def test_first_version(tmp_path: Path) -> None:
    paths = {"path": square(10, 10, 60, 50), "additional_paths": [square(20, 20, 30, 30)]}
    complex_one = {"path": [square(10, 10, 60, 50), square(20, 20, 30, 30)]}
    annotations = [
        {"name": "leaf", "polygon": paths, "bounding_box": {"x": 10, "y": 10, "w": 50, "h": 40}},
        {"name": "leaf", "complex_polygon": complex_one},
        {"name": "cat", "bounding_box": {"x": 1, "y": 2, "w": 3, "h": 4}},
    ]
    facts = {
        "width": WIDTH,
        "height": HEIGHT,
        "filename": "0001.png",
        "original_filename": "a.png",
        "url": "",
    }
    entry = {"dataset": "d", "image": facts, "annotations": annotations}
    (tmp_path / "a.json").write_text(json.dumps(entry), encoding="utf-8")
    write_image(tmp_path / "0001.png")
    read = read_set(tmp_path, detect_format(tmp_path))
    assert [one.fill(SIZE_HW).sum() for one in read.images[0].objects] == [1900, 1900, 12]


def test_what_is_not_read(tmp_path: Path) -> None:
    write_item(tmp_path / "a.json", [], kind="video")
    with pytest.raises(InputError, match="the annotations are of videos, which are not read"):
        read_darwin(tmp_path)
    write_item(tmp_path / "b.json", [], name="b.png")
    with pytest.raises(InputError, match="an image of the annotations is not there"):
        read_darwin(tmp_path)
    write_image(tmp_path / "b.png")
    read = read_darwin(tmp_path)
    assert [one.name for one in read.images] == ["b.png"]
    assert read.problems == ("1 x video, whose frames are no images",)
    (tmp_path / "c.json").write_text("[]", encoding="utf-8")
    with pytest.raises(FormatError, match="the file is not V7's"):
        read_darwin(tmp_path)
    with pytest.raises(InputError, match="there are no annotations of V7"):
        read_darwin(tmp_path / "none")


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([1, 4], r"dense_rle has 4 pixels, and the image 4800"),
        ([1, 2, 3], "dense_rle are no pairs of a number and a count"),
        ([1, -4], "dense_rle are no pairs"),
        (None, "dense_rle has 0 pixels"),
    ],
)
def test_damaged_masks(tmp_path: Path, runs: object, message: str) -> None:
    layer = {"dense_rle": runs, "mask_annotation_ids_mapping": {"blob": 1}}
    write_item(tmp_path / "a.json", [shape("blob", mask={}), shape("layer", raster_layer=layer)])
    write_image(tmp_path / "a.png")
    (problem,) = read_darwin(tmp_path).problems
    assert message in problem
