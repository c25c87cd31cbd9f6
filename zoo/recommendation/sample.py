"""A row of a table with what transforms made of it: the sample of this domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from framework.core.sample import Sample

Value = str | int | float | bool | None | Sequence["Value"]
"""What stands in a column: as text, or with the type that JSON or Parquet has; several values are a list."""


@dataclass(frozen=True, eq=False)
class RowSample(Sample):
    """One row: an impression with its features, or a user with what was taken.

    Attributes:
        values: By column.
        arrays: What goes to the device, by name.
        is_complete: Whether `values` are a line of a table, which has all columns: one that is not there is a fault,
            no missing value.
        warnings: What of the row was not read.
    """

    values: Mapping[str, Value] = field(default_factory=dict)
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    is_complete: bool = False
