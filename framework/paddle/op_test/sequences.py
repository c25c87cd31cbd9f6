"""The inputs with lengths that tests of sequences ask an OpTest for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Lod = list[list[int]]


class SequenceInputs:
    """Arrays of rows whose lengths are those of one sequence, or of sequences of which some are empty."""

    def get_sequence_batch_size_1_input(
        self, lod: Lod | None = None, shape: Sequence[int] | None = None
    ) -> tuple[np.ndarray, Lod]:
        """(rows, lengths) of one sequence."""
        return _rows(shape or [13, 23]), lod or [[13]]

    def get_sequence_instance_size_0_input(
        self, lod: Lod | None = None, shape: Sequence[int] | None = None
    ) -> tuple[np.ndarray, Lod]:
        """(rows, lengths) of sequences of which several have no rows."""
        return _rows(shape or [12, 10]), lod or [[0, 0, 4, 0, 3, 0, 0, 5, 0, 0]]

    def lod_has_single_zero(self, lod: Sequence[int]) -> bool:
        """Whether one length of 0 stands alone between others."""
        return any(a and not b and c for a, b, c in zip(lod, lod[1:], lod[2:]))

    def lod_has_continuous_zero(self, lod: Sequence[int]) -> bool:
        """Whether two lengths of 0 stand side by side between others."""
        return any(a and not b and not c and d for a, b, c, d in zip(lod, lod[1:], lod[2:], lod[3:]))


def _rows(shape: Sequence[int]) -> np.ndarray:
    return np.random.uniform(0.1, 1, shape).astype("float32")
