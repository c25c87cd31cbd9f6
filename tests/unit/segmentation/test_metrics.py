from __future__ import annotations

import numpy as np
import pytest

from framework.core.errors import ConfigError, InputError, ShapeError
from framework.engine.details import DetailedMetric
from segmentation.metrics import ConfusionCollector, MeanIoU

NAMES = ("sky", "road", "car", "boat")


def judge(labels: list[int], truth: list[int], **options: object) -> ConfusionCollector:
    metric = MeanIoU(**options).start(NAMES)  # pyright: ignore[reportArgumentType]
    metric.update({"labels": np.array([[labels]], np.int32)}, {"mask": np.array([[truth]], np.int32)})
    return metric


def test_scores_by_hand() -> None:
    # Pairs (label, found): 0-0, 0-0, 0-1, 1-1, 2-1; the last pixel is ignored; class 3 is nowhere.
    metric = judge([0, 0, 1, 1, 1, 2], [0, 0, 0, 1, 2, 255])
    result = metric.result()
    assert metric.higher_is_better and next(iter(result)) == "mIoU"
    assert result["iou/sky"] == pytest.approx(2 / 3)
    assert result["iou/road"] == pytest.approx(1 / 3)
    assert result["iou/car"] == 0
    assert "iou/boat" not in result
    assert result["mIoU"] == pytest.approx(1 / 3)
    assert result["mDice"] == pytest.approx((4 / 5 + 2 / 4 + 0) / 3)
    assert result["accuracy"] == pytest.approx(3 / 5)
    chance = (3 * 2 + 1 * 3 + 1 * 0) / 25
    assert result["kappa"] == pytest.approx((3 / 5 - chance) / (1 - chance))


def test_an_absent_class_counts_as_zero_where_asked() -> None:
    result = judge([0, 0, 1, 1, 1], [0, 0, 0, 1, 2], absent="zero").result()
    assert result["mIoU"] == pytest.approx(1 / 4)
    assert result["mDice"] == pytest.approx((4 / 5 + 2 / 4) / 4)


def test_batches_add_up_and_scores_are_taken_too() -> None:
    metric = judge([0, 1], [0, 1])
    scores = np.zeros((1, 1, 2, 4), np.float32)
    scores[0, 0, 0, 3] = scores[0, 0, 1, 2] = 1
    metric.update({"scores": scores}, {"mask": np.array([[[3, 3]]])})
    assert metric.confusion.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 1]]


def test_one_class_alone_is_perfect() -> None:
    assert judge([1, 1], [1, 1]).result() == {
        "mIoU": 1.0,
        "accuracy": 1.0,
        "kappa": 1.0,
        "mDice": 1.0,
        "iou/road": 1.0,
    }


def test_bytes_do_not_overflow() -> None:
    metric = MeanIoU().start(tuple(str(index) for index in range(150)))
    label = np.full((1, 1, 1), 149, np.uint8)
    metric.update({"labels": label}, {"mask": label})
    assert metric.confusion[149, 149] == 1


def test_the_scores_of_each_class() -> None:
    first, *_, last = judge([0, 0, 1, 1, 1], [0, 0, 0, 1, 2]).score_classes()
    assert (first.name, first.pixels, first.precision) == ("sky", 3, 1.0)
    assert (first.iou, first.dice, first.recall) == pytest.approx((2 / 3, 4 / 5, 2 / 3))
    assert last == ("boat", 0, None, None, None, None)


def test_the_table_of_an_evaluation() -> None:
    metric = judge([0, 0, 1, 1, 1], [0, 0, 0, 1, 2])
    details = metric.details()
    assert isinstance(metric, DetailedMetric) and details.confusion is metric.confusion
    assert details.classes.columns == ("class", "iou", "dice", "precision", "recall", "pixels")
    assert details.classes.rows[0] == ("sky", *map(pytest.approx, (2 / 3, 4 / 5, 1.0, 2 / 3)), 3)
    assert details.classes.rows[-1] == ("boat", None, None, None, None, 0)


def test_nothing_to_judge() -> None:
    with pytest.raises(InputError, match="no pixel with a class"):
        judge([0], [255]).result()


def test_classes_that_are_not_there() -> None:
    with pytest.raises(ConfigError, match="the labels have classes that are not there") as caught:
        judge([0, 0], [0, 4])
    assert "0 to 4" in str(caught.value) and "0 to 3" in str(caught.value)
    with pytest.raises(ConfigError, match="the predictions have classes"):
        judge([-1, 0], [0, 3])


def test_other_sizes() -> None:
    with pytest.raises(ShapeError, match="different sizes"):
        judge([0, 0], [0])


def near(mask: np.ndarray, width: int) -> np.ndarray:
    """By the definition: some pixel within `width` steps is outside of the mask, or beyond the edge."""
    padded = np.pad(mask, width)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2 * width + 1, 2 * width + 1))
    return mask & ~windows.all(axis=(2, 3))


def test_boundaries() -> None:
    """torchmetrics#1500, detectron2#4381: sums over the images, widths by their diagonals, ignored pixels outside."""
    rng = np.random.default_rng(0)
    metric = MeanIoU(boundary=0.05).start(NAMES)
    counts = np.zeros((2, 4))
    for size in ((1, 23, 31), (2, 40, 60)):
        truth, found = (
            np.kron(rng.integers(0, 3, (n, h // 5 + 1, w // 5 + 1)), np.ones((1, 5, 5), int))[:, :h, :w]
            for n, h, w in (size, size)
        )
        truth[:, :4, :9] = 255
        metric.update({"labels": found.astype(np.uint8)}, {"mask": truth.astype(np.int32)})
        width = {23: 2, 40: 4}[size[1]]
        for one, other in zip(truth, np.where(truth == 255, 255, found)):
            for index in range(4):
                both = near(one == index, width), near(other == index, width)
                counts[:, index] += np.logical_and(*both).sum(), np.logical_or(*both).sum()
    result = metric.result()
    expected = counts[0, :3] / counts[1, :3]
    assert [result[f"boundary_iou/{name}"] for name in NAMES[:3]] == pytest.approx(expected)
    assert result["boundary_mIoU"] == pytest.approx(expected.mean()) and "boundary_iou/boat" not in result
    assert next(iter(result)) == "mIoU" and "boundary_mIoU" not in judge([0], [0]).result()
    with pytest.raises(ConfigError, match="width of a boundary"):
        MeanIoU(boundary=2)
