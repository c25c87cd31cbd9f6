"""What a model was built from, for all who ask it without knowing the model. Imports no jax."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Protocol, TypeVar

T = TypeVar("T")


class ModelConfig(Protocol):
    """The frozen dataclass that a model is built from: what `model` of a configuration is bound to."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field]]


ConfigT = TypeVar("ConfigT", bound=ModelConfig)


def config_of(model: object) -> object | None:
    """What a model was built from; None for a Layer without a `config`, such as one that was read from a graph."""
    return getattr(model, "config", None)


def setting_of(model: object, name: str, kind: type[T]) -> T | None:
    """A field that the configs of some models have, such as `num_classes`: None where this one has no field of this
    name, or has it of another type, or as None."""
    value = getattr(config_of(model), name, None)
    return value if isinstance(value, kind) else None
