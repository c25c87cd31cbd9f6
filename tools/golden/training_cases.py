"""A whole training for the parity test: weights, batches, settings. Needs numpy alone: all sides use it."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

STEPS, BATCH, SIDE, CLASSES = 50, 8, 64, 10
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
MOMENTUM, DECAY = 0.9, 1e-3


class Case(NamedTuple):
    """A learning rate for each step: a warmup that goes over into a cosine, or steps where `boundaries` are given."""

    rate: float
    steps: int = STEPS
    warmup: int = 0
    boundaries: tuple[int, ...] = ()


CASES = {
    "warmup_cosine": Case(0.004, warmup=10),
    "piecewise": Case(0.005, steps=20, boundaries=(8, 14)),  # the short one
}


def weights(shapes: Mapping[str, Sequence[int]]) -> dict[str, np.ndarray]:
    """A fresh network: each entry of the state dict drawn from the CRC of its name, in the scale that training starts
    from. Matrices are [in, out].

    The normalisations at the end of residual branches begin small, as in trainings that begin them with 0. From 1 on,
    rounding grows tenfold every three steps: torch's own float32 and float64 losses are 1e-3 apart after ten.
    """
    return {name: _weight(name, tuple(shape)) for name, shape in shapes.items()}


def _weight(name: str, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.RandomState(zlib.crc32(name.encode("utf-8")))
    if len(shape) == 4:
        values = rng.standard_normal(shape) * math.sqrt(2 / math.prod(shape[1:]))
    elif len(shape) == 2:
        values = rng.uniform(-1, 1, shape) / math.sqrt(shape[0])
    else:
        values = np.full(shape, float(name.endswith((".weight", "._variance"))))
        if name.endswith("conv1.bn.weight"):
            values *= 0.1
    return values.astype(np.float32)


def samples() -> tuple[np.ndarray, np.ndarray]:
    """Images [STEPS * BATCH, SIDE, SIDE, 3] uint8 in the order they are trained on, and their classes.

    Each class has a pattern of its own under the noise, so there is something to learn.
    """
    rng = np.random.RandomState(11)
    patterns = rng.randint(0, 256, (CLASSES, 8, 8, 3)).repeat(SIDE // 8, 1).repeat(SIDE // 8, 2)
    labels = rng.randint(0, CLASSES, STEPS * BATCH)
    noise = rng.normal(0, 30, (len(labels), SIDE, SIDE, 3))
    return (0.4 * patterns[labels] + 76 + noise).clip(0, 255).astype(np.uint8), labels
