"""What an evaluation tells of each class, as a table and a confusion matrix, in files."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from framework.vision import charts, image

Cell = str | int | float | None
_MOST_CURVES = 8  # in a chart: as many as there are colours
_MOST_POINTS = 200  # of a curve in a file
_MOST_CLASSES = 1000  # of a confusion matrix: of more it is larger than anybody can read


@dataclass(frozen=True)
class ClassTable:
    """A row for each class; `columns` name the cells. None is what cannot be said, such as 0 / 0."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def to_text(self) -> str:
        """Columns of equal width, one class a line; shares in per cent."""
        cells = [self.columns, *(tuple(map(_show, row)) for row in self.rows)]
        widths = [max(len(row[place]) for row in cells) for place in range(len(self.columns))]
        return "\n".join(
            "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:]))])
            for row in cells
        )

    def to_csv(self) -> str:
        return _to_csv([self.columns, *self.rows])


class Curve(NamedTuple):
    """Recall and precision of one class, [T] each."""

    recall: np.ndarray
    precision: np.ndarray


@dataclass(frozen=True)
class Details:
    """Of one evaluation.

    Attributes:
        classes: A row for each class.
        confusion: [C, C] counts by label and prediction; None where there is no such thing.
        more: Names of its rows and columns behind those of the classes.
        curves: Precision over recall by class.
        worst: A row for each of the samples with most errors.
        images: Those samples as images, [H, W, 3] uint8 RGB.
    """

    classes: ClassTable
    confusion: np.ndarray | None = None
    more: tuple[str, ...] = ()
    curves: Mapping[str, Curve] = field(default_factory=dict)
    worst: ClassTable | None = None
    images: tuple[np.ndarray, ...] = ()

    def write(self, folder: Path) -> list[Path]:
        """per_class.csv; of a confusion matrix confusion.csv and confusion.png, of curves precision_recall.csv and
        precision_recall.png, of the worst samples worst.csv and a folder worst; returns what was written."""
        folder.mkdir(parents=True, exist_ok=True)
        texts = {"per_class.csv": self.classes.to_csv()}
        names = [*(str(row[0]) for row in self.classes.rows), *self.more]
        if self.curves:
            texts["precision_recall.csv"] = _to_csv(
                [("class", "recall", "precision"), *_curve_rows(self.curves)]
            )
        if self.worst is not None and self.worst.rows:
            texts["worst.csv"] = self.worst.to_csv()
        if self.confusion is not None:
            rows = [["label \\ prediction", *names]]
            rows += [[name, *map(str, counts)] for name, counts in zip(names, self.confusion.tolist())]
            texts["confusion.csv"] = _to_csv(rows)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        written = [folder / name for name in texts]
        if self.confusion is not None and names:
            title = f"{int(self.confusion.sum()):,} samples"
            drawing = charts.draw_matrix(self.confusion, names, title, ("label", "prediction"))
            image.write(folder / "confusion.png", drawing)
            written.append(folder / "confusion.png")
        if self.curves:
            panel = charts.Panel(
                "precision over recall", dict(itertools.islice(self.curves.items(), _MOST_CURVES))
            )
            image.write(folder / "precision_recall.png", charts.draw_panels([panel]))
            written.append(folder / "precision_recall.png")
        for old in (folder / "worst").glob("*.jpg"):  # of an evaluation before
            old.unlink()
        for number, drawn in enumerate(self.images, start=1):
            (folder / "worst").mkdir(exist_ok=True)
            image.write(folder / "worst" / f"{number:02}.jpg", drawn)
            written.append(folder / "worst" / f"{number:02}.jpg")
        return written


@runtime_checkable
class DetailedMetric(Protocol):
    """A metric that knows more than its scores."""

    def details(self) -> Details: ...


class ClassReport:
    """A Metric without scores of its own: precision, recall and F1 of each class, and the confusion matrix.

    `outputs["scores"]` [N, C], of which the largest is the prediction, and `batch["label"]` [N].
    """

    higher_is_better = True

    def __init__(self, class_names: Sequence[str]) -> None:
        self._names = tuple(class_names)
        self._counts: dict[tuple[int, int], int] = {}
        self._size = len(self._names)

    def update(self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray]) -> None:
        scores = np.asarray(outputs["scores"])
        self._size = max(self._size, scores.shape[-1])
        self.count(batch["label"], scores.argmax(-1))

    def count(self, labels: np.ndarray, predictions: np.ndarray) -> None:
        """Class indices of equal shapes; what has a negative label is left out."""
        pairs = np.stack([np.asarray(labels).reshape(-1), np.asarray(predictions).reshape(-1)], 1)
        self._size = max(self._size, int(pairs.max(initial=-1)) + 1)
        for pair, count in zip(*np.unique(pairs[pairs[:, 0] >= 0], axis=0, return_counts=True)):
            key = (int(pair[0]), int(pair[1]))
            self._counts[key] = self._counts.get(key, 0) + int(count)

    def result(self) -> dict[str, float]:
        return {}

    def details(self) -> Details:
        """The rows are in the order of the classes, by number where they have no name."""
        hits, expected, predicted = np.zeros((3, self._size), np.int64)
        for (label, prediction), count in self._counts.items():
            expected[label] += count
            predicted[prediction] += count
            hits[label] += count if label == prediction else 0
        names = [*self._names, *(str(number) for number in range(len(self._names), self._size))]
        confusion = None
        if self._size <= _MOST_CLASSES:
            confusion = np.zeros((self._size, self._size), np.int64)
            for pair, count in self._counts.items():
                confusion[pair] = count
        return Details(class_table(names, hits, expected, predicted), confusion)


def class_table(
    names: Sequence[str], hits: np.ndarray, expected: np.ndarray, predicted: np.ndarray
) -> ClassTable:
    """Precision, recall, F1 and support of each class, from how many are right, there, and found, int [C]."""
    rows = tuple(
        (name, _ratio(hit, guessed), _ratio(hit, there), _ratio(2 * hit, there + guessed), int(there))
        for name, hit, there, guessed in zip(names, hits.tolist(), expected.tolist(), predicted.tolist())
    )
    return ClassTable(("class", "precision", "recall", "f1", "support"), rows)


def _curve_rows(curves: Mapping[str, Curve]) -> Iterator[tuple[Cell, ...]]:
    """As many points of each as a chart shows."""
    for name, (recall, precision) in curves.items():
        at = np.unique(np.linspace(0, len(recall) - 1, min(len(recall), _MOST_POINTS)).round().astype(int))
        for index in at.tolist():
            yield name, round(float(recall[index]), 4), round(float(precision[index]), 4)


def _ratio(count: int, whole: int) -> float | None:
    return count / whole if whole else None


def _show(cell: Cell) -> str:
    if cell is None:
        return "-"
    return f"{100 * cell:.1f}" if isinstance(cell, float) else str(cell)


def _to_csv(rows: Sequence[Sequence[Cell]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        ["" if cell is None else cell for cell in row] for row in rows
    )
    return text.getvalue()
