"""Images with several classes each, or with none: the data set, the task and its scores."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config.registry import register
from framework.core.errors import ConfigError, InputError
from framework.engine.task import Batch, Losses, Metric, Task
from framework.io.dataset import LazyDataset
from framework.nn import functional as F
from framework.vision.dataset_files import abbreviate, find_missing, read_image, read_lines
from framework.vision.deep_samples import ValueRange
from framework.vision.normalize import Normalize
from framework.vision.sample import Sample
from zoo.classification.data import read_class_names
from zoo.classification.results import Classification, best_classes

_FLAGS = ("0", "1", "0.0", "1.0")


class _Index(NamedTuple):
    names: list[str]
    labels: list[np.ndarray]
    class_names: tuple[str, ...]


@register("dataset")
@dataclass(frozen=True)
class MultiLabelList(LazyDataset):
    """Images named in a table, a line each, with any number of classes:

    * `a.jpg,cat;dog`: names with `label_separator` between them, or nothing for an image of no class;
    * `a.jpg,1,0,1` below a first line with the names of the columns, as Roboflow's `_classes.csv`;
    * `a.jpg<tab>1,0,1`, as PaddleClas' lists: with `separator` a tab and `label_separator` a comma, names in
      `labels_file`, or numbers.

    Paths are relative to `root`, that of the list to it or to the current folder. Without `labels_file` (one name a
    line) the classes are the names of the columns, or the sorted names in the list. `value_range` is that of
    ImageFolder.

    Raises:
        ConfigError: a separator is empty.
        InputError: at the first use, the list cannot be read, has lines with other columns or unknown names, or images
            are not there. At an access, the image cannot be read.
    """

    root: Path
    list_file: Path
    labels_file: Path | None = None
    separator: str = ","
    label_separator: str = ";"
    header: bool = False
    value_range: ValueRange | None = None

    def __post_init__(self) -> None:
        if not self.separator or not self.label_separator:
            raise ConfigError("a separator is empty", where="MultiLabelList", allowed="a comma, a tab, …")

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes by index."""
        return self._index.class_names

    def __len__(self) -> int:
        return len(self._index.names)

    def read_labels(self) -> Sequence[np.ndarray]:
        """The class indices [K] of each sample, without its image."""
        return self._index.labels

    def __getitem__(self, index: int) -> Sample:
        where = Path(self.root) / self._index.names[index]
        pixels = read_image(
            where, where, otherwise=f"take it out of {self.list_file}", value_range=self.value_range
        )
        return Sample(pixels, labels=self._index.labels[index], id=str(where))

    @cached_property
    def _index(self) -> _Index:
        inside = Path(self.root) / self.list_file
        file = inside if inside.is_file() else Path(self.list_file)
        lines = [line for line in read_lines(file, "list of images") if line.strip()]
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=self.separator)]
        head, rows = (rows[:1], rows[1:]) if self.header else ([], rows)
        if not rows:
            raise InputError("the list names no image", where=self.list_file, allowed="a line an image")
        stated = None if self.labels_file is None else read_class_names(self.labels_file)
        columns = tuple(head[0][1:]) if head else ()
        if len(columns) > 1 and all(set(row[1:]) <= set(_FLAGS) for row in rows):
            flags, class_names = [row[1:] for row in rows], stated or columns
        else:
            cells = [
                [label.strip() for label in (row[1:] or [""])[0].split(self.label_separator)] for row in rows
            ]
            if len(cells[0]) > 1 and all(
                set(one) <= set(_FLAGS) and len(one) == len(cells[0]) for one in cells
            ):
                flags, class_names = cells, stated or tuple(map(str, range(len(cells[0]))))
            else:
                return self._named(rows, cells, stated)
        wrong = [row[0] for row, one in zip(rows, flags) if len(one) != len(class_names)]
        if wrong:
            raise self._misfit(
                wrong, f"{len(class_names)} columns of 0 or 1: {abbreviate(list(class_names))}"
            )
        labels = [np.flatnonzero([float(flag) for flag in one]).astype(np.int32) for one in flags]
        return self._checked([row[0] for row in rows], labels, class_names)

    def _named(self, rows: list[list[str]], cells: list[list[str]], stated: tuple[str, ...] | None) -> _Index:
        names = [[label for label in one if label] for one in cells]
        class_names = stated or tuple(sorted({label for one in names for label in one}))
        number = {name: index for index, name in enumerate(class_names)}
        wrong = [
            f"{row[0]}: {', '.join(label for label in one if label not in number) or 'more columns'}"
            for row, one in zip(rows, names)
            if len(row) > 2 or any(label not in number for label in one)
        ]
        if wrong or not class_names:
            raise self._misfit(wrong, f"path, and names of {abbreviate(list(class_names)) or 'classes'}")
        labels = [np.array(sorted({number[label] for label in one}), np.int32) for one in names]
        return self._checked([row[0] for row in rows], labels, class_names)

    def _checked(self, names: list[str], labels: list[np.ndarray], class_names: tuple[str, ...]) -> _Index:
        if missing := find_missing(Path(self.root) / name for name in names):
            raise InputError(
                f"{len(missing)} of the {len(names)} images in {self.list_file} are not there",
                where=self.root,
                received=abbreviate([names[number] for number in missing]),
                fix="check root, or set header where the first line names the columns",
            )
        return _Index(names, labels, class_names)

    def _misfit(self, lines: list[str], allowed: str) -> InputError:
        return InputError(
            f"{len(lines)} lines of the list cannot be used",
            where=self.list_file,
            received=abbreviate(lines, "; "),
            allowed=allowed,
            fix="set header, separator and label_separator as the list has them",
        )


