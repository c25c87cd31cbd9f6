from __future__ import annotations

import json

import numpy as np

from detection.result_files import CocoFile, MotFile
from detection.results import Box, DetectionResult


def result(source: str, *boxes: Box) -> DetectionResult:
    return DetectionResult(boxes, source=source, width=20, height=20, image=np.zeros((20, 20, 3), np.uint8))


CAR, DOG = Box("car", 1, 0.75, (1, 2, 4, 8)), Box("dog", 0, 0.5, (0, 0, 10, 10), track_id=3)


def written(file: CocoFile, *results: DetectionResult) -> list[dict]:
    return json.loads(
        file.head + "".join(file.text(one, number) for number, one in enumerate(results)) + file.tail
    )


def test_coco_file():
    files = ["in/000000000139.jpg", "in/7.png", "in/8.png"]
    found = written(
        CocoFile(files, [18, 3]), result(files[1]), result(files[0], CAR, DOG), result(files[2], DOG)
    )
    assert found == [
        {
            "image_id": 139,
            "category_id": 3,
            "bbox": [1, 2, 3, 6],
            "score": 0.75,
            "file_name": "000000000139.jpg",
        },
        {
            "image_id": 139,
            "category_id": 18,
            "bbox": [0, 0, 10, 10],
            "score": 0.5,
            "file_name": "000000000139.jpg",
        },
        {"image_id": 8, "category_id": 18, "bbox": [0, 0, 10, 10], "score": 0.5, "file_name": "8.png"},
    ]


def test_images_are_numbered_where_their_names_do_not_tell_them_apart():
    for files in (["a.jpg", "7.jpg"], ["07.jpg", "7.png"], ["²7.jpg", "8.jpg"]):
        assert [r["image_id"] for r in written(CocoFile(files), result(files[1], CAR))] == [1]
    assert written(CocoFile(["a.jpg"]), result("a.jpg", CAR))[0]["category_id"] == 1


def test_a_coco_file_without_objects():
    assert (
        written(CocoFile([])) == []
        and written(CocoFile(["a.jpg", "b.jpg"]), result("a.jpg"), result("b.jpg")) == []
    )


def test_mot_file():
    one = MotFile("clip", classes=False)
    assert (one.name, one.head, one.tail) == ("clip.txt", "", "")
    assert one.text(result("clip.mp4", CAR, DOG), 0) == (
        "1,-1,1.00,2.00,3.00,6.00,0.7500,-1,-1,-1\n1,3,0.00,0.00,10.00,10.00,0.5000,-1,-1,-1\n"
    )
    assert one.text(result("clip.mp4"), 1) == ""
    many = MotFile("clip", classes=True)
    assert many.text(result("clip.mp4", DOG), 9) == "10,3,0.00,0.00,10.00,10.00,0.5000,0,-1,-1\n"


def test_a_coco_file_of_poses():
    posed = Box("person", 0, 0.5, (1, 2, 4, 8), keypoints=((1.5, 2.5, 0.25), (4, 8, 0)))
    file = CocoFile(["5.jpg"], (1,), "keypoint.json")
    assert (file.name, CocoFile([]).name) == ("keypoint.json", "bbox.json")
    (found,) = written(file, result("5.jpg", posed))
    assert found["keypoints"] == [1, 2, 0.25, 3.5, 7.5, 0] and found["category_id"] == 1
