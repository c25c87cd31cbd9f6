from __future__ import annotations

from detection.data.keypoints import COCO_KEYPOINTS, flip_pairs, sigmas, skeleton

CROWD_POSE = (
    *(
        "left_shoulder",
        "right_shoulder",
        "left_elbow",
        "right_elbow",
        "left_wrist",
        "right_wrist",
        "left_hip",
    ),
    *("right_hip", "left_knee", "right_knee", "left_ankle", "right_ankle", "head", "neck"),
)


def test_flip_pairs():
    assert flip_pairs(COCO_KEYPOINTS) == (
        (1, 2),
        (3, 4),
        (5, 6),
        (7, 8),
        (9, 10),
        (11, 12),
        (13, 14),
        (15, 16),
    )
    assert flip_pairs(("right_neck", "lateral_right_bow", "x", "lateral_left_bow", "left_neck")) == (
        (3, 1),
        (4, 0),
    )
    assert flip_pairs(("left", "tail", "right")) == ((0, 2),)
    assert flip_pairs(("left_ear", "upright", "upleft", "left paw")) == flip_pairs(()) == ()


def test_skeleton():
    of_coco = {frozenset(line) for line in skeleton(COCO_KEYPOINTS)}
    # COCO's own, which counts from 1
    listed = [
        (16, 14),
        (14, 12),
        (17, 15),
        (15, 13),
        (12, 13),
        (6, 12),
        (7, 13),
        (6, 7),
        (6, 8),
        (7, 9),
        (8, 10),
    ]
    listed += [(9, 11), (2, 3), (1, 2), (1, 3), (2, 4), (3, 5), (4, 6), (5, 7)]
    assert of_coco == {frozenset((a - 1, b - 1)) for a, b in listed} and len(skeleton(COCO_KEYPOINTS)) == 19
    of_crowd = {frozenset(line) for line in skeleton(CROWD_POSE)}
    assert {frozenset((12, 13)), frozenset((13, 0)), frozenset((13, 1)), frozenset((0, 1))} <= of_crowd
    assert skeleton(("wrist", "thumb1")) == ()


def test_sigmas():
    want = (0.026, 0.025, 0.025, 0.035, 0.035, 0.079, 0.079, 0.072, 0.072, 0.062, 0.062)
    assert sigmas(COCO_KEYPOINTS) == (*want, 0.107, 0.107, 0.087, 0.087, 0.089, 0.089)
    assert sigmas(CROWD_POSE) == (*want[5:], 0.107, 0.107, 0.087, 0.087, 0.089, 0.089, 0.079, 0.079)
    assert sigmas(("nose", "thumb")) is None and sigmas(()) is None
