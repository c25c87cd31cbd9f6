"""SelectedRows: some rows of a tall array, on the host: what sparse gradients are in Paddle's programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from framework.paddle._kernel.lod_tensor import LoDTensor


class SelectedRows:
    """Values of the rows `rows()` of an array of `height()` rows; a row may occur more than once."""

    def __init__(self, rows: Sequence[int] = (), height: int = 0) -> None:
        self._rows, self._height = [int(row) for row in rows], int(height)
        self._tensor = LoDTensor()

    def rows(self) -> list[int]:
        """The numbers of the rows."""
        return list(self._rows)

    def set_rows(self, rows: Sequence[int]) -> None:
        """Set the numbers of the rows."""
        self._rows = [int(row) for row in rows]

    def height(self) -> int:
        """How many rows the whole array has."""
        return self._height

    def set_height(self, height: int) -> None:
        """Set how many rows the whole array has."""
        self._height = int(height)

    def sync_index(self) -> None:
        """Accepted: rows are found without an index."""

    def get_tensor(self) -> LoDTensor:
        """The values of the rows."""
        return self._tensor

    def numel(self) -> int:
        """How many numbers the rows hold."""
        return int(np.asarray(self._tensor).size)

    def dense(self) -> np.ndarray:
        """The whole array: zeros elsewhere, rows that occur more than once added."""
        values = np.asarray(self._tensor)
        out = np.zeros((max(self._height, max(self._rows, default=-1) + 1), *values.shape[1:]), values.dtype)
        if self._rows:
            np.add.at(out, self._rows, values)
        return out
