"""Supervisely's projects, as its own package (6.74) writes them: what is read, told and refused."""

from __future__ import annotations

import base64
import io
import json
import math
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from framework.core.errors import FormatError, InputError
from framework.vision import image
from framework.vision.annotations.formats import detect_format, read_set

HEIGHT, WIDTH = 60, 80
MASK = np.zeros((20, 25), bool)
MASK[:, :20] = True
MASK[5:10, 5:15] = False


def pack(mask: np.ndarray, mode: str) -> str:
    """A mask as Supervisely packs it: a PNG with a palette, with alpha, or of grey, by zlib, in base64."""
    stored = Image.fromarray(mask.astype(np.uint8) * (1 if mode == "P" else 255))
    if mode == "P":
        stored.putpalette([0, 0, 0, 255, 255, 255])
    elif mode == "RGBA":
        colour = Image.new("RGBA", stored.size, (255, 0, 0, 255))
        colour.putalpha(stored)
        stored = colour
    file = io.BytesIO()
    stored.save(file, "PNG", **({"transparency": 0} if mode == "P" else {}))
    return base64.b64encode(zlib.compress(file.getvalue())).decode()


def shape(kind: str, label: str, **facts: object) -> Mapping[str, object]:
    return {"classTitle": label, "geometryType": kind, "tags": [], **facts}


def write_dataset(folder: Path, objects: Mapping[str, list[Mapping[str, object]]]) -> None:
    for name, listed in objects.items():
        (folder / "img").mkdir(parents=True, exist_ok=True)
        (folder / "ann").mkdir(parents=True, exist_ok=True)
        image.write(folder / "img" / name, np.full((HEIGHT, WIDTH, 3), 90, np.uint8))
        data = {"description": "", "size": {"height": HEIGHT, "width": WIDTH}, "tags": [], "objects": listed}
        (folder / "ann" / f"{name}.json").write_text(json.dumps(data), encoding="utf-8")


def write_meta(folder: Path, *classes: tuple[str, str]) -> None:
    entries = [{"title": title, "shape": kind, "color": "#450F8A"} for title, kind in classes]
    (folder / "meta.json").write_text(json.dumps({"classes": entries, "tags": []}), encoding="utf-8")


def test_all_shapes_of_a_project(tmp_path: Path) -> None:
    square = {"exterior": [[10, 10], [60, 10], [60, 50], [10, 50]]}
    hole = [[[20, 20], [30, 20], [30, 30], [20, 30]]]
    corners = {"exterior": [[40, 25], [10, 5]], "interior": []}  # in any order
    objects = [
        shape("rectangle", "dog", points=corners, tags=[{"name": "occluded"}, {"name": "count", "value": 3}]),
        shape("polygon", "Katze ü", points={**square, "interior": []}),
        shape("polygon", "Katze ü", points={**square, "interior": hole}),
        *(shape("bitmap", "blob", bitmap={"origin": [15, 10], "data": pack(MASK, mode)}) for mode in "LP"),
        shape("bitmap", "blob", bitmap={"origin": [15, 10], "data": pack(MASK, "RGBA")}),
        shape("oriented_bbox", "turned", points=[[20, 10], [59, 29]], angle=math.pi / 2),
        shape("multipolygon", "dog", parts=[square, {"exterior": [[70, 10], [75, 10], [75, 20]]}]),
        shape("point", "tip", points={"exterior": [[5, 6]]}),
        shape("rectangle", "dog", points={"exterior": [[5, 6]]}),
        shape("bitmap", "blob", bitmap={"origin": [15, 10], "data": "AAAA"}),
        shape("mask_3d", "blob"),
        shape("rectangle", "dog\udce9", points=corners),
    ]
    write_dataset(tmp_path / "train", {"a.png": objects, "leer ü.png": []})
    write_dataset(tmp_path / "val", {"a.png": objects[:1]})
    write_meta(
        tmp_path, ("turned", "oriented_bbox"), ("tip", "point"), ("dog", "rectangle"), ("none", "polygon")
    )
    assert detect_format(tmp_path) == "supervisely"
    read = read_set(tmp_path, "supervisely")
    assert [(one.name, one.split, len(one.objects)) for one in read.images] == [
        ("a.png", "train", 8),
        ("leer ü.png", "train", 0),
        ("a.png", "val", 1),
    ]
    assert read.class_names == ("turned", "dog", "none", "Katze ü", "blob")
    found = read.images[0].objects
    size_hw = (HEIGHT, WIDTH)
    # The last row and column are inside of a rectangle, as Rectangle.area of Supervisely counts them.
    assert found[0].box == (10, 5, 41, 26) and found[0].fill(size_hw).sum() == 651
    assert found[0].attributes == {"occluded": "1", "count": "3"}
    assert [one.fill(size_hw).sum() for one in found[1:3]] == [2000, 1900]
    for one in found[3:6]:
        assert one.box == (15, 10, 35, 30)
        assert (one.fill(size_hw)[10:30, 15:40] == MASK).all() and one.fill(
            size_hw
        ).sum() == MASK.sum() == 350
    assert np.allclose(found[6].box, (30, 0, 50, 40)) and len(found[6].outlines[0]) == 4
    assert len(found[7].outlines) == 2 and found[7].box == (10, 10, 75, 50)
    assert [line.rpartition("/")[2] for line in read.problems] == [
        "a.png.json, object 10 (rectangle): 1 points, but a rectangle has two",
        "a.png.json, object 11 (bitmap): the image is not of a known format",
        "a.png.json, object 12 (mask_3d): blob: this kind of object is not read",
        "a.png.json, object 13 (rectangle): its class or a tag is no valid Unicode",
        "1 x point tip, which has no area",
    ]


