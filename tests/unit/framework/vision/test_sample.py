"""framework.vision.sample: what belongs together is checked, what is not changed is shared."""

import dataclasses

import numpy as np
import pytest

from framework.core.errors import ShapeError
from framework.vision.sample import Sample

IMAGE = np.zeros((4, 6, 3), np.uint8)


def test_fields_and_replace():
    sample = Sample(IMAGE, boxes=np.zeros((2, 4)), labels=np.array([1, 2]), text=("a", "b"), id="x")
    assert sample.size_hw == (4, 6)
    changed = sample.replace(labels=np.array([3, 4]))
    assert changed.labels.tolist() == [3, 4] and sample.labels.tolist() == [1, 2]
    assert changed.image is IMAGE and changed.boxes is sample.boxes and changed.id == "x"
    with pytest.raises(dataclasses.FrozenInstanceError):
        sample.id = "y"  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(TypeError, match="color"):
        sample.replace(color=1)


def test_what_describes_the_whole_image_is_not_counted():
    one_label, semantic = np.array(5), np.zeros((4, 6), np.int32)
    sample = Sample(IMAGE, mask=semantic, labels=one_label, text="a line", boxes=np.zeros((3, 4)))
    assert sample.text == "a line"
    assert Sample(IMAGE, boxes=np.zeros((0, 4)), polygons=(), text=(), valid=np.zeros(0, bool)).polygons == ()


def test_errors():
    with pytest.raises(ShapeError, match=r"disagree on the number of objects[\s\S]*boxes: 2, labels: 3"):
        Sample(IMAGE, boxes=np.zeros((2, 4)), labels=np.zeros(3))
    with pytest.raises(ShapeError, match="disagree on the number of objects"):
        Sample(IMAGE, mask=np.zeros((2, 4, 6), bool), valid=np.ones(1, bool))
    with pytest.raises(ShapeError, match=r"boxes: 2, areas: 1"):
        Sample(IMAGE, boxes=np.zeros((2, 4)), areas=np.zeros(1))
    with pytest.raises(ShapeError, match=r"sample 'a.jpg', image: a field has the wrong rank"):
        Sample(IMAGE[0], id="a.jpg")
    with pytest.raises(ShapeError, match=r"Sample.keypoints"):
        Sample(IMAGE, keypoints=np.zeros((2, 3)))
