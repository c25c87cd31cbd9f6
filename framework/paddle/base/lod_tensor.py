"""Arrays of sequences of several lengths, one after the other in the first axis, as older programs feed them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

Lengths = Sequence[Sequence[int]]


class LoDTensor:
    """An array with the lengths of its sequences: `lengths[level]` counts the entries of the next level, the last one
    rows. It can be fed; operations take Tensors."""

    def __init__(self) -> None:
        self._array = np.zeros(0, np.float32)
        self._lengths: list[list[int]] = []

    def set(self, array: ArrayLike, place: object = None) -> None:
        """Take the values of an array."""
        self._array = np.array(array)

    def set_recursive_sequence_lengths(self, lengths: Lengths) -> None:
        """Take the lengths of all levels."""
        self._lengths = [[int(length) for length in level] for level in lengths]

    def recursive_sequence_lengths(self) -> list[list[int]]:
        """The lengths of all levels."""
        return self._lengths

    def set_lod(self, lod: Lengths) -> None:
        """Take the lengths from where each sequence begins and the last one ends."""
        self._lengths = [np.diff(level).tolist() for level in lod]

    def lod(self) -> list[list[int]]:
        """Where the sequences of each level begin, and the last one ends."""
        return [[0, *np.cumsum(level).tolist()] for level in self._lengths]

    def has_valid_recursive_sequence_lengths(self) -> bool:
        """Whether each level counts the entries of the next, and the last one the rows."""
        counts = [len(level) for level in self._lengths[1:]] + [len(self._array)]
        return all(sum(level) == count for level, count in zip(self._lengths, counts))

    def shape(self) -> list[int]:
        """The sizes of the array."""
        return list(self._array.shape)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._array, dtype)

    def __len__(self) -> int:
        return len(self._array)


def create_lod_tensor(
    data: ArrayLike | LoDTensor, recursive_seq_lens: Lengths, place: object = None
) -> LoDTensor:
    """An array, or rows of lists of different lengths, with the lengths of its sequences.

    Raises:
        AssertionError: the lengths do not fit the rows.
    """
    if isinstance(data, list):
        flat = [row for rows in data for row in rows] if data and isinstance(data[0], list) else data
        if [len(rows) for rows in data if isinstance(rows, list)] != list(recursive_seq_lens[-1]):
            raise AssertionError("data and recursive_seq_lens do not match")
        array = np.array(flat, np.int64).reshape(len(flat), -1)
    else:
        array = np.asarray(data)
    tensor = LoDTensor()
    tensor.set(array, place)
    tensor.set_recursive_sequence_lengths(recursive_seq_lens)
    if not tensor.has_valid_recursive_sequence_lengths():
        raise AssertionError("the provided recursive_seq_lens info is invalid")
    return tensor


def create_random_int_lodtensor(
    recursive_seq_lens: Lengths, base_shape: Sequence[int], place: object, low: int, high: int
) -> LoDTensor:
    """Random integers from `low` to `high`, both included, in rows of `base_shape`."""
    shape = (sum(recursive_seq_lens[-1]), *base_shape)
    return create_lod_tensor(np.random.randint(low, high + 1, shape, np.int64), recursive_seq_lens, place)