@register("task")
@dataclass(frozen=True)
class MultiLabelClassification(Task[Sample, nn.Layer]):
    """Any number of classes an image: binary cross-entropy on the logits [N, num_classes] of a model, a class alone.

    Attributes:
        threshold: The probability from which a class counts as there, in scores and in results.
        max_labels: The most classes of an image.
        auxiliary_weight: Of the loss of each further classifier, where a model gives a tuple of logits in training.
    """

    label_arrays: ClassVar[tuple[str, ...]] = ("label",)

    normalize: Normalize = field(default_factory=Normalize)
    threshold: float = 0.5
    max_labels: int = 32
    auxiliary_weight: float = 0.3

    def __post_init__(self) -> None:
        if not 0 < self.threshold < 1 or self.max_labels < 1:
            raise ConfigError(
                "a setting of the classification is out of range",
                received=f"threshold {self.threshold}, max_labels {self.max_labels}",
                allowed="0 < threshold < 1, max_labels from 1",
            )

    def pack(self, sample: Sample) -> dict[str, np.ndarray]:
        """`label` [max_labels] int32: class indices, then -1."""
        if sample.labels is None or sample.labels.ndim != 1 or len(sample.labels) > self.max_labels:
            raise InputError(
                "a sample has no list of classes, or too many",
                where=sample.id,
                received="no labels" if sample.labels is None else f"labels {list(sample.labels.shape)}",
                allowed=f"up to {self.max_labels} class indices",
                fix="set task.max_labels",
            )
        label = np.full(self.max_labels, -1, np.int32)
        label[: len(sample.labels)] = sample.labels
        return {"image": sample.image, "label": label}

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        outputs = jax.tree.leaves(model(self.normalize(batch["image"])))
        target = jax.nn.one_hot(batch["label"], outputs[0].shape[-1]).max(axis=1)
        first, *inner = (
            F.binary_cross_entropy_with_logits(logits.astype(jnp.float32), target) for logits in outputs
        )
        right = ((outputs[0] > 0) == (target > 0)).all(axis=-1).mean(dtype=jnp.float32)
        return Losses(sum((self.auxiliary_weight * loss for loss in inner), first), {"exact_match": right})

    def infer(self, model: nn.Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"scores": probabilities [N, num_classes], each of its own}."""
        return {"scores": jax.nn.sigmoid(model(self.normalize(inputs["image"])).astype(jnp.float32))}

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        return {"multi_label": MultiLabelScores(self.threshold)}

    def visualize(
        self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray], labels: tuple[str, ...]
    ) -> np.ndarray:
        """The first image of a batch with its best classes, [H, W, 3] uint8 RGB."""
        image = batch["image"][0]
        height, width = image.shape[:2]
        classes = best_classes(outputs["scores"][0], labels, 3)
        return Classification(classes, width=width, height=height, image=image).overlay()


class MultiLabelScores:
    """mAP, the mean over the classes that occur of their average precision, and of classes from a threshold on F1,
    precision and recall of all together, the mean F1 of the classes that occur, and the share of images whose classes
    are all right.

    Average precision is the sum of precision times the step of recall down the ranking, as scikit-learn's
    average_precision_score has it; images of one score count together.
    """

    higher_is_better = True

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self._scores: list[np.ndarray] = []
        self._labels: list[np.ndarray] = []

    def update(self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray]) -> None:
        self._scores.append(np.asarray(outputs["scores"], np.float64))
        self._labels.append(np.asarray(batch["label"]))

    def result(self) -> dict[str, float]:
        if not self._scores:
            return {"mAP": 0.0}
        scores, labels = np.concatenate(self._scores), np.concatenate(self._labels)
        classes = max(scores.shape[1], int(labels.max(initial=-1)) + 1)  # some unknown to the model
        scores = np.pad(scores, ((0, 0), (0, classes - scores.shape[1])))
        truth = np.zeros((len(scores), classes + 1), bool)
        np.put_along_axis(truth, np.where(labels < 0, classes, labels), True, axis=1)
        truth = truth[:, :classes]
        predicted = scores >= self.threshold
        hits, misses = (truth & predicted).sum(axis=0), (truth & ~predicted).sum(axis=0)
        alarms = (~truth & predicted).sum(axis=0)
        occurs = truth.any(axis=0)
        precisions = [average_precision(scores[:, c], truth[:, c]) for c in np.flatnonzero(occurs)]
        f1 = _share(2 * hits, 2 * hits + misses + alarms)
        return {
            "mAP": float(np.mean(precisions)) if precisions else 0.0,
            "f1": float(_share(2 * hits.sum(), 2 * hits.sum() + misses.sum() + alarms.sum())),
            "f1_macro": float(f1[occurs].mean()) if occurs.any() else 0.0,
            "precision": float(_share(hits.sum(), hits.sum() + alarms.sum())),
            "recall": float(_share(hits.sum(), hits.sum() + misses.sum())),
            "exact_match": float((predicted == truth).all(axis=1).mean()),
        }


def average_precision(scores: np.ndarray, truth: np.ndarray) -> float:
    """Of scores [N] and truth [N] bool with a true one or more."""
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(truth[order])
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)  # of each run of equal scores
    precision, recall = hits[last] / (last + 1), hits[last] / hits[-1]
    return float((np.diff(recall, prepend=0) * precision).sum())


def _share(count: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(count, whole, out=np.zeros(np.shape(count)), where=np.asarray(whole) > 0)
