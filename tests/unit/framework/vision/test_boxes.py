"""framework.vision.boxes: every function by hand, with no boxes, and its error."""

import numpy as np
import pytest

from framework.core.errors import ShapeError
from framework.vision import boxes

ONE = np.array([[1.0, 2, 4, 8]])
NONE = np.zeros((0, 4), np.float32)


def test_area():
    assert boxes.area(ONE).tolist() == [18]
    assert boxes.area(np.array([[4, 4, 2, 8], [0, 0, 1, 1]])).tolist() == [0, 1]
    assert boxes.area(NONE).shape == (0,)


def test_intersection_and_iou():
    a = np.array([[0, 0, 2, 2], [0, 0, 4, 4]])
    b = np.array([[1, 1, 3, 3], [2, 0, 4, 2], [0, 0, 2, 2]])
    assert boxes.intersection(a, b).tolist() == [[1, 0, 4], [4, 4, 4]]
    np.testing.assert_allclose(boxes.iou(a, b), [[1 / 7, 0, 1], [4 / 16, 4 / 16, 4 / 16]])
    assert boxes.iou(NONE, b).shape == (0, 3) and boxes.iou(a, NONE).shape == (2, 0)
    assert boxes.iou(np.zeros((1, 4)), np.zeros((1, 4))).tolist() == [[0]]


def test_suppress():
    rows = np.array([[0, 0, 10, 10], [0, 0, 10, 8], [0, 0, 10, 9.9], [20, 20, 30, 30]])
    assert boxes.suppress(rows, 0.8).tolist() == [0, 1, 3]  # just so much stays
    labels = np.array(["a", "b", "a", "a"])
    assert boxes.suppress(rows, 0.7, labels=labels).tolist() == [0, 1, 3]
    assert boxes.suppress(rows, 0.7, labels=labels, other_threshold=0.7).tolist() == [0, 3]
    assert boxes.suppress(rows, 0.8, count=0).tolist() == boxes.suppress(NONE, 0.8).tolist() == []


def test_clip():
    assert boxes.clip(np.array([[-3, 1, 50, 60], [30, 30, 40, 40]]), (20, 10)).tolist() == [
        [0, 1, 10, 20],
        [10, 20, 10, 20],
    ]
    assert boxes.clip(NONE, (2, 2)).shape == (0, 4)


def test_corners_of_left_top_width_height():
    assert boxes.xywh_to_xyxy(np.array([[1, 2, 3, 6]])).tolist() == ONE.tolist()
    assert boxes.xywh_to_xyxy(NONE).shape == (0, 4) and boxes.xywh_to_xyxy(NONE).dtype == np.float32
    assert boxes.xywh_to_xyxy(np.ones((2, 4), np.int64)).dtype == np.float64


def test_errors():
    with pytest.raises(ShapeError, match="boxes must be an array"):
        boxes.area(np.zeros((3, 5)))
