"""What a detector takes for what, and the images with most errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from detection.error_analysis import WORST, ErrorAnalysis, LabelledBoxes, match, precision_recall
from framework.engine.details import ClassTable, Curve, Details

A, B, C = [0, 0, 10, 10], [20, 0, 30, 10], [40, 0, 50, 10]


def boxes(*of_image: tuple[list[int], int]) -> LabelledBoxes:
    return LabelledBoxes(
        np.array([box for box, _ in of_image], float).reshape(-1, 4),
        np.array([label for _, label in of_image], int),
    )


def test_confusion_counts_missed_false_and_wrong() -> None:
    analysis = ErrorAnalysis(("cat", "dog"))
    truth, found = boxes((A, 0), (B, 1), (C, 1)), boxes((A, 0), (B, 0), ([70, 0, 80, 10], 1), (C, 1))
    analysis.add("x.jpg", truth, found, np.array([0.9, 0.8, 0.7, 0.1]), None)  # the last one is too doubtful
    assert analysis.confusion.tolist() == [[1, 0, 0], [1, 0, 1], [0, 1, 0]]
    table, images = analysis.worst()
    assert table.rows == (("x.jpg", 3, 1, 1, 1, 3),) and images == ()


def test_objects_to_ignore_are_neither_found_nor_missed() -> None:
    analysis = ErrorAnalysis(("cat",))
    truth = boxes((A, 0), (B, 0))._replace(ignored=np.array([True, True]))
    analysis.add("x.jpg", truth, boxes((A, 0)), np.array([0.9]), None)
    assert not analysis.confusion.any() and analysis.worst()[0].rows == ()


def test_each_object_has_one_box_the_closest_first() -> None:
    objects, found = np.array([A, [2, 0, 12, 10]], float), np.array([[1, 0, 11, 10], A], float)
    assert sorted(match(objects, found)) == [(0, 1), (1, 0)]
    assert match(objects[:0], found) == []


def test_the_worst_images_are_kept_with_their_boxes() -> None:
    analysis = ErrorAnalysis(("cat",))
    image = np.zeros((40, 60, 3), np.uint8)
    for number in range(WORST + 5):
        found = boxes(*[(A, 0)] * 1, *[([20 + k, 20, 30 + k, 30], 0) for k in range(number)])
        analysis.add(f"{number}.jpg", boxes((A, 0)), found, np.full(number + 1, 0.9), image)
    table, images = analysis.worst()
    assert [row[0] for row in table.rows] == [f"{n}.jpg" for n in range(WORST + 4, 4, -1)]
    assert len(images) == WORST and all(one.shape == image.shape and one.any() for one in images)
    assert not image.any()


def test_precision_over_recall() -> None:
    scores, right = np.array([0.2, 0.9, 0.5]), np.array([True, True, False])
    curve = precision_recall(scores, right, np.ones(3, bool), 4)
    assert curve.recall.tolist() == [0.25, 0.25, 0.5]
    assert curve.precision.tolist() == pytest.approx([1.0, 0.5, 2 / 3])


def test_files(tmp_path: Path) -> None:
    table = ClassTable(("class", "ap"), (("cat", 0.5),))
    worst = ClassTable(("image", "errors"), (("a.jpg", 3),))
    curve = Curve(np.array([0.5, 1.0]), np.array([1.0, 0.25]))
    drawn = np.zeros((8, 8, 3), np.uint8)
    details = Details(table, np.eye(2, dtype=int), ("(nothing)",), {"cat": curve}, worst, (drawn, drawn))
    written = {path.relative_to(tmp_path).as_posix() for path in details.write(tmp_path)}
    assert written == {
        *("per_class.csv", "confusion.csv", "confusion.png", "precision_recall.csv", "precision_recall.png"),
        *("worst.csv", "worst/01.jpg", "worst/02.jpg"),
    }
    assert (tmp_path / "precision_recall.csv").read_text(
        encoding="utf-8"
    ) == "class,recall,precision\ncat,0.5,1.0\ncat,1.0,0.25\n"
    assert "(nothing)" in (tmp_path / "confusion.csv").read_text(encoding="utf-8")
    Details(table, images=(drawn,)).write(tmp_path)  # of the next evaluation, which has one
    assert [path.name for path in (tmp_path / "worst").iterdir()] == ["01.jpg"]
