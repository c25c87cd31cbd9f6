"""Samples as programs take them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np

S = TypeVar("S")
_UNUSED = np.random.default_rng(0)  # transforms of inference draw nothing from it


def apply_transforms(sample: S, transforms: Iterable[Callable[[S, np.random.Generator], S]]) -> S:
    """The sample, of an image or of a text, after the transforms of inference."""
    for transform in transforms:
        sample = transform(sample, _UNUSED)
    return sample
