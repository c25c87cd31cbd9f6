"""A model on a backbone: how it is built, converted, and trained where it comes with weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np

from framework import nn
from framework.core.errors import ConfigError
from framework.core.model_config import ConfigT
from framework.nn.reparam import Arrays, deploy_state, prefixed, reparameterize
from zoo.contracts import Backbone, BackboneConfig, build_backbone


class BackboneModel(nn.Model[ConfigT]):
    """Reads the last maps of a backbone, which is built from `backbone`; its classifier is left out.

    `deploy` takes the backbone's deploy form where it has one.

    Raises:
        ConfigError: the backbone's maps do not end with those of `strides`.
    """

    training_only: tuple[str, ...] = ()
    backbone: Backbone

    def __init__(
        self,
        config: ConfigT,
        backbone: BackboneConfig,
        deploy: bool = False,
        strides: tuple[int, ...] = (8, 16, 32),
    ) -> None:
        super().__init__(config)
        self.backbone = build_backbone(backbone, deploy or None)
        features = self.backbone.features[-len(strides) :]
        if tuple(feature.stride for feature in features) != strides:
            offered = ", ".join(str(feature.stride) for feature in self.backbone.features)
            raise ConfigError(
                "the backbone does not give the maps that this model reads",
                where="model.backbone",
                received=f"{type(self.backbone).__name__} with maps at the strides {offered}",
                allowed=f"maps that end with the strides {', '.join(map(str, strides))}",
            )
        self.in_channels = tuple(feature.channels for feature in features)

    def extract(self, images: jax.Array) -> tuple[jax.Array, ...]:
        """The maps that are read, [N, H / stride, W / stride, C] with `in_channels`, finest first."""
        return self.backbone.forward_features(images)[-len(self.in_channels) :]

    def deploy_state(self) -> Arrays:
        """A backbone of one form keeps its arrays: the model's deploy form holds that same backbone."""
        state: Arrays = {}
        for name, child in self.named_children():
            if child is self.backbone:
                arrays = {key: np.asarray(value) for key, value in reparameterize(child).state_dict().items()}
            else:
                arrays = deploy_state(child)
            state |= prefixed(name, arrays)
        return state


def set_param_groups(
    model: BackboneModel, rate: float, frozen: Sequence[str] = (), freeze_norms: bool = False
) -> None:
    """Change how the parameters of the backbone are trained.

    Args:
        rate: Multiplies the learning rate.
        frozen: Starts of the names of parameters that do not learn.
        freeze_norms: Batch normalisation keeps its weights, and uses its running statistics in training too.
    """
    backbone = dict(model.named_children())["backbone"]
    for name, parameter in backbone.named_parameters():
        learns = parameter.attr.trainable and not name.startswith(tuple(frozen))
        parameter.attr = dataclasses.replace(
            parameter.attr, trainable=learns, learning_rate=parameter.attr.learning_rate * rate
        )
    for layer in backbone.sublayers():
        if freeze_norms and isinstance(layer, nn.BatchNorm):
            layer.use_global_stats = True
            layer.freeze()
