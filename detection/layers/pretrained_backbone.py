"""How detectors train a backbone that comes with weights: slowly, its norms and first layers not at all."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from framework import nn


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
