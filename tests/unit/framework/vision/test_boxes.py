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


def test_suppress_compares_classes_that_lie_apart_on_their_own(monkeypatch):
    rng = np.random.default_rng(3)
    corner = rng.uniform(0, 50, (1200, 2))
    near = np.concatenate([corner, corner + rng.uniform(1, 30, (1200, 2))], 1)
    labels = rng.integers(0, 12, 1200)
    rows = near + labels[:, None] * 100.0
    each = [np.flatnonzero(labels == label) for label in range(12)]
    expected = np.sort(np.concatenate([index[boxes.suppress(near[index], 0.4)] for index in each]))
    pairs, over_union = [], boxes._over_union
    monkeypatch.setattr(boxes, "_over_union", lambda a, b: pairs.append(a.size) or over_union(a, b))
    np.testing.assert_array_equal(boxes.suppress(rows, 0.4), expected)
    assert sum(pairs) < 1200 * 1200 / 6
    np.testing.assert_array_equal(boxes.suppress(rows, 0.4, count=30), expected[:30])


def test_suppress_below_no_overlap_at_all_drops_boxes_that_lie_apart():
    rows = np.array([[0.0, 0, 10, 10], [200, 0, 210, 10], [400, 0, 410, 10]])
    assert boxes.suppress(rows, -0.1).tolist() == [0]
    assert boxes.suppress(rows, 0.0).tolist() == [0, 1, 2]


@pytest.mark.parametrize("spread", [5, 60])  # most overlap, and few
@pytest.mark.parametrize("labelled", [False, True])
def test_suppress_is_one_box_after_another(spread: int, labelled: bool):
    """Of many boxes, so that there are several blocks of them, with any `count`."""
    rng = np.random.default_rng(spread)
    corner = rng.uniform(0, spread, (1500, 2))
    rows = np.concatenate([corner, corner + rng.uniform(1, 8, (1500, 2))], 1).astype(np.float32)
    labels = rng.integers(0, 3, 1500) if labelled else None
    shares, left, kept = boxes.iou(rows, rows), np.ones(1500, bool), []
    for i in range(1500):
        if left[i]:
            kept.append(i)
            same = True if labels is None else labels == labels[i]
            left &= ~np.where(same, shares[i] > 0.4, shares[i] > 0.9)
    assert len(kept) > 64 or spread == 5
    for count in (None, 0, 1, 63, 64, 65, 200):
        got = boxes.suppress(rows, 0.4, labels=labels, other_threshold=0.9, count=count)
        assert got.tolist() == kept[:count] and got.dtype == np.int64


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
