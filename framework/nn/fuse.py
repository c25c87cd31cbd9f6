"""Folding a batch normalisation into the convolution before it, on numpy arrays in float64."""

from __future__ import annotations

import numpy as np
from jax.typing import ArrayLike


def fold_batch_norm(
    weight: ArrayLike,
    bias: ArrayLike | None,
    gamma: ArrayLike,
    beta: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    *,
    epsilon: float = 1e-5,
    out_axis: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """(weight, bias) float32 of the one convolution that equals convolution and normalisation in eval mode.

    `out_axis` is the axis of the output channels in `weight`: 0 for OIHW, 1 for IOHW and for Linear's [in, out].
    """
    gamma, beta, mean, variance = (np.asarray(a, np.float64) for a in (gamma, beta, mean, variance))
    scale = gamma / np.sqrt(variance + epsilon)
    weight = np.asarray(weight, np.float64)
    per_output = [1] * weight.ndim
    per_output[out_axis] = -1
    shift = -mean if bias is None else np.asarray(bias, np.float64) - mean
    return (weight * scale.reshape(per_output)).astype(np.float32), (beta + shift * scale).astype(np.float32)
