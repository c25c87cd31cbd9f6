"""TextClassifier: which way up a text line or a page is.

Paper: PP-OCR, https://arxiv.org/abs/2009.09941; PP-LCNet, https://arxiv.org/abs/2109.15099
Reference: PaddlePaddle/PaddleOCR configs/cls/cls_mv3.yml, ppocr/modeling/heads/cls_head.py; PP-LCNet in PaddleClas
Differs: channels last; forward gives logits in training and in eval, where upstream gives probabilities in eval.
    PaddleClas has no `backbone.` and `head.` before the names of a PP-LCNet.
Weights: official exported programs by order, checkpoints of the v2.0 classifier by name; see
framework/workflow/domain/weights.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax

from framework import nn
from framework.config import Kind, register
from framework.core.errors import ShapeError
from framework.nn import functional as F
from ocr.layers.ctc_head import uniform_linear
from zoo.contracts import BackboneConfig, Contract, build_backbone
from zoo.layers.variants import VariantConfig
from zoo.vision.mobilenet_v3 import MobileNetV3Config
from zoo.vision.pp_lcnet import PPLCNetConfig


class Parts(NamedTuple):
    """What a classifier is made of."""

    backbone: BackboneConfig
    num_classes: int


_ALONG_THE_LINE = ((2, 1),) * 4
# Classes: 0 and 180 degrees, or 0, 90, 180 and 270. Strides of PP-LCNet are those of the official exports.
VARIANTS: dict[str, Parts] = {
    "ch_ppocr_mobile_v2.0_cls": Parts(MobileNetV3Config("mobilenetv3_small_x0_35", form="line"), 2),
    "PP-LCNet_x0_25_textline_ori": Parts(
        PPLCNetConfig("pplcnet_x0_25", strides=((1, 2), *_ALONG_THE_LINE)), 2
    ),
    "PP-LCNet_x1_0_textline_ori": Parts(PPLCNetConfig(strides=((2, 2), *_ALONG_THE_LINE), pool=True), 2),
    "PP-LCNet_x1_0_doc_ori": Parts(PPLCNetConfig(pool=True), 4),
}


@dataclass(frozen=True)
class TextClassifierConfig(VariantConfig[Parts], table=VARIANTS):
    """`variant` names the parts; a part given here takes the place of the variant's.

    `deploy` builds the form with normalisations folded into the convolutions.
    """

    variant: str = "ch_ppocr_mobile_v2.0_cls"
    backbone: Annotated[BackboneConfig, Kind("backbone")] | None = None
    num_classes: int | None = None
    deploy: bool = False


class ClassHead(nn.Layer):
    """Mean over all pixels and a linear map: [N, H, W, C] -> [N, num_classes]."""

    def __init__(self, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.fc = uniform_linear(in_channels, num_classes)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.fc(F.global_avg_pool2d(x)[:, 0, 0])


@register("model", config=TextClassifierConfig)
class TextClassifier(nn.Model[TextClassifierConfig]):
    """[N, H, W, 3] -> logits [N, num_classes].

    Official weights take lines of 48 x 192 pixels, those of PP-LCNet lines of 80 x 160 and pages of 224 x 224.
    """

    example_shape = (1, 48, 192, 3)
    contract = Contract(
        fields={"num_classes": None},
        compiled=("ch_ppocr_mobile_v2.0_cls", "PP-LCNet_x0_25_textline_ori"),
        inputs=("n", 48, "w", 3),
        image=(4, 48, 77, 3),
        outputs=lambda layer, n, h, w: [(n, layer.config.parts.num_classes)],
    )

    def __init__(self, config: TextClassifierConfig) -> None:
        super().__init__(config)
        backbone, num_classes = config.parts
        self.backbone = build_backbone(backbone, config.deploy)
        self.head = ClassHead(self.backbone.features[-1].channels, num_classes)

    def forward(self, x: jax.Array) -> jax.Array:
        if x.ndim != 4 or x.shape[3] != 3:
            raise ShapeError(
                "TextClassifier takes color images", received=x.shape, allowed="[N, H, W, 3], channels last"
            )
        return self.head(self.backbone(x)[-1])
