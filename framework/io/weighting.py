"""How often the samples of a data set are drawn: `sampler` of a loader's settings. Imports no jax."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from framework.core.errors import ConfigError, did_you_mean
from framework.io.sampler import WeightedRandomSampler


@runtime_checkable
class LabelledDataset(Protocol):
    """A data set that knows the classes of its samples without reading them."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """By index."""
        ...

    def read_labels(self) -> Sequence[np.ndarray]:
        """The class indices [K] of each sample: one of an image with a class, one an object of an image with boxes."""
        ...


@dataclass(frozen=True)
class SamplerConfig:
    """Draws samples with replacement, in proportion to their weights; `num_samples` an epoch, as many as there are.

    * WeightedRandom: `weights` by the name of a class; classes without one have 1.
    * ClassBalanced: each class is drawn alike, so the weight is one over the samples of the class.
    * RepeatFactor: samples of a class that stands in a share f of the samples, less than `threshold`, have the weight
      sqrt(threshold / f), all others 1.

    Of a sample with several classes the largest weight counts; one without any has the smallest of all.

    Raises:
        ConfigError: settings that do not belong to the type, or are out of range.

    Source: RepeatFactor: Gupta et al. 2019, https://arxiv.org/abs/1908.03195, appendix B.
    """

    type: Literal["WeightedRandom", "ClassBalanced", "RepeatFactor"]
    weights: dict[str, float] | None = None
    threshold: float = 0.001
    num_samples: int | None = None

    def __post_init__(self) -> None:
        if (self.type == "WeightedRandom") != bool(self.weights):
            raise ConfigError(
                "weights belong to WeightedRandom",
                received=f"type {self.type}, weights {self.weights}",
                allowed="{type: WeightedRandom, weights: {cat: 2.0}}, or another type without weights",
            )
        if any(not 0 <= weight < float("inf") for weight in (self.weights or {}).values()):
            raise ConfigError("a weight is out of range", received=self.weights, allowed="0 or more")
        if not 0 < self.threshold <= 1 or (self.num_samples is not None and self.num_samples < 1):
            raise ConfigError(
                "a sampler is out of range",
                received=f"threshold {self.threshold}, num_samples {self.num_samples}",
                allowed="0 < threshold <= 1, num_samples from 1",
            )


def make_sampler(config: SamplerConfig, dataset: object, seed: int) -> WeightedRandomSampler:
    """The sampler of a data set.

    Raises:
        ConfigError: the data set does not know its labels, or has no class of a name in `weights`.
    """
    if not isinstance(dataset, LabelledDataset):
        raise ConfigError(
            "this data set cannot be sampled by class",
            where="sampler",
            received=type(dataset).__name__,
            allowed="data sets that know their labels without reading the samples: a class with `class_names` and "
            "`read_labels()`, such as ImageFolder, ListFile, CocoDetection, VocDetection, TextClassification",
        )
    names = dataset.class_names
    weights = compute_weights(config, dataset.read_labels(), names)
    return WeightedRandomSampler(weights, config.num_samples or len(weights), seed=seed)


def compute_weights(config: SamplerConfig, labels: Sequence[np.ndarray], names: Sequence[str]) -> np.ndarray:
    """[N] float64: the weight of each sample, of which `labels` has the class indices.

    Raises:
        ConfigError: `weights` has the name of no class.
    """
    of_class = np.ones(len(names))
    if config.weights is not None:
        if unknown := [name for name in config.weights if name not in names]:
            raise ConfigError(
                "unknown class",
                where="sampler.weights",
                received=", ".join(unknown),
                allowed=", ".join(names[:20]) + (" ..." if len(names) > 20 else ""),
                fix=did_you_mean(unknown[0], names),
            )
        of_class[[names.index(name) for name in config.weights]] = list(config.weights.values())
    else:
        counts = np.zeros(len(names))
        for some in labels:
            counts[np.unique(some)] += 1
        occurs = counts > 0
        if config.type == "ClassBalanced":
            of_class[occurs] = 1 / counts[occurs]
        else:
            share = counts[occurs] / len(labels)
            of_class[occurs] = np.maximum(1, np.sqrt(config.threshold / share))
    weights = np.array([of_class[some].max() if len(some) else np.nan for some in labels], np.float64)
    return np.where(np.isnan(weights), np.nanmin(weights) if (~np.isnan(weights)).any() else 1, weights)