def test_rectangles_with_fractions_are_edges(tmp_path: Path) -> None:
    corners = [[[10.5, 5], [40, 25]], [[1, 2], [3, 4]]]
    write_dataset(
        tmp_path, {"a.png": [shape("rectangle", "dog", points={"exterior": one}) for one in corners]}
    )
    read = read_set(tmp_path, detect_format(tmp_path))  # one data set, without meta.json
    assert [one.box for one in read.images[0].objects] == [(10.5, 5, 40, 25), (1, 2, 3, 4)]
    assert read.class_names == ("dog",)


def test_a_size_that_no_image_has_is_not_believed(tmp_path: Path) -> None:
    square = {"exterior": [[10, 10], [60, 10], [60, 50]], "interior": [[[30, 15], [50, 15], [50, 30]]]}
    write_dataset(tmp_path, {"a.png": [shape("polygon", "dog", points=square)]})
    file = tmp_path / "ann/a.png.json"
    file.write_text(file.read_text(encoding="utf-8").replace(str(WIDTH), "34294967296"), encoding="utf-8")
    read = read_set(tmp_path, "supervisely")
    assert read.images[0].size_hw == (HEIGHT, WIDTH)
    assert len(read.notes) == 1 and "that of a.png is taken" in read.notes[0]


def test_data_sets_inside_of_others_keep_their_images_apart(tmp_path: Path) -> None:
    box = shape("rectangle", "dog", points={"exterior": [[1, 2], [3, 4]]})
    for folder in ("north", "north/datasets/old"):
        write_dataset(tmp_path / folder, {"a.png": [box]})
    write_meta(tmp_path, ("dog", "rectangle"))
    read = read_set(tmp_path, detect_format(tmp_path))
    assert [(one.name, one.split) for one in read.images] == [("north/a.png", ""), ("north/old/a.png", "")]


def test_what_is_no_project_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no annotations of Supervisely"):
        read_set(tmp_path, "supervisely")
    write_dataset(tmp_path, {"a.png": []})
    (tmp_path / "ann/b.png.json").write_text("[]", encoding="utf-8")
    with pytest.raises(FormatError, match=r"b\.png\.json: the file is not Supervisely's"):
        read_set(tmp_path, "supervisely")
    (tmp_path / "ann/b.png.json").unlink()
    (tmp_path / "img/a.png").unlink()
    with pytest.raises(InputError, match="an image of the annotations is not there"):
        read_set(tmp_path, "supervisely")
