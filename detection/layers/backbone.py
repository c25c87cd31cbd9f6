"""How detectors build a backbone, and train one that comes with weights: slowly, some of its layers not at all."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from framework import nn
from framework.config import build
from framework.core.errors import ConfigError

PYRAMID = (8, 16, 32)


def build_backbone(config: Any, deploy: bool = False, strides: tuple[int, ...] = PYRAMID) -> Any:
    """The Backbone of a config, without its classifier; `deploy` takes its deploy form where it has one.

    Raises:
        ConfigError: its maps do not end with those of `strides`.
    """
    fields = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    wanted = {"num_classes": 0, "deploy": deploy or fields.get("deploy")}
    changes = {name: value for name, value in wanted.items() if name in fields}
    backbone = build(dataclasses.replace(config, **changes))
    found = tuple(feature.stride for feature in backbone.features)
    if found[-len(strides) :] != strides:
        raise ConfigError(
            "the backbone does not give the maps that this model reads",
            where="model.backbone",
            received=f"{type(backbone).__name__} with maps at the strides {', '.join(map(str, found))}",
            allowed=f"maps that end with the strides {', '.join(map(str, strides))}",
        )
    return backbone


def set_param_groups(
    backbone: nn.Layer, rate: float, frozen: Sequence[str] = (), freeze_norms: bool = False
) -> None:
    """Change how the parameters of a backbone are trained.

    Args:
        rate: Multiplies the learning rate.
        frozen: Starts of the names of parameters that do not learn.
        freeze_norms: Batch normalisation keeps its weights, and uses its running statistics in training too.
    """
    for name, parameter in backbone.named_parameters():
        learns = parameter.attr.trainable and not name.startswith(tuple(frozen))
        parameter.attr = dataclasses.replace(
            parameter.attr, trainable=learns, learning_rate=parameter.attr.learning_rate * rate
        )
    for layer in backbone.sublayers():
        if freeze_norms and isinstance(layer, nn.BatchNorm):
            layer.use_global_stats = True
            layer.freeze()
