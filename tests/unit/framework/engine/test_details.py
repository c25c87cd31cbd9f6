"""Scores of each class as a table and a matrix, and the files of a run and an evaluation."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from framework.engine.callbacks import MetricsFile
from framework.engine.details import ClassReport, ClassTable, DetailedMetric, Details
from framework.engine.reports import RunReport, write_curves
from framework.vision import image
from tests.unit.framework.engine.conftest import PointTask


def report(labels: list[int], predictions: list[int], names: tuple[str, ...] = ("a", "b", "c")) -> Details:
    metric = ClassReport(names)
    assert isinstance(metric, DetailedMetric) and metric.result() == {}
    for part in (slice(0, 3), slice(3, None)):  # two batches
        found = np.eye(3)[predictions[part]]
        metric.update({"scores": found}, {"label": np.array(labels[part])})
    return metric.details()


def test_the_scores_of_each_class() -> None:
    """By hand: a is found twice of three times; b once, beside two wrong ones; c never, and is never there."""
    details = report([0, 0, 0, 1], [0, 0, 1, 1])
    assert details.classes.columns == ("class", "precision", "recall", "f1", "support")
    assert details.classes.rows == (
        ("a", 1.0, pytest.approx(2 / 3), 0.8, 3),
        ("b", 0.5, 1.0, pytest.approx(2 / 3), 1),
        ("c", None, None, None, 0),
    )
    assert details.confusion.tolist() == [[2, 1, 0], [0, 1, 0], [0, 0, 0]]
    assert details.classes.to_text().splitlines() == [
        "class  precision  recall    f1  support",
        "a          100.0    66.7  80.0        3",
        "b           50.0   100.0  66.7        1",
        "c              -       -     -        0",
    ]


def test_labels_without_a_name_and_those_to_ignore() -> None:
    """A class of the data that the model does not know counts as an error; -1 counts nowhere."""
    details = report([3, -1, 0, 0], [0, 0, 0, 0], ("a",))
    assert [row[0] for row in details.classes.rows] == ["a", "1", "2", "3"]
    assert details.confusion.tolist() == [[2, 0, 0, 0], [0] * 4, [0] * 4, [1, 0, 0, 0]]
    many = ClassReport([str(n) for n in range(1001)])
    many.update({"scores": np.eye(1001)[:2]}, {"label": np.array([0, 1])})
    assert many.details().confusion is None and len(many.details().classes.rows) == 1001


def test_the_files(tmp_path: Path) -> None:
    names = ("a", "b, or c", "d")
    written = report([0, 0, 0, 1], [0, 0, 1, 1], names).write(tmp_path / "new")
    assert [path.name for path in written] == ["per_class.csv", "confusion.csv", "confusion.png"]
    rows = list(csv.reader((tmp_path / "new" / "confusion.csv").read_text(encoding="utf-8").splitlines()))
    assert rows[0][1:] == list(names) and rows[1] == ["a", "2", "1", "0"]
    table = list(
        csv.DictReader((tmp_path / "new" / "per_class.csv").read_text(encoding="utf-8").splitlines())
    )
    assert table[1] == {
        "class": "b, or c",
        "precision": "0.5",
        "recall": "1.0",
        "f1": str(2 / 3),
        "support": "1",
    }
    assert table[2]["f1"] == ""
    assert image.read(tmp_path / "new" / "confusion.png").min() < 100
    only = Details(ClassTable(("class", "ap"), (("a", 0.5),))).write(tmp_path)
    assert [path.name for path in only] == ["per_class.csv"]


def test_a_run_has_curves_and_the_classes_of_its_best_evaluation(make, tmp_path: Path, monkeypatch) -> None:
    metrics = PointTask.metrics
    monkeypatch.setattr(
        PointTask,
        "metrics",
        lambda self, labels: metrics(self, labels) | {"classes": ClassReport(("x", "y"))},
    )
    make(callbacks=[MetricsFile(tmp_path / "metrics.jsonl"), RunReport(tmp_path)], epochs=2).fit()
    table = list(
        csv.DictReader((tmp_path / "evaluation" / "per_class.csv").read_text(encoding="utf-8").splitlines())
    )
    assert [row["class"] for row in table] == ["x", "y"]
    assert sum(int(row["support"]) for row in table) == 10
    rows = list(csv.DictReader((tmp_path / "curves.csv").read_text(encoding="utf-8").splitlines()))
    logged = [
        json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert [row["step"] for row in rows] == [str(row["step"]) for row in logged]
    assert rows[0]["loss"] == str(logged[0]["loss"]) and rows[0]["accuracy"] == ""
    drawn = image.read(tmp_path / "curves.png")
    assert drawn.shape[1] == 1280 and len(np.unique(drawn.reshape(-1, 3), axis=0)) > 10


def test_numbers_that_cannot_be_drawn(tmp_path: Path, caplog) -> None:
    write_curves(tmp_path / "metrics.jsonl", tmp_path)
    assert not list(tmp_path.iterdir())
    rows = [{"kind": "train", "step": n, "loss": None if n == 1 else 0.5, "lr": 0.0} for n in range(3)]
    text = "".join(json.dumps(row) + "\n" for row in rows) + '{"kind": "train", "st'
    (tmp_path / "metrics.jsonl").write_text(text, encoding="utf-8")
    write_curves(tmp_path / "metrics.jsonl", tmp_path)
    assert image.read(tmp_path / "curves.png").size and (tmp_path / "curves.csv").is_file()
    (tmp_path / "curves.csv").unlink()
    (tmp_path / "curves.csv").mkdir()
    RunReport(tmp_path).on_end(None)  # type: ignore[arg-type]
    assert "the report of the run cannot be written" in caplog.text
