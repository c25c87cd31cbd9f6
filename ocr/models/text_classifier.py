"""TextClassifier: whether a text line stands on its head.

Reference: PaddlePaddle/PaddleOCR configs/cls/cls_mv3.yml, ppocr/modeling/heads/cls_head.py
Differs: channels last; forward gives logits in training and in eval, where upstream gives probabilities in eval.
Weights: official `.pdparams` by name, official exported programs by order; see ocr/models/weights.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import jax

from framework import nn
from framework.config import Kind, build, register
from framework.core.errors import ShapeError
from framework.nn import functional as F
from zoo.vision.mobilenet_v3 import MobileNetV3RecConfig

_MOBILE_V2 = MobileNetV3RecConfig(scale=0.35)


@dataclass(frozen=True)
class TextClassifierConfig:
    """The defaults are ch_ppocr_mobile_v2.0_cls, whose classes are 0 and 180 degrees.

    `deploy` builds the form with normalisations folded into the convolutions.
    """

    backbone: Annotated[Any, Kind("backbone")] = _MOBILE_V2
    num_classes: int = 2
    deploy: bool = False


class ClassHead(nn.Layer):
    """Mean over all pixels and a linear map: [N, H, W, C] -> [N, num_classes]."""

    def __init__(self, in_channels: int, num_classes: int) -> None:
        super().__init__()
        bound = in_channels**-0.5
        uniform = nn.initializer.Uniform(-bound, bound)
        self.fc = nn.Linear(in_channels, num_classes, weight_attr=uniform, bias_attr=uniform)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.fc(F.global_avg_pool2d(x)[:, 0, 0])


@register("model", config=TextClassifierConfig)
class TextClassifier(nn.Layer):
    """[N, H, W, 3] -> logits [N, num_classes]. The official weights were trained on lines of 48 x 192 pixels."""

    training_only = ()
    example_shape = (1, 48, 192, 3)

    def __init__(self, config: TextClassifierConfig) -> None:
        super().__init__()
        self.config = config
        self.backbone = build(config.backbone, deploy=config.deploy)
        self.head = ClassHead(self.backbone.out_channels, config.num_classes)

    def forward(self, x: jax.Array) -> jax.Array:
        if x.ndim != 4 or x.shape[3] != 3:
            raise ShapeError(
                "TextClassifier takes color images", received=x.shape, allowed="[N, H, W, 3], channels last"
            )
        return self.head(self.backbone(x))
