"""Weights made from names: parity tests load the same into our model and into the reference, and none are shipped."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence

import numpy as np


def named_weights(shapes: Mapping[str, Sequence[int]]) -> dict[str, np.ndarray]:
    """A float32 array for each entry of a state dict, drawn from the CRC of its name.

    Equal names and shapes give equal values, whatever else is in the mapping. Scales keep the activations of residual
    networks of some twenty blocks below a hundred: matrices and kernels as after He's initialisation, depthwise
    kernels a third of that, vectors called `weight` or `scale` in 0.5 to 1.5, `_variance` in 1 to 3, the rest small
    around zero.
    """
    return {name: _values(name, tuple(shape)) for name, shape in shapes.items()}


def _values(name: str, shape: tuple[int, ...]) -> np.ndarray:
    # RandomState and not a Generator: numpy promises that its streams never change.
    rng = np.random.RandomState(zlib.crc32(name.encode("utf-8")))
    last = name.rpartition(".")[2]
    if len(shape) >= 2:
        fan_in = shape[0] if len(shape) == 2 else math.prod(shape[1:])
        gain = 0.5 if shape[1] == 1 else math.sqrt(2.0)
        values = rng.standard_normal(shape) * gain / math.sqrt(max(fan_in, 1))
    elif last == "_variance":
        values = rng.uniform(1.0, 3.0, shape)
    elif last in ("weight", "scale"):
        values = rng.uniform(0.5, 1.5, shape)
    else:
        values = 0.1 * rng.standard_normal(shape)
    return np.asarray(values, np.float32)
