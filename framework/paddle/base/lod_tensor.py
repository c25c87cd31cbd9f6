"""paddle.base.lod_tensor: values of sequences of different lengths, one behind another, with their lengths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from framework.paddle._kernel.lod_tensor import Lengths
from framework.paddle._kernel.lod_tensor import LoDTensor as LoDTensor
from framework.paddle._kernel.lod_tensor import LoDTensorArray as LoDTensorArray
from framework.paddle._kernel.tensor import Tensor


def flatten(data: Sequence[object], levels: int) -> tuple[list[object], list[list[int]]]:
    """The rows of nested sequences one behind another, and the lengths of each of `levels` levels."""
    lengths: list[list[int]] = []
    rows: list[object] = list(data)
    for _ in range(levels):
        lengths.append([len(row) for row in rows])  # type: ignore[arg-type]
        rows = [item for row in rows for item in row]  # type: ignore[attr-defined]
    return rows, lengths


def create_lod_tensor(
    data: LoDTensor | Tensor | np.ndarray | list[object], recursive_seq_lens: Lengths, place: object
) -> LoDTensor:
    """Values with the lengths of their sequences.

    Args:
        data: The rows of all sequences, or a list of sequences of numbers: those become rows of one number.
        recursive_seq_lens: The lengths, the outermost level first.
        place: Where they go; the Executor places them.

    Raises:
        TypeError: `data` is something else. AssertionError: the lengths are not those of the data.
    """
    result = LoDTensor()
    if isinstance(data, list):
        rows, lengths = flatten(data, 1)
        assert lengths == [list(level) for level in recursive_seq_lens], (
            f"data and recursive_seq_lens do not match: the sequences have the lengths {lengths}, "
            f"received {recursive_seq_lens}"
        )
        values = np.array(rows)
        result.set(values.reshape(*values.shape, 1), place)
    elif isinstance(data, LoDTensor | Tensor | np.ndarray):
        result.set(np.asarray(data), place)
    else:
        raise TypeError(
            f"data should be either a LoDTensor, a Numpy array or a list, but received {type(data).__name__}"
        )
    result.set_recursive_sequence_lengths(recursive_seq_lens)
    assert result.has_valid_recursive_sequence_lengths(), (
        f"the provided lod info is invalid: the lengths {recursive_seq_lens} do not add up to the rows of "
        f"{result.shape()}"
    )
    return result


def create_random_int_lodtensor(
    recursive_seq_lens: Lengths, base_shape: list[int], place: object, low: int, high: int
) -> LoDTensor:
    """Random int64 values of [low, high] with these lengths; `base_shape` is that of a row."""
    assert isinstance(base_shape, list), f"base_shape should be a list, received {type(base_shape).__name__}"
    shape = [sum(recursive_seq_lens[-1]), *base_shape]
    values = np.random.randint(low, high + 1, shape).astype("int64")
    return create_lod_tensor(values, recursive_seq_lens, place)
