"""Ranked rows, such as the boxes of a detector, where a file and its program do not give the same ones.

Which of many almost equal boxes survive suppression is up to rounding: on an image without objects, a detector that has
seen a few steps of training exchanges a third of its boxes when its own weights move by a millionth. So what counts are
rows with a score that somebody would look at, on images of the data, and no more of them may differ than the program
itself exchanges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import jax
import numpy as np

NamedArrays = Mapping[str, np.ndarray]
Weights = Mapping[str, "jax.Array | np.ndarray"]
Program = Callable[[Weights, NamedArrays], NamedArrays]
"""(weights, inputs) -> outputs"""
RANKED = "scores"  # the output by which rows, such as detections, are ranked
LEAST_SCORE = 0.05  # of the rows that count
TOLERANCE = 1e-4  # of the largest value of an output
LEAST_SCALE = (
    1e-2  # in its place where that is less, as of probabilities that are all almost 0: a millionth then
)
_MOVE = 1e-6  # of the weights, which a few roundings are
_DRAWS = 3


def ranked_outputs(outputs: NamedArrays) -> list[str]:
    """The names of the outputs that have a row for each score. Scores of pixels, [n, h, w], rank nothing, and to
    compare each of their lines with each would take gigabytes."""
    lead = outputs[RANKED].shape if RANKED in outputs else ()
    return [name for name, array in outputs.items() if len(lead) == 2 and array.shape[:2] == lead]


def unmatched_rows(
    expected: Sequence[np.ndarray], got: Sequence[np.ndarray], selected: np.ndarray | None = None
) -> float:
    """The share of rows [n, k, ...] of several arrays that have no equal row of the same sample among `got`; of those
    that are `selected` [n, k]."""
    scales = [TOLERANCE * max(float(np.abs(want).max(initial=0)), LEAST_SCALE) for want in expected]

    def rows(arrays: Sequence[np.ndarray]) -> np.ndarray:
        flat = [a.reshape(*a.shape[:2], -1) / scale for a, scale in zip(arrays, scales)]
        return np.concatenate(flat, -1)

    apart = np.abs(rows(expected)[:, :, None] - rows(got)[:, None]).max(-1).min(-1) > 1
    apart = apart if selected is None else apart[selected]
    return float(apart.mean()) if apart.size else 0.0


def exchanged(expected: NamedArrays, got: NamedArrays) -> float:
    """The share of rows of scores that count which only one of the two has; of all rows where none counts."""
    names = ranked_outputs(expected)
    one, other = ([outputs[name] for name in names] for outputs in (expected, got))
    counts = [outputs[RANKED] >= LEAST_SCORE for outputs in (expected, got)]
    if not (counts[0].any() or counts[1].any()):
        return max(unmatched_rows(one, other), unmatched_rows(other, one))
    return max(unmatched_rows(one, other, counts[0]), unmatched_rows(other, one, counts[1]))


def own_exchange(program: Program, weights: Weights, inputs: NamedArrays, expected: NamedArrays) -> float:
    """The share of rows that the program itself exchanges when its weights move by a few roundings."""
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(_DRAWS):
        moved = {
            name: array * (1 + _MOVE * rng.uniform(-1, 1, np.shape(array)).astype(np.float32))
            if array.dtype == np.float32
            else array
            for name, array in weights.items()
        }
        shares.append(exchanged(expected, program(moved, inputs)))
    return max(shares)
