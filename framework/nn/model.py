"""A layer that a configuration names: it keeps the frozen dataclass that it is built from."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Generic, TypeVar, cast

from framework.core.model_config import ConfigT, config_of
from framework.nn.layer import Layer

LayerT = TypeVar("LayerT", bound=Layer)


class Model(Layer, Generic[ConfigT]):
    """Base of what is registered as "model" or "backbone"."""

    config: ConfigT

    def __init__(self, config: ConfigT) -> None:
        super().__init__()
        self.config = config


def rebuild(model: LayerT, **changes: object) -> LayerT | None:
    """A model of the same class, with values of its own, whose config has these changes; None where the model has no
    config with such fields."""
    config = config_of(model)
    if not dataclasses.is_dataclass(config) or isinstance(config, type):
        return None
    if not changes.keys() <= config.__dataclass_fields__.keys():
        return None
    build = cast("Callable[[object], LayerT]", type(model))  # a model's class takes its config
    return build(dataclasses.replace(config, **changes))
