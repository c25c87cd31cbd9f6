"""Ultralytics' NDJSON: what is read, told and refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import FormatError, InputError
from framework.vision import image
from framework.vision.annotations.formats import detect_format, read_set
from framework.vision.annotations.ultralytics import read_ultralytics

NAMES = {"0": "cat", "1": "dog", "10": "none"}


def write_set(folder: Path, task: str, *lines: tuple[str, str, dict[str, object]]) -> Path:
    """An image of 100 x 50 for each line, which has a name, a split and annotations."""
    rows: list[object] = [{"type": "dataset", "task": task, "name": "mine", "class_names": NAMES}]
    for name, split, objects in lines:
        facts = {"type": "image", "file": name, "url": f"https://x/{name}", "width": 100, "height": 50}
        rows.append({**facts, "split": split, "annotations": objects})
        if not name.startswith("gone"):
            (folder / "images" / split).mkdir(parents=True, exist_ok=True)
            image.write(folder / "images" / split / name, np.full((50, 100, 3), 90, np.uint8))
    file = folder / "mine.ndjson"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return file


def test_boxes_of_splits(tmp_path: Path) -> None:
    boxes = [
        [1, 0.5, 0.5, 0.2, 0.4],
        [7, 0.95, 0.5, 0.2, 0.4],
        [0, 0.5, 0.5, 0, 0.4],
        [0, 0.5],
        [0.5, 0, 0, 1, 1],
    ]
    file = write_set(
        tmp_path,
        "detect",
        ("a.png", "train", {"boxes": boxes}),
        ("a.png", "val", {"boxes": []}),
        ("gone.png", "val", {"boxes": [[0, 0.5, 0.5, 1, 1]]}),
    )
    assert detect_format(tmp_path) == detect_format(file) == "ultralytics"
    read = read_set(tmp_path, "ultralytics")
    assert [(one.name, one.split) for one in read.images] == [("train/a.png", "train"), ("val/a.png", "val")]
    found = [(one.label, [round(side, 6) for side in one.box]) for one in read.images[0].objects]
    assert found == [("dog", [40, 15, 60, 35]), ("7", [85, 15, 100, 35])]
    assert read.class_names == ("cat", "dog", "none", "7")
    assert [line.replace(str(file), "").strip(",: ") for line in read.problems] == [
        "line 2, object 3 (boxes): cat: [50.0, 15.0, 50.0, 35.0] has no area",
        "line 2, object 4 (boxes): the values are [0, 0.5]",
        "line 2, object 5 (boxes): the values are [0.5, 0, 0, 1, 1]",
        f"1 images are not in {tmp_path}: gone.png",
    ]


@pytest.mark.parametrize("kind", ["segments", "obb"])
def test_outlines(tmp_path: Path, kind: str) -> None:
    square = [0, 0.1, 0.2, 0.5, 0.2, 0.5, 0.6, 0.1, 0.6]
    task = "segment" if kind == "segments" else "obb"
    write_set(tmp_path, task, ("a.png", "train", {kind: [square, [*square, 0.3]]}))
    read = read_set(tmp_path, "ultralytics")
    (one,) = read.images[0].objects
    assert one.outlines[0].tolist() == [[10, 10], [50, 10], [50, 30], [10, 30]]
    assert "9 numbers are no points" in read.problems[0]


def test_poses_are_boxes_with_a_note(tmp_path: Path) -> None:
    write_set(tmp_path, "pose", ("a.png", "train", {"pose": [[0, 0.5, 0.5, 0.2, 0.4, 0.5, 0.5, 2]]}))
    read = read_set(tmp_path, "ultralytics")
    assert np.allclose(read.images[0].objects[0].box, (40, 15, 60, 35))
    assert read.notes == ("1 times: keypoints behind a box are not read",)


def test_faults(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the data set has no objects(?s:.)*task classify"):
        read_ultralytics(write_set(tmp_path, "classify", ("a.png", "train", {"classification": [0]})))
    with pytest.raises(InputError, match=r"none of the images is there(?s:.)*addresses are not opened"):
        read_ultralytics(write_set(tmp_path, "detect", ("gone.png", "train", {})))
    (tmp_path / "mine.ndjson").write_text('{"type": "image"}\n', encoding="utf-8")
    with pytest.raises(FormatError, match="the file is not Ultralytics'"):
        read_ultralytics(tmp_path / "mine.ndjson")
