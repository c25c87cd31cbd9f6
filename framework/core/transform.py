"""The base class of all transforms: what a loader, a task and an artifact ask of one. Imports no jax.

It stands here because `framework.vision` and `framework.text` have transforms and neither may import `framework.io`.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import ClassVar, Generic, Self, TypeVar

import numpy as np

SampleT = TypeVar("SampleT")


class Transform(abc.ABC, Generic[SampleT]):
    """A frozen dataclass, registered as "transform", that takes a sample and a generator and gives a sample.

    It changes nothing in place and draws from `rng` alone. All but `__call__` have defaults.
    """

    per_batch: ClassVar[bool] = False
    """The loader gives each sample of a batch a generator in the same state, so that all draw the same."""

    @abc.abstractmethod
    def __call__(self, sample: SampleT, rng: np.random.Generator) -> SampleT: ...

    def check(self, model: object) -> None:
        """Raises: ConfigError, where the model does not fit what this transform makes."""
        return

    def pack_assets(self) -> tuple[Self, Mapping[str, bytes]]:
        """This transform as it is written into an artifact, with names in place of paths, and those files by name."""
        return self, {}

    def load_assets(self, files: Mapping[str, bytes]) -> Self:
        """The transform of an artifact with the files of it. Raises: FormatError, where its own is missing."""
        return self


class MixTransform(Transform[SampleT]):
    """A transform that makes one sample of several. The loader draws the others and puts each through the transforms
    that come before this one; they are loaded when they are looked at.
    """

    extra: ClassVar[int]
    """How many other samples it takes."""

    @abc.abstractmethod
    def __call__(
        self, sample: SampleT, rng: np.random.Generator, others: Sequence[SampleT] = ()
    ) -> SampleT: ...


class WindowTransform(Transform[SampleT]):
    """A transform that makes several samples of one, such as windows of a long text. It is the first of a list."""

    @abc.abstractmethod
    def split_windows(self, sample: SampleT) -> Sequence[SampleT]:
        """The windows of a sample in order: at least one, and always the same."""
        ...

    def __call__(self, sample: SampleT, rng: np.random.Generator) -> SampleT:
        """The first window alone."""
        return self.split_windows(sample)[0]
