"""Samples as programs take them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

S = TypeVar("S")
_ONE_SHOT = np.random.default_rng(0)  # transforms of inference draw nothing from it


def prepared(sample: S, transforms: Iterable[Any]) -> S:
    """The sample, of an image or of a text, after the transforms of inference."""
    for transform in transforms:
        sample = transform(sample, _ONE_SHOT)
    return sample
