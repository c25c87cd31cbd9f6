"""Samples to a batch: arrays are stacked, dicts and tuples are collated field by field."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np

from framework.core.errors import ConfigError, ShapeError
from framework.core.types import PyTree
from framework.io.sampler import check_buckets


@runtime_checkable
class ArrayLike(Protocol):
    """What numpy makes an array of, such as an array of jax or of torch."""

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray: ...


def default_collate(samples: Sequence[PyTree]) -> PyTree:
    """One batch of samples of one structure, as `paddle.io` makes it.

    Arrays and numbers become one array with a new first axis, a mapping a dict, a tuple or list a list of fields;
    strings and bytes stay a list.

    Raises:
        ShapeError: arrays of different shapes, or samples of different structures.
        ConfigError: a sample is something else, such as a `vision.Sample` that nothing packed into arrays.
    """
    return _collate(list(samples), ())


def _collate(values: list[PyTree], path: tuple[object, ...]) -> PyTree:
    first = values[0]
    if isinstance(first, (str, bytes)):
        return values
    if isinstance(first, Mapping):
        if any(not isinstance(value, Mapping) or value.keys() != first.keys() for value in values):
            keys = {tuple(value) if isinstance(value, Mapping) else type(value).__name__ for value in values}
            raise _structure_error(path, "keys", sorted(map(str, keys)))
        return {key: _collate([value[key] for value in values], (*path, key)) for key in first}
    if isinstance(first, (tuple, list)):
        counts = {
            len(value) if isinstance(value, (tuple, list)) else type(value).__name__ for value in values
        }
        if len(counts) > 1:
            raise _structure_error(path, "numbers of fields", sorted(map(str, counts)))
        return [_collate(list(field), (*path, index)) for index, field in enumerate(zip(*values))]
    if isinstance(first, (numbers.Number, np.generic, ArrayLike)):
        arrays = [np.asarray(value) for value in values]
        if len({array.shape for array in arrays}) > 1:
            index = next(n for n, array in enumerate(arrays) if array.shape != arrays[0].shape)
            raise ShapeError(
                "arrays of different shapes cannot be stacked",
                where=_name(path),
                received=f"{list(arrays[0].shape)} in the first sample of the batch, "
                f"{list(arrays[index].shape)} in sample {index + 1}",
                allowed="one shape",
                fix="crop, resize or pad in a transform or in `pack`",
            )
        return np.stack(arrays)
    raise ConfigError(
        "this cannot be put into a batch",
        where=_name(path),
        received=type(first).__name__,
        allowed="arrays, numbers, strings, and dicts, tuples or lists of them",
        fix="give the loader `pack`, which makes a dict of arrays of a sample, or a `collate_fn`",
    )


def _structure_error(path: tuple[object, ...], what: str, received: object) -> ShapeError:
    return ShapeError(
        f"the samples of a batch have different {what}",
        where=_name(path),
        received=received,
        allowed="one structure",
    )


def _name(path: tuple[object, ...]) -> str:
    return ".".join(map(str, path)) or "sample"


@dataclass(frozen=True)
class PadToBucket:
    """Collates dicts of arrays after padding an axis of some of them, all to one of a few lengths.

    Attributes:
        buckets: Lengths, ascending; the smallest one that holds the longest array of the batch is taken.
        fill: The value that pads, by key. Other keys are only stacked.
        axes: The axis that is padded, by key, where it is not the first.

    Raises:
        ShapeError: an array is longer than the last bucket.
    """

    buckets: tuple[int, ...]
    fill: Mapping[str, int | float | bool]
    axes: Mapping[str, int] = field(default_factory=dict)

    def for_length(self, length: int) -> PadToBucket:
        """The same with one bucket: what pads some samples of a batch as the whole batch is padded."""
        return replace(self, buckets=(length,))

    def __post_init__(self) -> None:
        check_buckets("PadToBucket.buckets", self.buckets)

    def __call__(self, samples: Sequence[Mapping[str, np.ndarray]]) -> dict[str, PyTree]:
        longest = max(
            sample[key].shape[self.axes.get(key, 0)]
            for sample in samples
            for key in self.fill
            if key in sample
        )
        length = next((bucket for bucket in self.buckets if bucket >= longest), None)
        if length is None:
            raise ShapeError(
                "a sample fits no bucket",
                where="PadToBucket",
                received=f"length {longest}",
                allowed=f"up to {self.buckets[-1]}",
                fix="cut samples, or add a larger bucket",
            )
        return default_collate(
            [{key: self._pad(key, value, length) for key, value in s.items()} for s in samples]
        )

    def _pad(self, key: str, value: np.ndarray, length: int) -> np.ndarray:
        if key not in self.fill:
            return value
        widths = [(0, 0)] * value.ndim
        axis = self.axes.get(key, 0)
        widths[axis] = (0, length - value.shape[axis])
        return np.pad(value, widths, constant_values=self.fill[key])
