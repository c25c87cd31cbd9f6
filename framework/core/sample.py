"""What a data set yields and transforms change, whatever it is of: the base of the samples of images and of texts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from framework.core.errors import ShapeError


@dataclass(frozen=True, eq=False)
class Sample:
    """One example with what is known about it. A kind of data adds its fields, None where they are not known.

    Arrays are shared, not copied: a transform makes new ones and calls `replace`.
    """

    id: str | int | None = field(default=None, kw_only=True)
    """Names the sample in messages and results."""

    def replace(self, **changes: object) -> Self:
        """A sample with the named fields changed; the rest is shared with this one."""
        return dataclasses.replace(self, **changes)

    def pack(self, *names: str) -> dict[str, np.ndarray]:
        """The arrays of these fields by name, as batches take them; fields that are None are left out."""
        arrays = {name: getattr(self, name) for name in names}
        return {name: np.asarray(value) for name, value in arrays.items() if value is not None}

    def check_ranks(self, ranks: Mapping[str, tuple[int, ...]]) -> None:
        """Raises: ShapeError, where the array of a field has another number of axes than one of these."""
        for name, allowed in ranks.items():
            array = getattr(self, name)
            if array is not None and array.ndim not in allowed:
                raise ShapeError(
                    "a field has the wrong rank",
                    where=self.where(name),
                    received=list(array.shape),
                    allowed=f"{' or '.join(map(str, allowed))} dimensions",
                )

    def where(self, name: str) -> str:
        """A field of this sample, for messages."""
        return f"{type(self).__name__}.{name}" if self.id is None else f"sample {self.id!r}, {name}"
