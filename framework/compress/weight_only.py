"""Weights as int8 in an artifact's file, a fourth of its size; they are floats again when it is loaded.

XLA computes in float32 with them: on a CPU it has no faster products of int8, and dequantising in each call would only
cost time.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np

from framework.compress.ranges import quantize_weight

_LEAST = 1024  # numbers; smaller weights save nothing


def quantize_weights(
    weights: Mapping[str, np.ndarray], leave: Container[str] = ()
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(weights, scales) for `Artifact`: kernels and matrices rounded to 255 levels of each channel, the others as they
    are.

    Args:
        weights: As programs take them: kernels of convolutions HWIO, so that channels are the last axis. A matrix may
            have them on either axis, and gets the one with the smaller error.
        leave: Names of weights that stay in float32.
    """
    rounded, scales = dict(weights), {}
    for name, weight in weights.items():
        if name in leave or weight.dtype != np.float32 or weight.ndim < 2 or weight.size < _LEAST:
            continue
        axes = (0, 1) if weight.ndim == 2 else (weight.ndim - 1,)
        tried = [_round(weight, axis) for axis in axes]
        rounded[name], scales[name] = min(tried, key=lambda one: float(np.square(one[0] - weight).sum()))
    return rounded, scales


def _round(weight: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """(the weight in steps of its scale, the scale with the axes of the weight)."""
    whole, scales = quantize_weight(weight, axis, 8)
    scale = np.expand_dims(scales, [n for n in range(weight.ndim) if n != axis])
    return whole * scale, scale
