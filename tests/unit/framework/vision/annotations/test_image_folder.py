from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from detection.data.annotated import AnnotatedDetection
from framework.core.errors import FormatError, InputError
from framework.vision import image
from framework.vision.annotations.formats import detect_format, read_set
from framework.vision.annotations.image_folder import read_image_folder


def save(folder: Path, *lines: object) -> Path:
    image.write(folder / "a.jpg", np.full((50, 100, 3), 90, np.uint8))
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "metadata.jsonl").write_text(text, encoding="utf-8")
    return folder


def entry(boxes: object, **classes: object) -> object:
    return {"file_name": "a.jpg", "objects": {"bbox": boxes, **classes}}


def test_boxes_of_two_splits(tmp_path: Path):
    save(tmp_path / "train", entry([[10, 5, 20, 20], [0, 0, 5.5, 5]], category=[10, 2]))
    save(tmp_path / "validation", entry([], category=[]))
    assert detect_format(tmp_path) == "imagefolder"
    read = AnnotatedDetection(root=tmp_path, split="train")
    assert read.class_names == ("2", "10") and len(read) == 1
    assert read[0].boxes is not None and read[0].boxes.tolist() == [[10, 5, 30, 25], [0, 0, 5.5, 5]]
    assert read[0].labels is not None and read[0].labels.tolist() == [1, 0]
    both = read_set(tmp_path, "imagefolder")
    assert [(one.split, len(one.objects)) for one in both.images] == [("train", 2), ("val", 0)]


def test_names_and_what_is_left_out(tmp_path: Path):
    boxes = [[10, 5, 20, 20], [10, 5, 0, 20], [1, 2, 3], [0, 0, 5, 5]]
    save(tmp_path, entry(boxes, categories=["cat", "cat", "cat", ["dog"]]), {"file_name": "a.jpg"})
    read = read_image_folder(tmp_path)
    assert read.class_names == ("cat",) and [len(one.objects) for one in read.images] == [1, 0]
    assert [problem.partition(", object ")[2][0] for problem in read.problems] == ["2", "3", "4"]


def test_what_is_refused(tmp_path: Path):
    save(tmp_path, entry([[10, 5, 20, 20]], categories=[]))
    with pytest.raises(FormatError, match="line 1: the line has no image with boxes and as many classes"):
        read_image_folder(tmp_path)
    (tmp_path / "metadata.jsonl").write_text("{", encoding="utf-8")
    with pytest.raises(FormatError, match="line 1"):
        read_image_folder(tmp_path)
    save(tmp_path, {"file_name": "b.jpg"})
    with pytest.raises(InputError, match=r"an image of the annotations is not there(?s:.*)b\.jpg"):
        read_image_folder(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        read_image_folder(tmp_path / "none")
    (tmp_path / "metadata.jsonl").write_text('{"file_name": "a.jpg", "text": "a cat"}\n', encoding="utf-8")
    with pytest.raises(InputError, match="the format of these data is not known"):
        detect_format(tmp_path)
