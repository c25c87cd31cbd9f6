"""paddle.base.executor: the Executor, and how what is fed becomes a Tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from framework.paddle._kernel.dtypes import to_numpy
from framework.paddle._kernel.lod_tensor import LoDTensor
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.static.executor import FetchHandler as FetchHandler


def _as_lodtensor(data: object, place: object, dtype: object = None) -> LoDTensor:
    """An array, a list or a number as a LoDTensor.

    Raises:
        AssertionError: it is no array, and there is no `dtype`.
        TypeError: it is something else, or lists of different lengths.
    """
    if not isinstance(data, np.ndarray):
        assert dtype is not None, "The dtype should be given when feed data is not np.ndarray"
        if not np.isscalar(data) and not isinstance(data, list | tuple):
            raise TypeError(f"Convert data of type {type(data)} to Tensor is not supported")
        try:
            data = np.array(data).astype(to_numpy(dtype))
        except ValueError as error:
            raise TypeError(
                "Faild to convert input data to a regular ndarray: lists of different lengths"
            ) from error
    tensor = LoDTensor()
    tensor.set(data, place)
    return tensor


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
