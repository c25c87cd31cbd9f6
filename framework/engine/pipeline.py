"""Pipelines: a configuration whose artifact is composed of those of several stages, each exported as any model is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from framework.engine.task import Task
from framework.export import TensorSpec


@dataclass(frozen=True)
class Stage:
    """One model of a pipeline: what `model`, `task`, `weights` and `export` are in a file with one model.

    Attributes:
        model: The bound config of the model.
        task: What its program computes is `task.infer`.
        weights: As the configuration names them.
        path: The file that they come from.
        inputs: Of the program, by name.
        constraints: What holds for symbolic sizes, such as "w >= 16".
        config: What the artifact's config holds besides, such as the options of the stage.
        bf16_verified: The score in bfloat16 was measured and holds.
    """

    model: object
    task: Task
    weights: str
    path: Path
    inputs: Mapping[str, TensorSpec]
    constraints: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    bf16_verified: bool = False


class Pipeline(ABC):
    """Base of what is registered as a "pipeline": a frozen dataclass bound to the key `pipeline` of a file."""

    @property
    @abstractmethod
    def stage_names(self) -> tuple[str, ...]:
        """The keys of its stages in the configuration, each of which has `weights`."""

    @abstractmethod
    def stages(self) -> Mapping[str, Stage]:
        """Every stage by its name, with its weights found and fetched.

        Raises:
            HubError: weights cannot be had.
        """

    @abstractmethod
    def describe(self) -> Mapping[str, Any]:
        """What the artifact's config holds besides its stages."""
