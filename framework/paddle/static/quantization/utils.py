"""Integers of arrays, and variables of scopes, as Paddle's quantisation of static programs has them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from framework.paddle._kernel.modules import complete as _complete

if TYPE_CHECKING:
    from framework.paddle.static import Scope

Scales = Sequence[float] | float
_channelwise_quant_axis1_ops = ["conv2d_transpose", "mul", "matmul", "matmul_v2"]


def load_variable_data(scope: Scope, var_name: str) -> np.ndarray:
    """The values of a variable. Raises: AssertionError: the scope has none of the name."""
    variable = scope.find_var(var_name)
    assert variable is not None, f"Cannot find {var_name} in scope."
    return np.array(variable.get_tensor())


def set_variable_data(scope: Scope, place: object, var_name: str, np_value: np.ndarray) -> None:
    """Set a variable, where the scope has one of the name. Raises: AssertionError: the value is no array."""
    assert isinstance(np_value, np.ndarray), "The type of value should be numpy array."
    variable = scope.find_var(var_name)
    if variable is not None:
        variable.get_tensor().set(np_value, place)


def _along(scale: Scales, axis: int, x: np.ndarray) -> np.ndarray:
    """Scales so that they broadcast with `x`: one, or a list of one for each channel; 1e-8 for 0."""
    values = np.asarray(scale, np.float64)
    values = np.where(values == 0, 1e-8, values)
    if values.ndim == 0 or values.size == 1:
        return values.reshape(())
    axis = 1 if axis == -1 else axis  # Paddle takes the channels from axis 1 for all but 0
    return values.reshape([-1 if one == axis else 1 for one in range(x.ndim)])


def quant_tensor(
    x: np.ndarray, scale: Scales, quant_axis: int = 0, weight_bits: int = 8, onnx_format: bool = False
) -> np.ndarray:
    """`x` in units of integers of `weight_bits` bits, cut at `scale`; with `onnx_format` rounded, and cut after it.

    Raises:
        AssertionError: there are several scales, and `quant_axis` is none of -1, 0 and 1.
    """
    if isinstance(scale, list) and len(scale) > 1:
        assert quant_axis in (-1, 0, 1), "quant_axis should be 0 or 1 for now."
    largest, scales = (1 << (weight_bits - 1)) - 1, _along(scale, quant_axis, x)
    if onnx_format:
        return np.clip(np.round(x / scales * largest), -largest - 1, largest).astype(x.dtype)
    return (np.clip(x, -scales, scales) / scales * largest).astype(x.dtype)


def dequant_tensor(x: np.ndarray, scale: Scales, quant_axis: int = 0, weight_bits: int = 8) -> np.ndarray:
    """What integers stand for. Raises: AssertionError: `quant_axis` is neither 0 nor 1."""
    assert quant_axis in (0, 1), "quant_axis should be 0 or 1 for now."
    return (x * _along(scale, quant_axis, x) / ((1 << (weight_bits - 1)) - 1)).astype(x.dtype)


def bias_correction_w(
    x: np.ndarray, x_quant: np.ndarray, scale_v: Scales, quant_axis: int, weight_bits: int = 8
) -> np.ndarray:
    """Integers of weights whose means and deviations, of each channel where there are several scales, are those of `x`.

    Args:
        x: The weights; x_quant: their integers by `quant_tensor`.
    """
    integers = x_quant * np.asarray(_along(scale_v, quant_axis, x)) / ((1 << (weight_bits - 1)) - 1)
    channel = 0 if quant_axis == 0 else 1
    axes = tuple(one for one in range(x.ndim) if one != channel) if isinstance(scale_v, list) else None
    bias = (x - integers).mean(axes)
    ratio = x.std(axes) / (integers.std(axes) + 1e-8)
    if axes is not None:  # Paddle writes the values of channels one after the other over the whole array
        bias, ratio = np.resize(bias, x.shape), np.resize(ratio, x.shape)
    return quant_tensor(((bias + integers) * ratio).astype(x.dtype), scale_v, quant_axis, weight_bits)


def stable_sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + e^-x), without overflow."""
    power = np.exp(-np.abs(x))
    return np.where(x < 0, power / (1 + power), 1 / (1 + power))


def calculate_quant_cos_error(orig_tensor: np.ndarray, qdq_tensor: np.ndarray) -> np.floating:
    """The cosine of the angle between two arrays."""
    one, other = orig_tensor.reshape(-1), qdq_tensor.reshape(-1)
    return np.inner(one, other) / (np.linalg.norm(one) * np.linalg.norm(other))


def l2_loss(gt: np.ndarray, pred: np.ndarray) -> np.floating:
    """The mean squared difference."""
    return ((gt - pred) ** 2).mean()


class tqdm:
    """A progress bar on stderr, of `ncols` characters."""

    def __init__(self, total: int, bar_format: str = "Loading|{bar}", ncols: int = 80) -> None:
        self.total, self.bar_format, self.ncols, self.n = total, bar_format, ncols, 0

    def update(self, n: int = 1) -> None:
        """So many more are done."""
        self.n += n
        done = "=" * round(self.n / self.total * self.ncols)
        sys.stderr.write(
            f"\r{self.bar_format.split('|')[0]}|{done + '=>':<{self.ncols + 2}}| {self.n}/{self.total}"
        )
        sys.stderr.flush()

    def __enter__(self) -> tqdm:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.stderr.write("\n")


_complete(__name__)
