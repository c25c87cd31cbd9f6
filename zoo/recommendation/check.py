"""The check of rows or of a log of interactions: what can be read, how columns are filled, how labels are balanced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from framework.core.errors import OarError
from framework.io import data_check
from framework.io.data_check import Observe, read_samples
from framework.io.dataset import Dataset, IterableDataset
from zoo.recommendation.sample import RowSample

_COLUMNS, _VALUES = 50, 100_000


@dataclass(frozen=True)
class Report(data_check.Report):
    """What `validate` found.

    Attributes:
        rows: How many could be read.
        columns: Of each column its name, rows where it is missing, different values (up to 100,000 are counted).
        labels: Values of the column `label` or `click` and how many rows have them.
        broken: Rows that cannot be read, and why.
    """

    rows: int
    columns: tuple[tuple[str, int, int], ...]
    labels: tuple[tuple[str, int], ...]
    broken: tuple[str, ...]

    def summary(self) -> list[str]:
        shares = [
            f"{count} of label {value} ({count / max(1, self.rows):.1%})" for value, count in self.labels
        ]
        rows = [
            f"  {name}: {missing / max(1, self.rows):.1%} missing, {values}{' or more' * (values >= _VALUES)} values"
            for name, missing, values in self.columns[:_COLUMNS]
        ]
        more = len(self.columns) - _COLUMNS
        return [
            f"{self.rows} rows, {len(self.columns)} columns" + (f": {', '.join(shares)}" if shares else ""),
            *rows,
            *([f"  and {more} more columns"] if more > 0 else ()),
        ]

    def faults(self) -> Mapping[str, Sequence[str]]:
        return {"rows that cannot be read": self.broken}


def validate(dataset: Dataset, observe: Observe | None = None) -> Report:
    """Reads every row. Raises: OarError, where the files cannot be read at all."""
    broken: list[str] = []
    count, missing = 0, Counter[str]()
    values: dict[str, set[object]] = {}
    labels = Counter[str]()
    samples = (
        _read_stream(dataset, broken)
        if isinstance(dataset, IterableDataset)
        else read_samples(dataset, broken)
    )
    for sample in samples:
        if observe is not None:
            observe(sample)
        count += 1
        for name, value in sample.values.items():
            unique = values.setdefault(name, set())
            if value is None or value == "":
                missing[name] += 1
            elif len(unique) < _VALUES:
                unique.add(tuple(value) if isinstance(value, list) else value)
        label = next((sample.values[name] for name in ("label", "click") if name in sample.values), None)
        if label is not None:
            labels[str(label)] += 1
    balance = tuple(labels.most_common()) if len(labels) <= 10 else ()
    columns = tuple((name, missing[name], len(unique)) for name, unique in values.items())
    return Report(count, columns, balance, tuple(broken))


def _read_stream(dataset: IterableDataset, broken: list[str]) -> Iterator[RowSample]:
    try:
        yield from dataset
    except OarError as error:  # a stream cannot be read on behind an error
        broken.append(str(error))
