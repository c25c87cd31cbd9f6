"""detection.data.coco: what a small file becomes, and every message."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from detection.data.check import validate
from detection.data.coco import CocoDetection
from detection.data.known_classes import COCO_CATEGORY_IDS, COCO_CLASSES, KNOWN_CLASSES
from framework.core.errors import FormatError, InputError
from framework.vision import image
from framework.vision.annotations.coco import read_coco

SHARED = Path(os.environ.get("OAR_SHARED", Path(__file__).resolve().parents[5] / "shared")) / "data"


def content() -> dict[str, Any]:
    """Images 9 and 4 in this order, categories 7 "dog" and 3 "cat"; 4 has no box."""
    return {
        "images": [
            {"id": 9, "file_name": "nine.png", "height": 20, "width": 30},
            {"id": 4, "file_name": "four.png", "height": 10, "width": 10},
        ],
        "categories": [{"id": 7, "name": "dog"}, {"id": 3, "name": "cat"}],
        "annotations": [
            {"id": 1, "image_id": 9, "category_id": 7, "bbox": [1.5, 2, 10, 5], "area": 33, "iscrowd": 0},
            {"id": 2, "image_id": 9, "category_id": 3, "bbox": [0, 0, 30, 20], "iscrowd": 1},
            {"id": 3, "image_id": 9, "category_id": 3, "bbox": [5, 5, 0, 4], "area": 0, "iscrowd": 0},
        ],
    }


def written(folder: Path, data: Any) -> CocoDetection:
    (folder / "images").mkdir(exist_ok=True)
    image.write(folder / "images" / "nine.png", np.full((20, 30, 3), 9, np.uint8))
    image.write(folder / "images" / "four.png", np.full((10, 10, 3), 4, np.uint8))
    text = data if isinstance(data, str) else json.dumps(data)
    (folder / "file.json").write_text(text, encoding="utf-8")
    return CocoDetection(folder, Path("file.json"), "images")


def test_what_a_file_becomes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    dataset = written(tmp_path, content())
    with caplog.at_level(logging.WARNING, logger="oar"):
        assert len(dataset) == 2
    assert (dataset.class_names, dataset.category_ids) == (("cat", "dog"), (3, 7))
    empty, full = dataset[0], dataset[1]
    assert (empty.id, full.id) == (4, 9)
    assert empty.boxes is not None and empty.boxes.shape == (0, 4) and empty.image[0, 0].tolist() == [4, 4, 4]
    assert (
        full.boxes is not None
        and full.labels is not None
        and full.valid is not None
        and full.areas is not None
    )
    assert full.boxes.tolist() == [[1.5, 2, 11.5, 7], [0, 0, 30, 20]] and full.boxes.dtype == np.float32
    assert full.labels.tolist() == [1, 0] and full.valid.tolist() == [True, False]
    assert full.areas.tolist() == [33, 600] and full.keypoints is None
    assert dataset.problems == ("annotation 3 on image 9: box [5, 5, 0, 4] has no area",)
    assert "1 entries are left out: annotation 3" in caplog.text


def test_objects_to_ignore_are_neither_learnt_nor_missed(tmp_path: Path) -> None:
    data = content()
    data["annotations"][0]["ignore"] = 1
    data["annotations"][1] |= {"iscrowd": 0, "ignore": 0}
    valid = written(tmp_path, data)[1].valid
    assert valid is not None and valid.tolist() == [False, True]
    images = read_coco(tmp_path / "file.json", tmp_path / "images").images
    assert [one.is_valid for image in images for one in image.objects] == [False, True]


def test_an_image_with_two_entries_of_other_objects(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As files of several annotators have it: what one has drawn is background in the other's entry."""
    data = content()
    data["images"].append({"id": 11, "file_name": "nine.png", "height": 20, "width": 30})
    more = {**data["annotations"][0], "id": 9, "image_id": 11}
    dataset = written(tmp_path, {**data, "annotations": [*data["annotations"], more]})
    with caplog.at_level(logging.WARNING, logger="oar"):
        assert "1 images have several entries with other objects" in dataset.problems[-1]
    assert "nine.png" in dataset.problems[-1] and "has is background in the others" in caplog.text
    same = [{**one, "id": 20 + one["id"], "image_id": 11} for one in data["annotations"]]
    repeated = written(tmp_path, {**data, "annotations": [*data["annotations"], *same]})
    assert len(repeated) == 3 and not any("several entries" in line for line in repeated.problems)


