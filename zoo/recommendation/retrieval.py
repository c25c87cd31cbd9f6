"""The best items of scores, and of vectors by `framework/inference/vector_index.py`."""

from __future__ import annotations

import numpy as np

from framework.inference.vector_index import VectorIndex

ItemIndex = VectorIndex
"""Its name where items are what is looked for"""


def best_items(scores: np.ndarray, top: int, history: np.ndarray | None) -> tuple[list[int], list[float]]:
    """(index from 0, score) of the best `top` items of scores [V], where row i + 1 is item i; ties go to the lower one.

    `history` holds rows that are left out; row 0, padding, always is.
    """
    values = np.array(scores, np.float32)
    values[0] = -np.inf
    if history is not None:
        values[history] = -np.inf
    order = np.argsort(-values, kind="stable")[:top]
    order = order[np.isfinite(values[order])]
    return (order - 1).tolist(), values[order].tolist()
