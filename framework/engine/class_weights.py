"""Weights of classes in a loss: given in a config, or from how often the classes are in the training data."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.errors import ConfigError
from framework.io.weighting import LabelledDataset

ClassWeights = tuple[float, ...] | Literal["balanced"] | None
"""A number a class; "balanced" is samples / (classes * samples of the class), so that each class counts alike. Of
masks the samples are pixels."""


def check_class_weights(weight: ClassWeights, where: str) -> None:
    """Raises: ConfigError, where the numbers are no weights."""
    if isinstance(weight, tuple) and not (weight and min(weight) >= 0 and 0 < sum(weight) < float("inf")):
        raise ConfigError(
            "class weights must be a number for each class",
            where=where,
            received=list(weight),
            allowed="a number from 0 for each class, not all of them 0; or balanced",
        )


def resolve_class_weights(weight: ClassWeights, dataset: object, where: str) -> ClassWeights:
    """The weights with numbers for "balanced". A class without a sample, which no loss meets, has 1.

    Raises:
        ConfigError: the data set does not know its labels.
    """
    if weight != "balanced":
        return weight
    if not isinstance(dataset, LabelledDataset):
        raise ConfigError(
            "this data set does not know how many samples its classes have",
            where=where,
            received=f"balanced, for {type(dataset).__name__}",
            allowed="a number for each class; or a data set with `class_names` and `read_labels()`",
        )
    labels = np.concatenate(
        [np.zeros(0, np.int64), *(np.asarray(some).reshape(-1) for some in dataset.read_labels())]
    )
    return balance_classes(np.bincount(labels[labels >= 0], minlength=len(dataset.class_names)))


def balance_classes(counts: np.ndarray) -> tuple[float, ...]:
    """The numbers that "balanced" stands for, where `counts` [C] says how often each class is there; 1 for none."""
    there = counts > 0
    weights = np.where(there, counts.sum() / (max(1, there.sum()) * np.maximum(counts, 1)), 1.0)
    return tuple(weights.tolist())


def sum_weights(weight: jax.Array | None, labels: jax.Array, smoothing: float) -> jax.Array | None:
    """Of how much a cross-entropy with these class weights [C] is the mean, for `Losses.weight`; None without weights.

    Args:
        labels: [N] class indices.
        smoothing: The share of a label that all classes have alike.
    """
    return None if weight is None else ((1 - smoothing) * weight[labels] + smoothing * weight.mean()).sum()


def weight_array(weight: ClassWeights, num_classes: int, where: str) -> jax.Array | None:
    """[num_classes] float32 for a loss.

    Raises:
        ConfigError: there is not one number for each class, or they are not resolved.
    """
    if weight is None:
        return None
    if isinstance(weight, str) or len(weight) != num_classes:
        raise ConfigError(
            "the weights do not fit the classes",
            where=where,
            received=weight if isinstance(weight, str) else f"{len(weight)} weights",
            allowed=f"one for each of the {num_classes} classes",
            fix="call task.adapt(dataset) first" if isinstance(weight, str) else None,
        )
    return jnp.asarray(weight, jnp.float32)