def test_sizes_need_not_be_stated_and_annotations_may_be_missing(tmp_path: Path) -> None:
    data = content()
    del data["annotations"], data["images"][0]["height"]
    dataset = written(tmp_path, data)
    assert [len(sample.boxes) for sample in dataset] == [0, 0]  # pyright: ignore[reportArgumentType]
    assert dataset.problems == ()


def test_keypoints(tmp_path: Path) -> None:
    data = content()
    data["annotations"][0]["keypoints"] = [3, 4, 2, 0, 0, 0]
    sample = CocoDetection(written(tmp_path, data).root, Path("file.json"), "images", keypoints=True)[1]
    assert sample.keypoints is not None and sample.keypoints.dtype == np.float32
    assert sample.keypoints.tolist() == [[[3.5, 4.5, 2], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]]


@pytest.mark.parametrize(
    ("keypoints", "categories", "message"),
    [
        ([None, None], [], "there are no keypoints(?s:.)*leave keypoints out"),
        ([[1] * 6, [1] * 9], [], r"not the same number(?s:.)*\[2, 3\] keypoints"),
        ([[1] * 6], ["a", "b", "c"], "annotation 1: (?s:.)*6 values(?s:.)*9 numbers"),
        ([["x"] * 6], [], "annotation 1: an annotation has other keypoints"),
        ([5, None], [], "annotations number 1: the field 'keypoints' is of the wrong type(?s:.)*a list"),
    ],
)
def test_wrong_keypoints(tmp_path: Path, keypoints: list[Any], categories: list[str], message: str) -> None:
    data = content()
    for one, value in zip(data["annotations"], keypoints):
        one["keypoints"] = value
    if categories:
        data["categories"][0]["keypoints"] = categories
    written(tmp_path, data)
    with pytest.raises(InputError, match=message):
        len(CocoDetection(tmp_path, Path("file.json"), "images", keypoints=True))


def changed(path: str, value: Any) -> dict[str, Any]:
    data = content()
    *way, last = [int(part) if part.isdecimal() else part for part in path.split(".")]
    place: Any = data
    for part in way:
        place = place[part]
    place[last] = value
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            changed("annotations.1.category_id", 5),
            r"file\.json: 1 annotations(?s:.)*annotation 2 has category_id 5",
        ),
        (changed("annotations.0.image_id", 1), "annotation 1 has image_id 1"),
        (changed("annotations.0", {"image_id": 9}), "annotation number 1 has category_id None"),
        (
            changed("annotations.0.bbox", [1, 2, 3]),
            r"annotation 1: an annotation has no box(?s:.)*\[1, 2, 3\]",
        ),
        (changed("annotations.0.bbox", [1, 2, 3, float("nan")]), "annotation 1: an annotation has no box"),
        (changed("annotations.0.bbox", None), "annotation 1: an annotation has no box"),
        (changed("images.1.id", 9), "image number 2: an image has no id of its own"),
        (changed("categories.1.id", 7), "category number 2: a category has no id of its own"),
        (changed("categories.0.id", 7.5), "a category has no id of its own"),
        (changed("images.0.id", ""), "an image has no id of its own"),
        (changed("images", []), "the file lists no image"),
        (changed("images.0.file_name", None), "image 9: the field 'file_name' is of the wrong type"),
        (
            changed("images.0", {"id": 9}),
            r"image 9: the field 'file_name' is missing\n  received: an entry with 'id'",
        ),
        (changed("images.0.height", "20"), "image 9: the field 'height' is of the wrong type"),
        (changed("categories.0.name", ""), "category 7: the field 'name' is of the wrong type"),
        (
            changed("annotations.0.area", "33"),
            "annotation 1: the field 'area'(?s:.)*'33'(?s:.)*a finite number",
        ),
        (changed("annotations.0.iscrowd", []), "annotation 1: the field 'iscrowd'(?s:.)*0 or 1"),
        (changed("annotations.0.image_id", [9]), r"annotation 1 has image_id \[9\]"),
        (changed("annotations.0.category_id", {}), "annotation 1 has category_id {}"),
        (changed("annotations.0.bbox", [1, 2, 3, 10**400]), "annotation 1: an annotation has no box"),
        (changed("images.0.file_name", "nein.png"), "1 of 2 images are not there(?s:.)*nein.png"),
    ],
)
def test_wrong_entries(tmp_path: Path, data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        len(written(tmp_path, data))


def test_a_list_of_wrong_entries_is_cut(tmp_path: Path) -> None:
    data = content()
    data["annotations"] = [{**data["annotations"][0], "id": n, "category_id": 1} for n in range(8)]
    with pytest.raises(
        InputError, match=r"8 annotations belong to nothing(?s:.)*annotation 4 (?s:.)*and 3 more"
    ):
        len(written(tmp_path, data))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"images": [', r"file\.json: the annotation file is not JSON"),
        ("[" * 100_000, "the annotation file is not JSON"),
        ("[]", "not in COCO's format(?s:.)*no list 'images'"),
        ('{"images": [1], "categories": []}', "no list 'images'"),
        ('{"images": [], "categories": {}}', "no list 'categories'"),
    ],
)
def test_other_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        len(written(tmp_path, text))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.json: there is no such annotation file"):
        len(CocoDetection(tmp_path, Path("none.json")))


