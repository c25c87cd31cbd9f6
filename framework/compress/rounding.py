"""How the numbers of a matrix are rounded when examples of its inputs are known: GPTQ, and the scales of AWQ.

Both lower the error of the products, sum of |(W - W') x|^2 over the examples x, and both need no more of them than the
sums of their products, `InputMoments`.

Papers: GPTQ: Frantar et al. 2022, https://arxiv.org/abs/2210.17323; AWQ: Lin et al. 2023,
    https://arxiv.org/abs/2306.00978
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from framework.nn.functional.quantized import LEVELS
from framework.nn.quantized import WeightScheme, group_steps, round_int4, round_int8

_BLOCK = 128  # columns whose errors are spread together
_DAMPING = 0.01  # of the mean of the diagonal
_SHARES = np.arange(20) / 20  # exponents of AWQ that are tried; 0 changes nothing
_LEAST = 1e-4


@dataclass(frozen=True)
class InputMoments:
    """Of the inputs [rows, in] of a linear layer.

    Attributes:
        products: [in, in] float64: the sum of x x' over the rows.
        magnitude: [in] float64: the sum of |x|.
        rows: How many there were.
    """

    products: np.ndarray
    magnitude: np.ndarray
    rows: int

    def __add__(self, other: InputMoments) -> InputMoments:
        return InputMoments(
            self.products + other.products, self.magnitude + other.magnitude, self.rows + other.rows
        )


@dataclass(frozen=True)
class RoundedMatrix:
    """A matrix [out, in] of few bits.

    Attributes:
        levels: [out, in]: int8 of 8 bits, uint8 of 4.
        scale: [out] of 8 bits, [out, groups] of 4; float32.
        zero: [out, groups] float32; None of 8 bits.
    """

    levels: np.ndarray
    scale: np.ndarray
    zero: np.ndarray | None

    def dequantize(self) -> np.ndarray:
        """[out, in] float32."""
        if self.zero is None:
            return self.levels.astype(np.float32) * self.scale[:, None]
        grouped = self.levels.reshape(*self.scale.shape, -1).astype(np.float32)
        return ((grouped - self.zero[..., None]) * self.scale[..., None]).reshape(self.levels.shape)


def round_nearest(weight: np.ndarray, scheme: WeightScheme) -> RoundedMatrix:
    """Each number of [out, in] to its nearest step; 8 bits too where the inputs cannot be grouped."""
    group = scheme.group_of(weight.shape[1]) if scheme.bits == 4 else None
    if group is None:
        return RoundedMatrix(*round_int8(weight), None)
    return RoundedMatrix(*round_int4(weight, group, scheme.symmetric))


def output_error(weight: np.ndarray, rounded: np.ndarray, moments: InputMoments) -> float:
    """The mean of |(W - W') x|^2 over the examples, as a share of the mean of |W x|^2."""
    difference = weight.astype(np.float64) - rounded
    error, whole = (np.vdot(m @ moments.products, m) for m in (difference, weight.astype(np.float64)))
    return float(error / whole) if whole > 0 else 0.0


def round_gptq(weight: np.ndarray, moments: InputMoments, scheme: WeightScheme) -> RoundedMatrix:
    """A column after the other to its nearest step, its error spread over the columns that are still to come.

    Args:
        weight: [out, in].
    """
    left = weight.astype(np.float64)
    group = scheme.group_of(weight.shape[1]) if scheme.bits == 4 else None
    spread = _spread(moments.products)
    columns = left.shape[1]
    levels = np.empty(left.shape, np.int8 if group is None else np.uint8)
    scale, zeros = np.abs(weight).max(1).astype(np.float32) / LEVELS, np.zeros(len(weight), np.float32)
    scales: list[np.ndarray] = []
    zero_points: list[np.ndarray] = []
    for start in range(0, columns, _BLOCK):
        end = min(start + _BLOCK, columns)
        errors = np.empty((len(left), end - start))
        for column in range(start, end):
            if group is not None and column % group == 0:
                # Columns of the group that stand in later blocks have not got this block's errors yet.
                scale, zeros = group_steps(
                    left[:, column : column + group].astype(np.float32), scheme.symmetric
                )
                scales.append(scale)
                zero_points.append(zeros)
            steps = np.rint(left[:, column] / np.where(scale > 0, scale, 1)) + zeros
            steps = np.clip(steps, *((-LEVELS, LEVELS) if group is None else (0, 15)))
            levels[:, column] = steps
            error = (left[:, column] - (steps - zeros) * scale) / spread[column, column]
            left[:, column + 1 : end] -= error[:, None] * spread[column, column + 1 : end]
            errors[:, column - start] = error
        left[:, end:] -= errors @ spread[start:end, end:]
    if group is None:
        return RoundedMatrix(levels, scale, None)
    return RoundedMatrix(levels, np.stack(scales, 1), np.stack(zero_points, 1))


def _spread(products: np.ndarray) -> np.ndarray:
    """The upper Cholesky factor of the inverse of the damped products: row i says how the error of column i is spread.
    Inputs that were always 0 spread nothing."""
    damped = products.copy()
    diagonal = np.arange(len(damped))
    silent = damped[diagonal, diagonal] <= 0
    damped[silent, silent] = 1
    damping = _DAMPING * max(float(damped[diagonal, diagonal].mean()), np.finfo(np.float64).tiny)
    while True:
        try:
            trial = damped.copy()
            trial[diagonal, diagonal] += damping
            return np.linalg.cholesky(np.linalg.inv(trial)).T.copy()
        except np.linalg.LinAlgError:  # few examples, whose products are nearly singular
            damping *= 10


def awq_scale(weights: list[np.ndarray], moments: InputMoments, scheme: WeightScheme) -> np.ndarray:
    """[in] float32: what the inputs of these matrices [out, in] are divided by, and their columns multiplied with,
    before they are rounded to the nearest step, so that inputs of large magnitude lose least. Ones where nothing is
    better.

    The scale is mean|x|^a, of the best of 20 exponents a from 0 to 0.95, with the mean of its extremes at 1.
    """
    magnitude = np.maximum(moments.magnitude / max(moments.rows, 1), _LEAST)
    best, least = np.ones(len(magnitude), np.float32), np.inf
    for share in _SHARES:
        scale = np.maximum(magnitude**share, _LEAST)
        scale = (scale / np.sqrt(scale.max() * scale.min())).astype(np.float32)
        error = 0.0
        for weight in weights:
            difference = weight - round_nearest(weight * scale, scheme).dequantize() / scale
            error += float(np.vdot(difference @ moments.products, difference))
        if error < least:
            best, least = scale, error
    return best
