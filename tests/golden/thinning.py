"""What a golden test and the environment of its reference share; it needs numpy alone.

A case is a row of a test's table REFERENCES, see tools/golden/network.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

KEPT = 160  # values of each stage


def thin(array: np.ndarray, kept: int = KEPT) -> np.ndarray:
    """At most `kept` values, evenly spaced."""
    flat = array.reshape(-1)
    return flat[:: -(-flat.size // kept)].astype(np.float32)


def images(case: Mapping[str, Any]) -> np.ndarray:
    """Noise [N, C, H, W]. Contrast and brightness differ: else normalisation over a few pixels amplifies rounding."""
    rng, count = np.random.RandomState(7), case.get("images", 2)
    channels = case.get("options", {}).get("in_channels", 3)
    x = rng.standard_normal((count, channels, *case["size_hw"])) * rng.uniform(0.3, 1.5, (count, 1, 1, 1))
    return (x + rng.standard_normal((count, channels, 1, 1))).astype(np.float32)


def soft_images(size_hw: tuple[int, int], count: int = 2, step: int = 32) -> np.ndarray:
    """Smooth noise [N, 3, H, W], for what reads images between pixels: there rounding of a place is not amplified."""
    knots = [np.arange(side // step + 1) for side in size_hw]
    coarse = np.random.RandomState(7).standard_normal((count, 3, *map(len, knots)))
    rows, columns = (
        np.maximum(0, 1 - np.abs(np.arange(side)[:, None] / step - knot))
        for side, knot in zip(size_hw, knots, strict=True)
    )
    return (rows @ coarse @ columns.T).astype(np.float32)


def amplify(weights: Mapping[str, np.ndarray], case: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The weights, kernels multiplied by the case's `gain`."""
    gain = case.get("gain", 1.0)
    return {name: gain * value if value.ndim == 4 else value for name, value in weights.items()}
