"""detection.tasks: what is packed of a sample, and the objects for which there is no room."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from detection.metrics import CocoMap, VocMap
from detection.tasks import ObjectDetection
from framework.core.errors import ConfigError, InputError
from framework.vision.sample import Sample


def sample(count: int) -> Sample:
    """Boxes side by side, 2 pixels wide; the second is one to ignore."""
    left = 2.0 * np.arange(count)
    boxes = np.stack([left, left * 0, left + 2, left * 0 + 4], axis=1).astype(np.float32)
    return Sample(
        np.full((8, 16, 3), 7, np.uint8),
        boxes=boxes,
        labels=np.arange(count, dtype=np.int32) % 2,
        valid=np.arange(count) != 1,
        source_size=(8, 16),
    )


def test_objects_and_padding() -> None:
    packed = ObjectDetection(max_objects=4).pack(sample(3))
    assert packed["kinds"].tolist() == [1, 1, 2, 0]
    assert packed["labels"].tolist() == [0, 0, 1, 0]
    assert packed["boxes"].tolist() == [[0, 0, 2, 4], [4, 0, 6, 4], [2, 0, 4, 4], [0, 0, 0, 0]]
    assert packed["left_out"] == 0 and packed["matrix"].tolist() == np.eye(3).tolist()
    assert packed["size"].tolist() == [8, 16]


def test_what_finds_no_room_is_counted_and_those_to_ignore_go_first() -> None:
    packed = ObjectDetection(max_objects=2).pack(sample(5))
    assert packed["kinds"].tolist() == [1, 1] and packed["boxes"][:, 0].tolist() == [0, 4]
    assert packed["left_out"] == 3


def test_no_objects() -> None:
    for empty in (sample(0), Sample(np.zeros((1, 1, 3), np.uint8))):
        packed = ObjectDetection(max_objects=1).pack(empty)
        assert packed["kinds"].tolist() == [0] and packed["left_out"] == 0


@pytest.mark.parametrize("metric", [CocoMap(), VocMap()], ids=lambda m: type(m).__name__)
def test_an_evaluation_with_objects_left_out_is_refused(metric: Any) -> None:
    task = ObjectDetection(max_objects=4, metric=metric)
    found = {"boxes": np.zeros((2, 1, 4)), "scores": np.zeros((2, 1)), "labels": np.zeros((2, 1), int)}
    for counts, fits in (((3, 4), True), ((4, 6), False)):
        packed = [task.pack(sample(count)) for count in counts]
        batch = {name: np.stack([one[name] for one in packed]) for name in packed[0]}
        collector = task.metrics(("a", "b"))["metric"]
        if fits:
            collector.update(found, batch)
            continue
        with pytest.raises(InputError, match="more objects than there is room for") as caught:
            collector.update(found, batch)
        assert "6 objects" in str(caught.value) and "-o task.max_objects=6" in str(caught.value)


def test_no_room_at_all() -> None:
    with pytest.raises(ConfigError, match="max_objects is too small"):
        ObjectDetection(max_objects=0)