def test_images_that_are_not_what_is_said(tmp_path: Path) -> None:
    dataset = written(tmp_path, content())
    image.write(tmp_path / "images" / "nine.png", np.zeros((30, 20, 3), np.uint8))
    with pytest.raises(InputError, match=r"another size(?s:.)*30 high and 20 wide(?s:.)*20 high and 30 wide"):
        dataset[1]
    (tmp_path / "images" / "nine.png").write_bytes(b"no image")
    with pytest.raises(InputError, match=r"nine\.png: an image of the data set cannot be read"):
        dataset[1]


def test_the_classes_of_coco() -> None:
    assert len(COCO_CLASSES) == len(set(COCO_CLASSES)) == len(COCO_CATEGORY_IDS) == 80
    pairs = dict(zip(COCO_CATEGORY_IDS, COCO_CLASSES))
    assert {1: "person", 13: "stop sign", 44: "bottle", 90: "toothbrush"}.items() <= pairs.items()


def test_the_classes_of_layout_analysis() -> None:
    counts = {name: len(known.names) for name, known in KNOWN_CLASSES.items()}
    assert counts["publaynet"] == 5 and counts["cdla"] == 10 and counts["layout_17"] == 17
    assert (counts["doclayout"], counts["doclayout_plus"]) == (23, 20)
    assert all(
        len(known.ids) == len(set(known.names)) == len(known.names) for known in KNOWN_CLASSES.values()
    )
    assert KNOWN_CLASSES["publaynet"].ids == (1, 2, 3, 4, 5)


def test_cocos_classes_are_known_without_the_file(tmp_path: Path) -> None:
    dataset = CocoDetection(tmp_path, Path("nowhere.json"), classes="coco")
    assert (dataset.class_names, dataset.category_ids) == (COCO_CLASSES, COCO_CATEGORY_IDS)
    with pytest.raises(InputError, match=r"nowhere\.json"):
        len(dataset)


def test_a_file_with_some_of_cocos_classes_keeps_their_numbers(tmp_path: Path) -> None:
    data = content()
    data["categories"] = [{"id": 17, "name": "cat"}, {"id": 18, "name": "dog"}]
    for one in data["annotations"]:
        one["category_id"] = {7: 18, 3: 17}[one["category_id"]]
    written(tmp_path, data)
    dataset = CocoDetection(tmp_path, Path("file.json"), "images", classes="coco")
    labels = dataset[1].labels
    assert labels is not None and [COCO_CLASSES[label] for label in labels] == ["dog", "cat"]
    assert len(dataset.category_ids) == 80 and dataset._records.category_ids == COCO_CATEGORY_IDS


def test_other_categories_than_cocos(tmp_path: Path) -> None:
    written(tmp_path, content())
    dataset = CocoDetection(tmp_path, Path("file.json"), "images", classes="coco")
    with pytest.raises(InputError, match="the categories are not those of COCO's 80 classes") as caught:
        len(dataset)
    assert "3: cat, 7: dog" in str(caught.value)
    assert "-o data.train.dataset.classes=null data.eval.dataset.classes=null model.num_classes=2" in str(
        caught.value
    )


