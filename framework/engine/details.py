"""What an evaluation tells of each class, as a table and a confusion matrix, in files."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from framework.vision import charts, image

Cell = str | int | float | None
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


@dataclass(frozen=True)
class Details:
    """Of one evaluation: `confusion` [C, C] counts by label and prediction; None where there is no such thing."""

    classes: ClassTable
    confusion: np.ndarray | None = None

    def write(self, folder: Path) -> list[Path]:
        """per_class.csv, and of a confusion matrix confusion.csv and confusion.png; returns what was written."""
        folder.mkdir(parents=True, exist_ok=True)
        texts = {"per_class.csv": self.classes.to_csv()}
        names = [str(row[0]) for row in self.classes.rows]
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
