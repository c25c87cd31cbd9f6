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


def test_clip_and_scale():
    assert boxes.clip(np.array([[-3, 1, 50, 60], [30, 30, 40, 40]]), (20, 10)).tolist() == [
        [0, 1, 10, 20],
        [10, 20, 10, 20],
    ]
    assert boxes.scale(ONE, (2, 0.5)).tolist() == [[2, 1, 8, 4]]
    assert boxes.clip(NONE, (2, 2)).shape == boxes.scale(NONE, (1, 1)).shape == (0, 4)


def test_forms():
    assert boxes.xyxy_to_xywh(ONE).tolist() == [[1, 2, 3, 6]]
    assert boxes.xyxy_to_cxcywh(ONE).tolist() == [[2.5, 5, 3, 6]]
    assert boxes.xywh_to_xyxy(boxes.xyxy_to_xywh(ONE)).tolist() == ONE.tolist()
    assert boxes.cxcywh_to_xyxy(boxes.xyxy_to_cxcywh(ONE)).tolist() == ONE.tolist()
    for function in (boxes.xyxy_to_xywh, boxes.xywh_to_xyxy, boxes.xyxy_to_cxcywh, boxes.cxcywh_to_xyxy):
        assert function(NONE).shape == (0, 4) and function(NONE).dtype == np.float32
        assert function(np.ones((2, 4), np.int64)).dtype == np.float64


def test_nms():
    candidates = np.array([[0, 0, 10, 10], [1, 0, 11, 10], [20, 0, 30, 10], [0, 0, 10, 5]], np.float32)
    scores = np.array(
        [0.8, 0.9, 0.3, 0.7]
    )  # IoU of 0 and 1: 90/110 = 0.82; of 0 and 3: 0.5; of 1 and 3: 45/105
    assert boxes.nms(candidates, scores, 0.5).tolist() == [1, 3, 2]
    assert boxes.nms(candidates, scores, 0.4).tolist() == [1, 2]
    assert boxes.nms(candidates, scores, 0.9).tolist() == [1, 0, 3, 2]
    assert boxes.nms(candidates, scores, 0.4, labels=np.array([0, 1, 0, 0])).tolist() == [1, 0, 2]
    assert boxes.nms(candidates[:2], np.array([0.5, 0.5]), 0.5).tolist() == [0]  # of equals the earlier
    assert boxes.nms(NONE, np.zeros(0), 0.5).tolist() == []


def test_errors():
    with pytest.raises(ShapeError, match="these are no boxes"):
        boxes.area(np.zeros((3, 5)))
    with pytest.raises(ShapeError, match="scores and boxes do not belong together"):
        boxes.nms(ONE, np.zeros(2), 0.5)
    with pytest.raises(ShapeError, match="labels and boxes do not belong together"):
        boxes.nms(ONE, np.zeros(1), 0.5, labels=np.zeros(3))
