"""CRNN: convolutions, a bidirectional LSTM along the line, CTC. The recogniser of PP-OCR mobile v2.0.

Paper: Shi et al. 2015, https://arxiv.org/abs/1507.05717; PP-OCR, https://arxiv.org/abs/2009.09941
Reference: PaddlePaddle/PaddleOCR configs/rec/multi_language/rec_en_number_lite_train.yml and its siblings; with
    TextResNet and a hidden size of 256 rec_r34_vd_none_bilstm_ctc.yml and the server model of PP-OCR v2.0
Differs: channels last; forward gives logits in training and in eval, where upstream gives probabilities in eval.
Weights: official `.pdparams` by name, official exported programs by order; see framework/workflow/domain/weights.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import jax

from framework import nn
from framework.config import Kind, register
from framework.core.errors import ShapeError
from ocr.layers.ctc_head import CTCHead, CTCHeadConfig
from zoo.contracts import BackboneConfig, Contract, build_backbone
from zoo.vision.mobilenet_v3 import MobileNetV3Config

_NUM_LAYERS = 2
_CLASSES = 6625
_MOBILE_V2 = MobileNetV3Config("mobilenetv3_small_x0_5", form="line", vertical_strides=(1, 2, 2, 2))


@dataclass(frozen=True)
class CRNNConfig:
    """The defaults are ch_ppocr_mobile_v2.0_rec; its siblings for other languages differ in `num_classes`.

    `num_classes` counts the blank; None takes the default's, where no task's dictionary decides. `hidden_size` is of
    each direction of the LSTM. `deploy` builds the form with normalisations folded into the convolutions.
    """

    backbone: Annotated[BackboneConfig, Kind("backbone")] = _MOBILE_V2
    hidden_size: int = 48
    num_classes: int | None = _CLASSES
    deploy: bool = False


class Neck(nn.Layer):
    """The row of a map as a sequence, through an LSTM: [N, 1, T, in_channels] -> [N, T, 2 * hidden_size]."""

    def __init__(self, in_channels: int, hidden_size: int) -> None:
        super().__init__()
        lstm = nn.LSTM(in_channels, hidden_size, _NUM_LAYERS, direction="bidirectional")
        self.encoder = nn.LayerDict({"lstm": lstm})

    def forward(self, x: jax.Array) -> jax.Array:
        if x.shape[1] != 1:
            raise ShapeError(
                "CRNN reads text lines of one height",
                received=f"{x.shape[1]} rows of features",
                allowed="1, from an image 32 pixels high with MobileNetV3 in its form for lines, or TextResNet",
                fix="resize the line to a height of 32",
            )
        return self.encoder["lstm"](x[:, 0])[0]


@register("model", config=CRNNConfig)
class CRNN(nn.Model[CRNNConfig]):
    """[N, 32, W, 3] -> CTC logits [N, W // 4, num_classes]; class 0 is the blank."""

    example_shape = (1, 32, 64, 3)
    contract = Contract(
        inputs=("n", 32, "4*w", 3),
        image=(2, 32, 44, 3),
        outputs=lambda layer, n, h, w: [(n, w // 4, layer.config.num_classes)],
    )

    def __init__(self, config: CRNNConfig) -> None:
        super().__init__(config)
        self.backbone = build_backbone(config.backbone, config.deploy)
        self.neck = Neck(self.backbone.features[-1].channels, config.hidden_size)
        num_classes = _CLASSES if config.num_classes is None else config.num_classes
        self.head = CTCHead(CTCHeadConfig(), 2 * config.hidden_size, num_classes)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.head(self._sequence(x))

    def read(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Best class and its probability for each column, see CTCHead.read."""
        return self.head.read(self._sequence(x))

    def _sequence(self, x: jax.Array) -> jax.Array:
        if x.ndim != 4 or x.shape[3] != 3:
            raise ShapeError(
                "CRNN takes color images", received=x.shape, allowed="[N, 32, W, 3], channels last"
            )
        return self.neck(self.backbone(x)[-1])
