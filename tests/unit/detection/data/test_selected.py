"""Some of the classes of COCO's files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from detection.data.coco import CocoDetection
from framework.core.errors import ConfigError, InputError
from framework.vision import image


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two images: a cat, a dog and a bird, and a dog alone."""
    for number in (1, 2):
        image.write(tmp_path / f"{number}.png", np.zeros((20, 20, 3), np.uint8))
    objects = [(1, 7), (1, 3), (1, 9), (2, 3)]
    data = {
        "images": [{"id": n, "file_name": f"{n}.png", "height": 20, "width": 20} for n in (1, 2)],
        "categories": [{"id": 3, "name": "dog"}, {"id": 7, "name": "cat"}, {"id": 9, "name": "bird"}],
        "annotations": [
            {"id": n, "image_id": one, "category_id": kind, "bbox": [n, n, 5, 5], "area": 20 + n}
            for n, (one, kind) in enumerate(objects)
        ],
    }
    (tmp_path / "a.json").write_text(json.dumps(data), encoding="utf-8")
    return tmp_path


def test_objects_of_other_classes_are_left_out(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    dataset = CocoDetection(root, Path("a.json"), classes=("cat", "bird"))
    assert dataset.class_names == ("cat", "bird") and dataset.category_ids == (7, 9)
    first, second = dataset[0], dataset[1]
    assert first.labels is not None and first.labels.tolist() == [0, 1]
    assert first.boxes is not None and first.boxes[:, 0].tolist() == [0, 2]
    assert first.areas is not None and first.areas.tolist() == [20, 22]
    assert second.boxes is not None and len(second.boxes) == 0  # the image stays, as background
    assert "2 objects of other classes are left out: dog 2" in caplog.text


def test_a_class_without_an_object_and_a_slip(root: Path) -> None:
    assert CocoDetection(root, Path("a.json"), classes=("dog", "horse")).category_ids == ()
    with pytest.raises(InputError, match=r"no object is of the class 'dogs'(?s:.)*did you mean 'dog'"):
        len(CocoDetection(root, Path("a.json"), classes=("dogs",)))
    with pytest.raises(ConfigError, match=r"CocoDetection\.classes"):
        CocoDetection(root, Path("a.json"), classes=("dog", "dog"))
