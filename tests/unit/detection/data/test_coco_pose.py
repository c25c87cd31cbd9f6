"""detection.data.coco_pose: what a small file becomes, real files with other keypoints, and every message."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detection.data.coco_pose import CocoPose
from detection.data.keypoints import COCO_KEYPOINTS
from framework.core.errors import InputError
from framework.vision import image

SHARED = Path(os.environ.get("OAR_SHARED", Path(__file__).resolve().parents[5] / "shared")) / "data"
SAMPLES = SHARED / "keypoints_samples"
NAMES = ("nose", "left_eye", "right_eye")


def content() -> dict[str, Any]:
    """Image 9 with a crowd, a person, one without keypoints; image 5 empty; image 4 with a person without a box."""
    crowd = {"size": [20, 30], "counts": [0, 40, 560]}  # the two columns on the left
    ring = [[10, 10, 14, 10, 14, 14, 10, 14]]
    return {
        "images": [
            {"id": 9, "file_name": "nine.png", "height": 20, "width": 30},
            {"id": 5, "file_name": "five.png"},
            {"id": 4, "file_name": "four.png", "height": 10, "width": 10},
        ],
        "categories": [{"id": 1, "name": "person", "keypoints": list(NAMES), "skeleton": [[1, 2], [1, 3]]}],
        "annotations": [
            annotation(1, 9, [0, 0, 2, 20], [0] * 9, iscrowd=1, segmentation=crowd),
            annotation(2, 9, [3, 4, 10, 5], [5, 6, 2, 0, 0, 0, 9, 6, 1], segmentation=ring),
            annotation(3, 9, [10, 10, 4, 4], [0] * 9, segmentation=ring),
            annotation(4, 9, [20, 10, 5, 4.6], [0] * 9),
            annotation(5, 9, [0, 0, 0, 4], [1, 1, 2] * 3),
            {"id": 6, "image_id": 4, "category_id": 1, "keypoints": [1, 2, 2, 4, 8, 1, 9, 9, 0]},
        ],
    }


def annotation(
    number: int, source_image: int, box: list[float], keypoints: list[int], **more: Any
) -> dict[str, Any]:
    return {
        "id": number,
        "image_id": source_image,
        "category_id": 1,
        "bbox": box,
        "keypoints": keypoints,
        **more,
    }


def written(folder: Path, data: Any, **options: Any) -> CocoPose:
    for name, size in (("nine", (20, 30)), ("five", (6, 6)), ("four", (10, 10))):
        image.write(folder / f"{name}.png", np.zeros((*size, 3), np.uint8))
    (folder / "file.json").write_text(json.dumps(data), encoding="utf-8")
    return CocoPose(folder, Path("file.json"), **options)


def test_whole_images(tmp_path: Path) -> None:
    dataset = written(tmp_path, content())
    assert len(dataset) == 3 and [sample.id for sample in dataset] == [4, 5, 9]
    assert (dataset.class_names, dataset.object_name, dataset.category_ids) == (NAMES, "person", (1,))
    assert dataset.skeleton == ((0, 1), (0, 2)) and "annotation 5 on image 9" in dataset.problems[0]
    four, five, nine = dataset
    assert four.keypoints.tolist() == [[[1.5, 2.5, 2], [4.5, 8.5, 1], [0, 0, 0]]]
    assert four.boxes.tolist() == [[1.5, 2.5, 4.5, 8.5]]  # the bounds of its keypoints
    assert four.areas.tolist() == [pytest.approx(0.53 * 3 * 6)] and four.mask.all()
    assert five.keypoints.shape == (0, 3, 3) and five.mask.shape == (6, 6) and five.mask.all()
    assert nine.valid.tolist() == [False, True, True, True]
    hidden = np.zeros((20, 30), bool)
    hidden[:, :2] = hidden[10:14, 10:14] = True
    hidden[10:15, 20:25] = True  # of the one without a segmentation, its box, rounded
    assert (nine.mask == ~hidden).all()
    people = written(tmp_path, content(), people_only=True)
    assert [sample.id for sample in people] == [4, 9]


def test_one_sample_a_person(tmp_path: Path) -> None:
    dataset = written(tmp_path, content(), per_person=True)
    first, second = dataset
    assert (first.id, second.id) == (4, 9) and first.mask is None
    assert second.boxes.tolist() == [[3, 4, 13, 9]] and second.image.shape == (20, 30, 3)
    assert second.keypoints.tolist() == [[[5.5, 6.5, 2], [0, 0, 0], [9.5, 6.5, 1]]]
    assert dataset[-1].id == 9 and pickle.loads(pickle.dumps(dataset))[1].id == 9
    with pytest.raises(IndexError):
        dataset[2]


def test_keypoints_may_be_stated_and_unnamed(tmp_path: Path) -> None:
    assert written(tmp_path, content(), keypoints=NAMES).class_names == NAMES
    absent = CocoPose(tmp_path, Path("elsewhere.json"), keypoints="coco")
    assert absent.class_names == COCO_KEYPOINTS  # without the file
    with pytest.raises(InputError, match=r"elsewhere\.json"):
        len(absent)
    for stated in (("nose", "eye", "ear"), NAMES[:2], "coco"):
        with pytest.raises(
            InputError, match=r"other keypoints than were stated(?s:.)*3 keypoints, nose, left_eye"
        ):
            len(written(tmp_path, content(), keypoints=stated))
    data = content()
    del data["categories"][0]["keypoints"], data["categories"][0]["skeleton"]
    dataset = written(tmp_path, data)
    assert dataset.class_names == ("keypoint_0", "keypoint_1", "keypoint_2") and dataset.skeleton == ()
    assert written(tmp_path, data, keypoints=NAMES).skeleton == ((0, 1), (0, 2), (1, 2))


def test_a_skeleton_of_other_keypoints_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = content()
    data["categories"][0]["skeleton"] = [[1, 2], [3, 4]]
    assert written(tmp_path, data).skeleton == ((0, 1), (0, 2), (1, 2))
    assert "lines to keypoints that are not there" in caplog.text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"annotations": []}, "no object has keypoints"),
        ({"annotations": [annotation(1, 9, [0, 0, 4, 4], [0] * 9)]}, "no object has keypoints"),
        (
            {"annotations": [annotation(1, 9, [0, 0, 4, 4], [1, 1, 2] * 3, iscrowd=1)]},
            "no object has keypoints",
        ),
        (
            {
                "annotations": [{"id": 1, "image_id": 9, "category_id": 1}],
                "categories": [{"id": 1, "name": "a"}],
            },
            "there are no keypoints",
        ),
        ({"annotations": [annotation(1, 9, [0, 0, 4, 4], [1] * 6)]}, "6 values(?s:.)*9 numbers"),
        (
            {
                "annotations": [
                    annotation(1, 9, [0, 0, 4, 4], [0] * 9, segmentation=[[1, "x"]]),
                    annotation(2, 9, [0, 0, 4, 4], [1, 1, 2] * 3),
                ]
            },
            "annotation 1: a segmentation cannot be drawn",
        ),
        (
            {"categories": [{"id": 1, "name": "a", "keypoints": ["x"] * 3, "skeleton": [3]}]},
            "must be a list of lines",
        ),
        ({"annotations": [annotation(1, 8, [0, 0, 4, 4], [1] * 9)]}, "annotation 1 has image_id 8"),
    ],
)
def test_errors(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        len(written(tmp_path, {**content(), **change}))


def test_a_segmentation_of_another_size(tmp_path: Path) -> None:
    data = content()
    data["annotations"][0]["segmentation"] = {"size": [2, 3], "counts": [6]}
    dataset = written(tmp_path, data)
    with pytest.raises(InputError, match=r"image 9(?s:.)*2 high and 3 wide(?s:.)*20 high and 30 wide"):
        dataset[2]
    data["annotations"][0]["segmentation"] = {"size": [20, 30], "counts": "\u00e4"}
    with pytest.raises(InputError, match="annotation 1: a segmentation cannot be drawn"):
        written(tmp_path, data)[2]


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no keypoints_samples in the shared data")
@pytest.mark.parametrize(
    ("folder", "file", "images", "people", "keypoints", "name", "lines"),
    [
        ("coco", "test_coco.json", 4, 12, 17, "person", 19),
        ("crowdpose", "test_crowdpose.json", 2, 4, 14, "person", 15),
        ("mpii", "test_mpii_trb.json", 5, 5, 40, "person", 15),
        ("ochuman", "test_ochuman.json", 3, 5, 17, "person", 19),
        ("onehand10k", "test_onehand10k.json", 4, 4, 21, "hand", 20),
        ("wflw", "test_wflw.json", 2, 4, 98, "face", 0),
        ("posetrack18", "annotations/test_posetrack18_val.json", 3, 14, 17, "person", 19),
    ],
)
def test_real_files(
    folder: str, file: str, images: int, people: int, keypoints: int, name: str, lines: int
) -> None:
    dataset = CocoPose(SAMPLES / folder, Path(file))
    assert (len(dataset), len(dataset.class_names), dataset.object_name) == (images, keypoints, name)
    assert len(dataset.skeleton) == lines and dataset.category_ids == (1,)
    sample = dataset[0]
    assert sample.keypoints.shape == (len(sample.boxes), keypoints, 3) and sample.mask.shape == sample.size_hw
    single = CocoPose(SAMPLES / folder, Path(file), per_person=True)
    assert len(single) == people and single[people - 1].keypoints.shape == (1, keypoints, 3)
