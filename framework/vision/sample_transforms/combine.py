"""Transforms of transforms: one that is only sometimes applied, one out of several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from framework.config.registry import Kind, register
from framework.core.errors import ConfigError
from framework.core.transform import MixTransform, Transform
from framework.vision.sample import Sample
from framework.vision.sample_transforms.checks import check_number

Transforms = tuple[Annotated[Transform[Sample], Kind("transform")], ...]


@register("transform")
@dataclass(frozen=True)
class RandomApply(Transform[Sample]):
    """Applies all `transforms`, in their order, with probability `p`; or none.

    Raises:
        ConfigError: there are no transforms, or `p` is no probability.
    """

    transforms: Transforms
    p: float = 0.5

    def __post_init__(self) -> None:
        _check_some(self, self.transforms)
        check_number(self, "p", 0, 1)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        if rng.random() < self.p:
            for transform in self.transforms:
                sample = transform(sample, rng)
        return sample


@register("transform")
@dataclass(frozen=True)
class RandomChoice(Transform[Sample]):
    """Applies one of `transforms`, all equally probable or in proportion to `weights`.

    Raises:
        ConfigError: there are no transforms, or not one weight for each; a weight is negative, or all are 0.
    """

    transforms: Transforms
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        _check_some(self, self.transforms)
        weights = self.weights
        if weights is None:
            return
        if len(weights) != len(self.transforms) or min(weights) < 0 or not 0 < sum(weights) < float("inf"):
            raise ConfigError(
                "the weights do not fit the transforms",
                where="RandomChoice.weights",
                received=weights,
                allowed=f"{len(self.transforms)} finite numbers >= 0, at least one above 0",
            )

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        shares = None if self.weights is None else np.array(self.weights) / sum(self.weights)
        chosen = self.transforms[int(rng.choice(len(self.transforms), p=shares))]
        return chosen(sample, rng)


def _check_some(owner: object, transforms: Transforms) -> None:
    where = f"{type(owner).__name__}.transforms"
    if not transforms:
        raise ConfigError("the list is empty", where=where, allowed="at least one transform")
    for transform in transforms:
        if isinstance(transform, MixTransform) or transform.per_batch:
            raise ConfigError(
                "the loader itself has to call this transform",
                where=where,
                received=type(transform).__name__,
                allowed="transforms that need neither further samples nor the rest of the batch",
                fix="put it into the list of the loader; its own p says how often it is applied",
            )
