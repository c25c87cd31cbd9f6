from __future__ import annotations

import numpy as np

from detection.detector import suppress_across_classes
from detection.results import Box, DetectionResult

CAR = Box("car", 2, 0.87654321, (10.0, 20.126, 30.5, 60.0))
DOG = Box("dog", 0, 0.5, (1.0, 2.0, 3.0, 5.0), track_id=7, keypoints=((1.5, 2.5, 0.9), (2.5, 4.0, 0.8)))


def result(*boxes: Box, skeleton: tuple[tuple[int, int], ...] = ()) -> DetectionResult:
    image = np.full((80, 100, 3), 90, np.uint8)
    return DetectionResult(boxes, skeleton, source="street.jpg", width=100, height=80, image=image)


def test_to_dict():
    assert result(CAR, DOG).to_dict() == {
        "source": "street.jpg",
        "width": 100,
        "height": 80,
        "boxes": [
            {"label": "car", "category_id": 2, "score": 0.8765, "bbox": [10.0, 20.13, 30.5, 60.0]},
            {
                "label": "dog",
                "category_id": 0,
                "score": 0.5,
                "bbox": [1.0, 2.0, 3.0, 5.0],
                "track_id": 7,
                "keypoints": [[1.5, 2.5, 0.9], [2.5, 4.0, 0.8]],
            },
        ],
    }
    assert result().to_dict() == {"source": "street.jpg", "width": 100, "height": 80, "boxes": []}


def test_to_coco():
    assert result(CAR, DOG).to_coco(139) == [
        {"image_id": 139, "category_id": 2, "bbox": [10.0, 20.13, 20.5, 39.87], "score": 0.87654},
        {
            "image_id": 139,
            "category_id": 0,
            "bbox": [1.0, 2.0, 2.0, 3.0],
            "score": 0.5,
            "keypoints": [1.0, 2.0, 0.9, 2.0, 3.5, 0.8],  # COCO numbers pixels
        },
    ]
    assert [r["category_id"] for r in result(CAR, DOG).to_coco(1, [18, 1, 3])] == [3, 18]
    assert result().to_coco(1) == []


def test_arrays():
    found = result(CAR, DOG)
    assert found.xyxy.tolist() == [[10.0, 20.126, 30.5, 60.0], [1.0, 2.0, 3.0, 5.0]]
    assert found.scores.tolist() == [0.87654321, 0.5] and found.category_ids.tolist() == [2, 0]
    empty = result()
    assert empty.xyxy.shape == (0, 4) and empty.scores.shape == empty.category_ids.shape == (0,)


def test_overlay():
    empty = result()
    assert (empty.overlay() == empty.image).all() and (empty.draw() == empty.image).all()
    drawn = result(CAR).overlay()
    assert drawn.shape == (80, 100, 3) and (drawn != 90).any()
    assert (drawn[59, 12:29] != 90).any(axis=-1).all()  # the lower edge of the box
    assert (result(CAR).image == 90).all()
    same = Box("car", 2, 0.87654321, CAR.bbox, track_id=2)
    other = Box("car", 2, 0.87654321, CAR.bbox, track_id=3)
    edges = [result(box).overlay()[59, 20].tolist() for box in (CAR, same, other)]
    assert edges[0] == edges[1] != edges[2]  # without a track the class gives the colour


def test_overlay_draws_the_skeleton_between_keypoints():
    posed = Box("person", 0, 0.9, (5, 5, 95, 75), keypoints=((20, 40, 1), (80, 40, 1)))
    without, with_stick = (result(posed, skeleton=s).overlay() for s in ((), ((0, 1),)))
    assert (without[40, 50] == 90).all() and (with_stick[39:41, 50] != 90).any()
    assert (without[39:41, 20] != 90).any()


def test_results_compare_by_what_was_found():
    other = np.zeros((80, 100, 3), np.uint8)
    assert result(CAR) == DetectionResult((CAR,), source="street.jpg", width=100, height=80, image=other)
    assert result(CAR) != result(DOG)


def test_people_without_tracks_have_colours_of_their_own():
    shown = [Box("person", 0, 0.9, (x, 5, x + 9, 75), keypoints=((x + 4, 40, 1),)) for x in (5, 40)]
    drawn = result(*shown).overlay()
    assert drawn[60, 5].tolist() != drawn[60, 40].tolist()  # the left edges of both boxes
    both = [Box(box.label, 0, 0.9, box.bbox, 3, box.keypoints) for box in shown]
    drawn = result(*both).overlay()
    assert drawn[60, 5].tolist() == drawn[60, 40].tolist()


def test_lines_of_yolo():
    assert result(CAR, DOG).to_yolo() == (
        "2 0.202500 0.500788 0.205000 0.498425\n0 0.020000 0.043750 0.020000 0.037500 7\n"
    )
    assert result(CAR).to_yolo(with_scores=True).endswith(" 0.876543\n")


def test_boxes_of_other_classes_are_suppressed_where_that_is_asked_for():
    near = Box("van", 5, 0.6, (11.0, 20.0, 31.0, 60.0))
    apart = Box("van", 5, 0.4, (60.0, 20.0, 80.0, 60.0))
    assert suppress_across_classes(result(near, CAR, apart), 0.5).boxes == (CAR, apart)
    assert len(suppress_across_classes(result(near, CAR, apart), 0.99).boxes) == 3
