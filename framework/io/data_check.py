"""The check of a data set before it is trained on: what the reports and commands of all domains have in common."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from framework.core.errors import OarError
from framework.io.skipped import describe_skipped
from framework.io.weighting import LabelledDataset

SHOWN = 10  # of a list of faults
_T_co = TypeVar("_T_co", covariant=True)
Observe = Callable[[Any], None]
"""Is called with every sample that a check reads."""


class Samples(Protocol[_T_co]):
    """Samples by their index."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> _T_co: ...


class Report(ABC):
    """What a check found. `str` makes a page of it."""

    @abstractmethod
    def summary(self) -> list[str]:
        """The lines above the faults."""

    @abstractmethod
    def faults(self) -> Mapping[str, Sequence[str]]:
        """What is wrong with the data, by the title of its list; all titles are shown, with their numbers."""

    @property
    def is_clean(self) -> bool:
        return not any(self.faults().values())

    def __str__(self) -> str:
        lines = self.summary()
        for title, faults in self.faults().items():
            lines.append(f"{len(faults)} {title}")
            lines += [f"  {line}" for line in faults[:SHOWN]]
            lines += [f"  ... and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
        return "\n".join(lines)


def nothing_to_learn(count: int, what: str) -> Mapping[str, Sequence[str]]:
    """The fault of a part without a single thing to learn or to be judged by; none where there are some.

    A training would end at its first evaluation, or learn nothing to its end.
    """
    return {} if count else {"parts with nothing to learn": (f"there is no {what}",)}


def format_table(columns: Mapping[str, int], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table: names to the left, and to their right the `columns`, each with its width, of texts."""
    lines = [("class", *columns), *rows]
    width = max(len(name) for name, *_ in lines)
    return [
        f"{name:<{width}}" + "".join(f"  {cell:>{size}}" for cell, size in zip(cells, columns.values()))
        for name, *cells in lines
    ]


def read_samples(
    dataset: Samples[_T_co], broken: list[str], observe: Observe | None = None
) -> Iterator[_T_co]:
    """The samples that can be read; a line about each of the others is added to `broken`, the first of a kind with what
    to do."""
    remedies: set[str] = set()
    for index in range(len(dataset)):
        try:
            sample = dataset[index]
        except Exception as error:  # a check goes on, whatever a data set of the user raises
            skipped = describe_skipped(error, index, dataset)
            remedy = str(error.fix or "") if isinstance(error, OarError) else ""
            first = f"; what to do: {remedy}" if remedy and remedy not in remedies else ""
            remedies.add(remedy)
            broken.append(f"{skipped.where}: {skipped.reason}{first}")
        else:
            if observe is not None:
                observe(sample)
            yield sample


@dataclass(frozen=True)
class SampleReport(Report):
    """What can be said of any data set."""

    samples: int
    classes: tuple[tuple[str, int], ...]
    """Name and number of samples; none where the data set does not say."""
    broken: tuple[str, ...]
    out_of_range: tuple[str, ...]

    def summary(self) -> list[str]:
        rows = [(name, str(count)) for name, count in self.classes]
        return [f"{self.samples} samples", *(format_table({"samples": 8}, rows) if rows else ())]

    def faults(self) -> Mapping[str, Sequence[str]]:
        return {
            "samples that cannot be read": self.broken,
            "samples with labels that are no class": self.out_of_range,
        }


def validate_samples(dataset: Samples[object], observe: Observe | None = None) -> SampleReport:
    """Reads every sample of a data set of whatever kind."""
    broken: list[str] = []
    for _ in read_samples(dataset, broken, observe):
        pass
    if not isinstance(dataset, LabelledDataset):
        return SampleReport(len(dataset), (), tuple(broken), ())
    names, counts, wrong = dataset.class_names, np.zeros(len(dataset.class_names), int), []
    for index, labels in enumerate(dataset.read_labels()):
        values = np.unique(labels)
        fits = (values >= 0) & (values < len(names))
        counts[values[fits]] += 1
        if not fits.all():
            wrong.append(f"sample {index}: {values[~fits].tolist()}, but there are {len(names)} classes")
    return SampleReport(len(dataset), tuple(zip(names, counts.tolist())), tuple(broken), tuple(wrong))


def print_reports(reports: Iterable[tuple[str, Report]]) -> int:
    """Prints each report, below its title unless that is empty, and gives the exit status of the command.

    0: the data have no fault; 1: they have; 2: they cannot be read, so that making a report raised an OarError.
    """
    clean = True
    try:
        for title, report in reports:
            print(f"== {title}\n{report}" if title else report)
            clean &= report.is_clean
    except OarError as error:
        print(error, file=sys.stderr)
        return 2
    return 0 if clean else 1