def test_a_missing_box_is_that_of_the_outline(tmp_path: Path) -> None:
    """Rotated boxes come as polygons with `bbox: []` (PaddleDetection#8729)."""
    data = content()
    mask = {"size": [20, 30], "counts": [2 * 20 + 5, 10, 10, 10, 525]}
    outlines = [[[4, 2, 9, 1, 10, 7]], [[1, 1, 2, 1, 2, 2], [5, 5, 8, 5, 8, 9]], mask]
    data["annotations"] = [
        {"id": n, "image_id": 9, "category_id": 7, "bbox": [], "segmentation": outline}
        for n, outline in enumerate(outlines)
    ]
    boxes = written(tmp_path, data)[1].boxes
    assert boxes is not None and boxes.tolist() == [[4, 1, 10, 7], [1, 1, 8, 9], [2, 5, 4, 15]]


@pytest.mark.parametrize("box", [[0, 0, 0, 0], [2.0, 3.0, 0.0, 4.0]])
def test_a_box_without_an_area_is_that_of_the_outline(tmp_path: Path, box: list[float]) -> None:
    """PaddleSeg#1581: EISeg writes boxes and areas of 0 beside its outlines."""
    data = content()
    outline = [[2, 3, 12, 3, 12, 8, 2, 8]]
    one = {"id": 1, "image_id": 9, "category_id": 7, "bbox": box, "area": 0}
    data["annotations"] = [
        {**one, "segmentation": outline},
        {**one, "id": 2},
        {**one, "id": 3, "segmentation": []},
    ]
    dataset = written(tmp_path, data)
    sample = dataset[1]
    assert sample.boxes is not None and sample.boxes.tolist() == [[2, 3, 12, 8]]
    assert sample.areas is not None and sample.areas.tolist() == [50] and len(dataset.problems) == 2


