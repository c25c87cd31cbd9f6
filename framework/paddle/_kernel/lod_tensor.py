"""LoDTensor: values on the host with the lengths of their sequences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.errors import ShapeError

Lengths = Sequence[Sequence[int]]


class LoDTensor:
    """Values on the host with the lengths of their sequences: what an Executor is fed with. Operations take Tensors.

    A level of lengths says how many entries of the next level a sequence holds; the last, how many rows.
    """

    def __init__(self, place: object = None) -> None:
        """An empty one; of the lengths of `[[2, 3]]`, which is given in place of a device."""
        self._values = np.zeros((0,), np.float32)
        self._lengths = [list(level) for level in place] if isinstance(place, list) else []
        self.array: LoDTensorArray | None = None  # of a variable of a scope that holds several

    def set(self, array: npt.ArrayLike, place: object, zero_copy: bool = False) -> None:
        """Take these values; lengths stay as they are. Raises: ShapeError: they are no numbers."""
        values = np.array(array)
        if values.dtype == object or values.dtype.kind in "US":
            raise ShapeError(
                "values of this kind are not taken", where="LoDTensor.set", received=type(array).__name__
            )
        self._values = values

    def shape(self) -> list[int]:
        """The sizes of the values."""
        return list(self._values.shape)

    _get_dims = shape

    def _set_dims(self, dims: Sequence[int]) -> None:
        """Take this shape, with zeros in it unless there are as many values."""
        fits = self._values.size == int(np.prod(dims))
        self.set(self._values.reshape(dims) if fits else np.zeros(tuple(dims), self._values.dtype), None)

    def _mutable_data(self, place: object, dtype: object) -> int:
        """Zeros of the type in the shape of `_set_dims`; returns their address."""
        self.set(np.zeros(self._values.shape, types.to_numpy(dtype)), place)
        return self._ptr()

    def _alloc_float(self, place: object) -> None:
        """float32 zeros in the shape of `_set_dims`."""
        self._mutable_data(place, "float32")

    def _alloc_double(self, place: object) -> None:
        """float64 zeros in the shape of `_set_dims`."""
        self._mutable_data(place, "float64")

    def _alloc_int(self, place: object) -> None:
        """int32 zeros in the shape of `_set_dims`."""
        self._mutable_data(place, "int32")

    def _ptr(self) -> int:
        """The address of the values."""
        return int(self._values.ctypes.data)

    def _numel(self) -> int:
        """How many values there are."""
        return int(self._values.size)

    def _clear(self) -> None:
        """Forget the values."""
        self._values = np.zeros((0,), np.float32)

    def _slice(self, begin: int, end: int) -> LoDTensor:
        """The rows from `begin` to before `end`."""
        result = LoDTensor()
        result._values = self._values[begin:end]
        return result

    def _copy_from(self, other: npt.ArrayLike, place: object = None, rows: int = -1) -> None:
        """Take the values of another one, or so many of its rows."""
        values = np.asarray(other)
        self.set(values if rows < 0 else values[:rows], place)

    def _share_data_with(self, other: LoDTensor) -> None:
        """Take the values of another one."""
        self.set(np.asarray(other), None)

    def _dtype(self) -> types.dtype:
        return types.of_numpy(self._values.dtype)

    def _as_type(self, dtype: types.dtype) -> LoDTensor:
        result = LoDTensor()
        result._values, result._lengths = self._values.astype(types.to_numpy(dtype)), list(self._lengths)
        return result

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._values, dtype)

    def _is_initialized(self) -> bool:
        return self._values.size > 0

    def _get_float_element(self, index: int) -> float:
        return float(self._values.ravel()[index])

    def _set_float_element(self, index: int, value: float) -> None:
        values = np.array(self._values)
        values.flat[index] = value
        self._values = values

    _get_double_element, _set_double_element = _get_float_element, _set_float_element

    def _get_complex64_element(self, index: int) -> complex:
        return complex(self._values.ravel()[index])

    def _set_complex64_element(self, index: int, value: complex) -> None:
        values = np.array(self._values)
        values.flat[index] = value
        self._values = values

    _get_complex128_element, _set_complex128_element = _get_complex64_element, _set_complex64_element

    def _to_dlpack(self) -> object:
        return self._values.__dlpack__()

    def recursive_sequence_lengths(self) -> list[list[int]]:
        """The lengths, the outermost level first."""
        return [list(level) for level in self._lengths]

    def set_recursive_sequence_lengths(self, recursive_sequence_lengths: Lengths) -> None:
        """Set the lengths.

        Raises:
            ShapeError: a level does not add up to the entries of the next one.
        """
        levels = [[int(length) for length in level] for level in recursive_sequence_lengths]
        if any(not level for level in levels) or any(
            sum(level) != len(inner) for level, inner in pairwise(levels)
        ):
            raise ShapeError(
                "the lengths of a level must add up to the number of entries of the next level",
                where="LoDTensor.set_recursive_sequence_lengths",
                received=str(recursive_sequence_lengths),
            )
        self._lengths = levels

    def has_valid_recursive_sequence_lengths(self) -> bool:
        """Whether the lengths of the last level add up to the rows."""
        return not self._lengths or (self._values.ndim > 0 and sum(self._lengths[-1]) == len(self._values))

    def lod(self) -> list[list[int]]:
        """The lengths as the offsets at which sequences begin, with the end."""
        return [[0, *np.cumsum(level).tolist()] for level in self._lengths]

    def set_lod(self, lod: Lengths) -> None:
        """Set the lengths by offsets. Raises: ShapeError: see `set_recursive_sequence_lengths`."""
        self.set_recursive_sequence_lengths([np.diff(level).tolist() for level in lod])

    def __str__(self) -> str:
        return f"{{lod: {self.lod()}, shape: {self.shape()}, dtype: {self._dtype().name}}}\n{self._values}"

    __repr__ = __str__


class LoDTensorArray(list[LoDTensor]):
    """Several of them."""
