"""What every segmentation model takes and gives, and what a loss sees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np

from framework.engine.task import Metric

DEFAULT_IGNORED = 255
"""Stands in masks for pixels without a class, as far as no config says otherwise."""


class Embedded(NamedTuple):
    """An auxiliary output of a model that learns by contrast, at the resolution of its features."""

    logits: jax.Array
    """[N, h, w, num_classes] float32"""
    embedding: jax.Array
    """[N, h, w, D] float32, each vector of length 1"""


Output = jax.Array | Embedded


@runtime_checkable
class CountedPixels(Protocol):
    """A data set that can say how often each class is in its masks."""

    def count_pixels(self) -> np.ndarray:
        """[num_classes] int64: the pixels of each class in all masks as they are stored, before any transform."""
        ...


class Segmenter(Protocol):
    """A Layer on normalised images [N, H, W, C] float32; H and W are any sizes.

    `forward` gives logits [N, H, W, num_classes] float32, scaled to the size of the images. The first is the result.
    In evaluation it is the only one; in training the outputs of auxiliary heads follow, one for each further loss.
    """

    def forward(self, images: jax.Array) -> tuple[Output, ...]: ...


class Loss(Protocol):
    """A frozen dataclass of the kind "loss". Pure and of fixed shapes; the mean over the global batch."""

    def __call__(self, output: Output, labels: jax.Array) -> jax.Array:
        """A float32 scalar of one output of the model and `labels` [N, H, W] int32; `ignore_index` is left out."""
        ...


@runtime_checkable
class PixelMean(Protocol):
    """A `Loss` that is a mean over pixels, and says over how many."""

    def count(self, output: Output, labels: jax.Array) -> jax.Array | None:
        """The sum of the weights of the pixels in the mean, float32 []: by it the gradients of several batches are
        averaged (`optim.accumulate`). None where the loss is no such mean after all."""
        ...


class MetricConfig(Protocol):
    """A frozen dataclass of the kind "metric"."""

    def start(self, class_names: Sequence[str]) -> Metric:
        """A metric that has seen nothing yet. Outputs have `labels` [N, H, W] or `scores` [N, H, W, C]."""
        ...