def test_a_box_outside_of_its_image_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Image 9 is 30 wide and 20 high: a box that only touches an edge is outside, one that reaches in is not."""
    data = content()
    boxes = [[30, 5, 4, 4], [5, -6, 4, 6], [29, 19, 9, 9], [-3, 2, 3, 3]]
    data["annotations"] = [{**data["annotations"][0], "id": n, "bbox": box} for n, box in enumerate(boxes)]
    dataset = written(tmp_path, data)
    kept = dataset[1].boxes
    assert kept is not None and kept.tolist() == [[29, 19, 38, 28]]
    assert [problem.partition(":")[0] for problem in dataset.problems] == [
        f"annotation {n} on image 9" for n in (0, 1, 3)
    ]
    assert dataset.problems[0].endswith("box [30, 5, 4, 4] lies outside of its image, 30 wide and 20 high")
    assert len(caplog.messages) == 1 and "file.json: 3 entries are left out" in caplog.messages[0]


def test_a_box_outside_of_an_image_of_unsaid_size_is_ignored(tmp_path: Path) -> None:
    data = content()
    del data["images"][0]["width"]
    data["annotations"] = [
        {**data["annotations"][0], "id": n, "bbox": box}
        for n, box in enumerate(([30, 5, 4, 4], [9, 5, 4, 4]))
    ]
    valid = written(tmp_path, data)[1].valid
    assert valid is not None and valid.tolist() == [False, True]


@pytest.mark.skipif(not (SHARED / "coco_mini").is_dir(), reason="OAR_SHARED has no data/coco_mini")
def test_real_files() -> None:
    dataset = CocoDetection(SHARED / "coco_mini", Path("instances_val.json"), "images/val2017")
    assert len(dataset) == 103 and dataset.class_names == COCO_CLASSES
    assert dataset.category_ids == COCO_CATEGORY_IDS and dataset.problems == ()
    assert (
        sum(
            len(dataset._records.boxes[a:b])
            for a, b in zip(dataset._records.starts, dataset._records.starts[1:])
        )
        == 731
    )
    people = CocoDetection(SHARED / "keypoints_samples" / "coco", Path("test_coco.json"), keypoints=True)
    sample = people[0]
    assert sample.keypoints is not None and sample.keypoints.shape[1:] == (17, 3)


def as_text(data: dict[str, Any], **names: str) -> dict[str, Any]:
    """The ids of the images as texts."""
    for one in data["images"]:
        one["id"] = names[f"image_{one['id']}"]
    for one in data["annotations"]:
        one["image_id"] = names[f"image_{one['image_id']}"]
    return data


def test_ids_may_be_texts(tmp_path: Path) -> None:
    dataset = written(tmp_path, as_text(content(), image_9="cam1/b7", image_4="cam1/a2"))
    assert [sample.id for sample in dataset] == ["cam1/a2", "cam1/b7"] and len(dataset[1].boxes) == 2
    mixed = content()  # one tool writes numbers where another writes texts
    for one in mixed["annotations"]:
        one["image_id"], one["category_id"] = f"{one['image_id']:06d}", float(one["category_id"])
    assert [sample.id for sample in written(tmp_path, mixed)] == [4, 9] and len(
        written(tmp_path, mixed)[1].boxes
    ) == 2
    named = content()
    for one in (*named["categories"], *named["annotations"]):
        key = "category_id" if "image_id" in one else "id"
        one[key] = {7: "k-dog", 3: "k-cat"}[one[key]]
    dataset = written(tmp_path, named)
    assert dataset.class_names == ("cat", "dog") and dataset.category_ids == (0, 1)


def test_categories_of_one_name(tmp_path: Path) -> None:
    group = content()
    group["categories"].append({"id": 0, "name": "dog", "supercategory": "none"})  # as Roboflow writes it
    dataset = written(tmp_path, group)
    assert dataset.class_names == ("cat", "dog") and dataset.category_ids == (3, 7)
    assert any("categories 0 and 7 are both called 'dog'" in problem for problem in dataset.problems)
    group["annotations"].append({"id": 8, "image_id": 4, "category_id": 0, "bbox": [1, 1, 2, 2]})
    with pytest.raises(InputError, match=r"two categories have one name(?s:.)*0 and 7 are both called 'dog'"):
        len(written(tmp_path, group))
    blanks = content()
    blanks["categories"].append({"id": 9, "name": " cat "})
    assert written(tmp_path, blanks).category_ids == (3, 7)


def test_images_are_turned_or_left_as_they_are_stored(tmp_path: Path) -> None:
    stored = np.zeros((20, 30, 3), np.uint8)
    stored[:5] = 250
    written(tmp_path, content())
    exif = Image.Exif()
    exif[0x0112] = 3
    Image.fromarray(stored).save(tmp_path / "images" / "nine.png", exif=exif)
    seen = CocoDetection(tmp_path, Path("file.json"), "images")[1].image
    left = CocoDetection(tmp_path, Path("file.json"), "images", orientation="stored")[1].image
    assert np.array_equal(left, stored) and np.array_equal(seen, stored[::-1, ::-1])
    report = str(validate(CocoDetection(tmp_path, Path("file.json"), "images")))
    assert "1 of 2 images are turned by their EXIF mark" in report and "nine.png" in report
    assert "EXIF" not in str(
        validate(CocoDetection(tmp_path, Path("file.json"), "images", orientation="stored"))
    )


def test_a_box_that_cvat_turned_is_that_around_its_corners(tmp_path: Path) -> None:
    """CVAT's export to COCO has the box before it was turned (cvat#4745)."""
    data = content()
    turned = {"id": 1, "image_id": 9, "category_id": 7, "bbox": [10, 5, 10, 4], "area": 40}
    square = [[9, 4, 21, 4, 21, 10, 9, 10]]
    data["annotations"] = [
        turned | {"attributes": {"occluded": False, "rotation": 90.0}, "segmentation": []},
        turned | {"id": 2, "attributes": {"rotation": 45.0}},
        turned | {"id": 3, "attributes": {"rotation": 45.0}, "segmentation": square},
        turned | {"id": 4, "attributes": {"rotation": "left"}},
    ]
    half = 14 / 2**1.5
    around = [15 - half, 7 - half, 15 + half, 7 + half]
    as_written = [10, 5, 20, 9]
    boxes = written(tmp_path, data)[1].boxes
    assert boxes is not None
    np.testing.assert_allclose(boxes, [[13, 2, 17, 12], around, as_written, as_written], atol=1e-5)

    read = read_coco(tmp_path / "file.json", tmp_path / "images").images[1].objects
    assert [len(one.outlines) for one in read] == [1, 1, 1, 0]
    np.testing.assert_allclose([one.box for one in read], boxes, atol=1e-5)
    np.testing.assert_allclose(read[0].outlines[0], [[17, 2], [17, 12], [13, 12], [13, 2]], atol=1e-9)
