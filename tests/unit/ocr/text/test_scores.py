"""Scores of detection and recognition on small cases that can be worked out by hand."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from ocr.text.characters import CharacterSet
from ocr.text.polygons import intersection_area, offset_polygon, polygon_area, polygon_perimeter
from ocr.text.postprocess import DBPostprocess
from ocr.text.scores import (
    DetectionScores,
    OrientationScores,
    RecognitionScores,
    describe_page,
    edit_distance,
    match_regions,
    similarity,
)


def slow_distance(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(other, start=1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (a != b))
    return row[-1]


def test_the_edit_distance_is_that_of_the_table() -> None:
    draw = random.Random(0)
    for _ in range(300):
        one, other = ("".join(draw.choices("abc", k=draw.randint(0, 90))) for _ in range(2))
        assert edit_distance(one, other) == slow_distance(one, other)
    assert edit_distance("", "abc") == 3 and edit_distance("kitten", "sitting") == 3
    assert similarity("", "") == 1 and similarity("kitten", "sitting") == pytest.approx(1 - 3 / 7)


def test_lost_spaces_are_seen_beside_the_score_that_is_blind_to_them() -> None:
    scores = RecognitionScores(CharacterSet.from_symbols("ab"))
    scores.add("TOTAL 4.50", "TOTAL 4.50")
    scores.add("TOTAL4.50", "TOTAL 4.50")
    scores.add("total 4:50", "TOTAL 4.50")
    scores.add("", "x")
    found = scores.result()
    assert found["acc"] == 0.5 and found["acc_with_spaces"] == 0.25 and found["acc_alphanumeric"] == 0.75
    assert found["norm_edit_dis"] == pytest.approx((1 + 1 + (1 - 6 / 9) + 0) / 4)
    assert found["norm_edit_dis_with_spaces"] == pytest.approx((1 + 0.9 + (1 - 6 / 10) + 0) / 4)


def test_recognised_classes_are_decoded_before_they_count() -> None:
    scores = RecognitionScores(CharacterSet.from_symbols("ab"))
    indices = np.array([[0, 1, 1, 0, 1, 2], [2, 0, 0, 0, 0, 3]])
    outputs = {"indices": indices, "probabilities": np.ones(indices.shape, np.float32)}
    scores.update(outputs, {"text": np.array(["aab", "b"])})
    assert scores.result()["acc"] == 1.0


def square(x: float, y: float, side: float = 10) -> np.ndarray:
    return np.array([[x, y], [x + side, y], [x + side, y + side], [x, y + side]], np.float32)


def test_areas_of_polygons() -> None:
    turned = np.array([[5, 0], [10, 5], [5, 10], [0, 5]], np.float32)
    assert polygon_area(turned) == 50 and polygon_area(turned[::-1]) == 50
    assert polygon_perimeter(square(3, 4)) == 40
    assert intersection_area(square(0, 0), square(5, 5)) == pytest.approx(25)
    assert intersection_area(square(0, 0), turned[::-1]) == pytest.approx(50, abs=0.1)
    assert intersection_area(square(0, 0), square(20, 0)) == 0
    assert intersection_area(square(0, 0), np.zeros((4, 2), np.float32)) == 0
    assert polygon_area(offset_polygon(square(0, 0), -2)[0]) == pytest.approx(36)
    assert offset_polygon(square(0, 0), -6) == []


def test_regions_are_paired_one_to_one() -> None:
    wanted = [square(0, 0), square(20, 0), square(40, 0)]
    found = [square(1, 1), square(2, 0), square(26, 0), square(100, 100)]
    matches = match_regions(found, wanted, [True] * 3)
    assert (matches.right, matches.found, matches.wanted) == (1, 4, 3)


def test_unreadable_regions_count_for_nothing() -> None:
    wanted = [square(0, 0), square(20, 0, 30)]
    found = [square(0, 0), square(25, 5), square(21, 1), square(46, 26)]
    matches = match_regions(found, wanted, [True, False])
    # The last one has less than half of its area in the unreadable region.
    assert (matches.right, matches.found, matches.wanted) == (1, 2, 1)


def test_pages_are_scored_in_pixels_of_the_image_that_was_read() -> None:
    map_ = np.zeros((1, 64, 64), np.float32)
    map_[0, 12:19, 8:33] = 0.9
    page = describe_page([np.array([[10, 18], [72, 18], [72, 44], [10, 44]], np.float32)], [True], (100, 120))
    batch = {"size": np.array([[50, 60]]), "truth": np.array([json.dumps(page)])}
    scores = DetectionScores(DBPostprocess(unclip_ratio=1.5))
    scores.update({"probability": map_}, batch)
    assert scores.result() == {"hmean": pytest.approx(1), "precision": 1.0, "recall": 1.0}
    scores.update({"probability": np.zeros_like(map_)}, batch)
    assert scores.result() == {"hmean": pytest.approx(2 / 3), "precision": 1.0, "recall": 0.5}


def test_directions_are_counted() -> None:
    scores = OrientationScores()
    probability = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    scores.update({"probability": probability}, {"label": np.array([0, 1, 1])})
    assert scores.result() == {"accuracy": pytest.approx(2 / 3)}
