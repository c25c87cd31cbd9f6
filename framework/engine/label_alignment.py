"""Class names of a data set onto those that come with a model's weights, so that one is evaluated on the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from framework.core.errors import InputError
from framework.engine.task import Task

_MAX_NAMES = 10
D = TypeVar("D")


@runtime_checkable
class DeclaredClasses(Protocol):
    """A data set whose config may name its classes, and which refuses others in its files then."""

    def infer_classes(self) -> DeclaredClasses:
        """The same data with the classes that its files have."""
        ...


@dataclass(frozen=True)
class LabelAlignment:
    """The classes of a data set in the order of a model's.

    Attributes:
        labels: The model's names, then those of the data that the model does not know. A number behind the model's own
            is never predicted, so such a class counts as an error, while -1 would leave it out.
        indices: Of each class of the data, its place in `labels`.
        unknown: Names of the data that the model does not know.
        missing: Names of the model that the data lack.
    """

    labels: tuple[str, ...]
    indices: tuple[int, ...]
    unknown: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def describe(self) -> str:
        """One line on the names that differ; "" where none does."""
        sentences = []
        if self.unknown:
            sentences.append(f"unknown to the model, each counted as an error: {_list(self.unknown)}")
        if self.missing:
            sentences.append(f"known to the model, but not in the data: {_list(self.missing)}")
        return "classes " + "; ".join(sentences) if sentences else ""

    def remap(self, classes: np.ndarray) -> np.ndarray:
        """Class indices of the data as places in `labels`; what is no class, such as -1 or 255, stays."""
        in_range = (classes >= 0) & (classes < len(self.indices))
        table = np.asarray((*self.indices, 0))  # the last entry stands for what is no class
        return np.where(in_range, table[np.where(in_range, classes, -1)], classes).astype(classes.dtype)


def align_labels(model_labels: Sequence[str], data_labels: Sequence[str]) -> LabelAlignment:
    """By name; by number where the names have nothing in common and are as many, such as words and their numbers.

    Raises:
        InputError: the model knows none of the names, and has another number of classes.
    """
    model, data = tuple(model_labels), tuple(data_labels)
    if not model or not data:
        return LabelAlignment(model or data, tuple(range(len(data))))
    indices = {name: place for place, name in enumerate(model)}
    if indices.keys().isdisjoint(data):
        if len(model) == len(data):
            return LabelAlignment(model, tuple(range(len(data))))
        raise InputError(
            "the model knows none of the classes of the data",
            where="data.eval.dataset",
            received=_list(data),
            allowed=f"the names that come with the weights: {_list(model)}",
        )
    unknown = tuple(name for name in dict.fromkeys(data) if name not in indices)
    labels = model + unknown
    indices = {name: place for place, name in enumerate(labels)}
    missing = tuple(name for name in model if name not in set(data))
    return LabelAlignment(labels, tuple(indices[name] for name in data), unknown, missing)


@dataclass(frozen=True)
class AlignedPack:
    """`task.pack_evaluated`, with the arrays of `task.label_arrays` by the alignment; processes can be sent it."""

    task: Task
    arrays: tuple[str, ...]
    alignment: LabelAlignment

    def __call__(self, sample: object) -> dict[str, np.ndarray]:
        packed = self.task.pack_evaluated(sample)
        return packed | {name: self.alignment.remap(packed[name]) for name in self.arrays if name in packed}


def infer_classes(dataset: D) -> D:
    """The data set with all classes of its files, where it declares some; else as it is."""
    return dataset.infer_classes() if isinstance(dataset, DeclaredClasses) else dataset  # type: ignore[return-value]


def _list(names: Sequence[str]) -> str:
    """The number of names, and the first of them."""
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"{len(names)} ({', '.join(names[:_MAX_NAMES])}{more})"
