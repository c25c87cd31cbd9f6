"""Bodies of TensorFlow Serving's REST API, and of KServe's first protocol: samples in rows or in columns.

Source: TensorFlow Serving, RESTful API, predict. Rows are `{"instances": [sample, ...]}`, answered with
`{"predictions": [...]}`; columns `{"inputs": {name: [value, ...]}}`, or the values alone where there is one input,
answered with `{"outputs": ...}`. Where the values are numbers, they are tensors of the model's program; an output
stands without its name where it is the only one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from framework.core.errors import InputError
from framework.core.types import JSON
from framework.inference.engine import TensorShape
from framework.serving.errors import BadRequestError
from framework.serving.tensors import nested_numbers, read_nested

Envelope = Literal["predictions", "outputs"]
"""What an answer is below: predictions of rows, outputs of columns."""


@dataclass(frozen=True)
class TensorTable:
    """Numbers for the inputs of a program.

    Attributes:
        values: Rows as they came, or columns: a mapping by name, or the values of the only input.
    """

    envelope: Envelope
    values: JSON


def holds_numbers(values: JSON) -> bool:
    """Whether the first value below lists and objects is a number."""
    while isinstance(values, list | dict) and values:
        values = values[0] if isinstance(values, list) else next(iter(values.values()))
    return isinstance(values, int | float)


def holds_objects(values: JSON) -> bool:
    """Whether lists hold objects."""
    while isinstance(values, list) and values:
        values = values[0]
    return isinstance(values, dict)


def to_rows(columns: JSON) -> tuple[list[JSON], bool]:
    """A row of each sample of columns, and whether there is a list of them: a value alone is of one sample.

    Raises: BadRequestError, where the columns differ in length.
    """
    named = columns if isinstance(columns, dict) and "b64" not in columns else {"": columns}
    if not any(isinstance(column, list) for column in named.values()):
        return [columns], False
    lengths = {name: len(column) if isinstance(column, list) else 1 for name, column in named.items()}
    if len(set(lengths.values())) > 1:
        raise BadRequestError(
            "the columns differ in length",
            where="inputs",
            received=", ".join(f"{name[:50]}: {length}" for name, length in lengths.items()),
            allowed="a value of each sample in each column",
        )
    lists = [column if isinstance(column, list) else [column] for column in named.values()]
    if set(named) == {""}:
        return list(lists[0]), True
    return [dict(zip(named, values)) for values in zip(*lists)], True


def wrap_entries(
    envelope: Envelope, entries: Sequence[Mapping[str, JSON]], batched: bool
) -> Mapping[str, JSON]:
    """The answer of results, which stand in columns by their names where the request did."""
    if envelope == "predictions":
        return {envelope: list(entries)}
    if not batched and len(entries) == 1:
        return {envelope: dict(entries[0])}
    names = dict.fromkeys(name for entry in entries for name in entry)
    return {envelope: {name: [entry.get(name) for entry in entries] for name in names}}


def read_tensors(table: TensorTable, declared: Mapping[str, TensorShape]) -> dict[str, np.ndarray]:
    """The inputs of a program [N, ...]. Raises: InputError, where they are not those that it takes."""
    columns = table.values
    if table.envelope == "predictions":
        columns = _to_columns(table.values)
    if not isinstance(columns, dict):
        if len(declared) > 1:
            raise InputError(
                "the model has several inputs, which need their names",
                where="instances" if table.envelope == "predictions" else "inputs",
                allowed=", ".join(declared),
            )
        columns = {next(iter(declared)): columns}
    if set(columns) != set(declared):
        raise InputError(
            "the model has other inputs",
            where="instances" if table.envelope == "predictions" else "inputs",
            received=", ".join(name[:80] for name in columns),
            allowed=", ".join(declared),
        )
    return {
        name: read_nested(columns[name], spec.dtype, f"input {name!r}") for name, spec in declared.items()
    }


def _to_columns(rows: JSON) -> JSON:
    assert isinstance(rows, list)
    if not any(isinstance(row, dict) for row in rows):
        return rows
    columns: dict[str, list[JSON]] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, dict) or (number and row.keys() != columns.keys()):
            raise InputError(
                "the rows name other inputs than the first one does",
                where=f"instances[{number}]",
                received=", ".join(row)[:200] if isinstance(row, dict) else type(row).__name__,
                allowed=", ".join(columns),
            )
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    return dict[str, JSON](columns)


def write_tensors(table: TensorTable, outputs: Mapping[str, np.ndarray]) -> Mapping[str, JSON]:
    """The answer of a program's outputs.

    Raises: InputError: a value is NaN or infinite, or an output has no row for each sample and rows are asked for.
    """
    values = {name: nested_numbers(array, name) for name, array in outputs.items()}
    if table.envelope == "outputs":
        return {"outputs": next(iter(values.values())) if len(values) == 1 else dict[str, JSON](values)}
    assert isinstance(table.values, list)
    count = len(table.values)
    for name, array in outputs.items():
        if array.shape[:1] != (count,):
            raise InputError(
                "an output has no row for each sample",
                where=f"output {name!r}",
                received=f"shape {list(array.shape)}, of {count} samples",
                fix='send columns: {"inputs": {name: values}}',
            )
    if len(values) == 1:
        return {"predictions": next(iter(values.values()))}
    rows = zip(*(value for value in values.values() if isinstance(value, list)))
    return {"predictions": [dict(zip(values, row)) for row in rows]}
